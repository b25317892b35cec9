"""The version of Crosswind, for modules that `crosswind` itself imports."""

__version__ = "0.1.0"
