"""Crosswind's version, for modules imported by `crosswind` itself."""

__version__ = "0.1.0"
