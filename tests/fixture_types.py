"""What the fixtures of tests are called with, and what they give."""

from collections.abc import Callable
from pathlib import Path

Crosswind = Callable[..., tuple[int, str, str]]
"""Runs a command line: its exit status, standard output and standard error."""
FakeCell = Callable[[str], Path]
"""Makes a program in the place of crosswind-cell of the body of a Python script."""
UseCell = Callable[[str], None]
"""Makes such a program, and has commands find it."""
