"""A study: the design of an experiment, its format, factors and cells."""
