"""How commands print to standard output."""

import sys

from crosswind.console import Console


def plain_console() -> Console:
    """A console that marks nothing up by itself, and does not fold at 80 columns what is read by no terminal."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)
