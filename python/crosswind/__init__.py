"""Crosswind: a network-protocol performance laboratory."""

__version__ = "0.1.0"
