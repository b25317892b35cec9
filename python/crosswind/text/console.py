"""The console on which commands print: never narrower than its layouts can be, and free of hidden characters."""

import sys
from collections.abc import Iterable
from typing import Any

from rich import console as rich_console
from rich.segment import Segment

from crosswind.text.visible import visible

NARROWEST = 20
"""Terminals that say they are narrower are printed to as if they had this width."""


class Console(rich_console.Console):
    """As rich's. Args: as of rich's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.width = max(self.width, NARROWEST)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # What rich itself writes to move the cursor and to colour is added by this method, or marked as control.
        return super()._render_buffer(
            segment if segment.control else Segment(visible(segment.text), segment.style) for segment in buffer
        )


def plain_console() -> Console:
    """A console that marks nothing up by itself, and does not fold at 80 columns what is read by no terminal."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)
