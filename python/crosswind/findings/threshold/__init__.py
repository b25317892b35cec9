"""Thresholds: a number that fails the run where it is beyond its bound."""
