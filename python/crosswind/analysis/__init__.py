"""From a run's record to its result."""
