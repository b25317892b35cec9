"""How often the intervals that a report prints enclose the truth."""
