"""Thresholds: a number failing the run beyond its bound."""
