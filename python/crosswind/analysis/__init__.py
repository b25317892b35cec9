"""What the cells of a run's record come to: their samples, estimates and comparisons."""
