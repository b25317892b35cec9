"""The commands' console: never narrower than its layouts, and free of hidden characters."""

import sys
from collections.abc import Iterable
from typing import Any

from rich import console as rich_console
from rich.segment import Segment

from crosswind.text.visible import visible

NARROWEST = 20
"""Minimum width; narrower terminals are printed to at this one."""


class Console(rich_console.Console):
    """As rich's. Args: as for rich's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.width = max(self.width, NARROWEST)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        # rich's own cursor movements and colours are added by this method, or marked as control.
        return super()._render_buffer(
            segment if segment.control else Segment(visible(segment.text), segment.style) for segment in buffer
        )


def plain_console() -> Console:
    """A console without automatic markup, and without folding at 80 columns outside a terminal."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)
