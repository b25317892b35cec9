"""Figures that a study wants drawn: a metric over the levels of a factor."""
