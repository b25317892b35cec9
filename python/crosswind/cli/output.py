"""How commands print to standard output."""

import sys
from dataclasses import dataclass
from typing import Literal

from rich.table import Table
from rich.text import Text

from crosswind.console import Console


def plain_console() -> Console:
    """A console that marks nothing up by itself, and does not fold at 80 columns what is read by no terminal."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class Column:
    """A column of a table. `spare`: in which order it is left out where the terminal is too narrow, 0: never."""

    name: str
    cells: list[str]
    justify: Literal["left", "right"] = "left"
    spare: int = 0

    @property
    def width(self) -> int:
        """Characters that it needs."""
        return max(len(text) for text in (self.name, *self.cells))


def print_columns(console: Console, columns: list[Column], styles: list[dict[str, str]]) -> None:
    """A grid of as many columns as fit; `styles` has one mapping a row, column name to style."""
    kept = list(columns)
    while _width(kept) > console.width and any(column.spare for column in kept):
        kept.remove(min((column for column in kept if column.spare), key=lambda column: column.spare))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in kept:
        table.add_column(column.name, justify=column.justify, overflow="fold")
    for number, style in enumerate(styles):
        table.add_row(*(Text(column.cells[number], style=style.get(column.name, "")) for column in kept))
    console.print(table)


def _width(columns: list[Column]) -> int:
    return sum(column.width + 2 for column in columns) - 2
