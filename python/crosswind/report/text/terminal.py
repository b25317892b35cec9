"""The result on a terminal: its last screen, or every table and then that screen."""

from rich.text import Text

from crosswind.analysis.result import Result
from crosswind.console import Console
from crosswind.report.run_page import tables_of
from crosswind.report.tables.table import Shown, Table
from crosswind.report.text.grid import fits, form_for, grid_lines, left_out, paragraph_lines
from crosswind.report.text.screen import screen_lines, wrapped


def print_result(result: Result, console: Console | None = None, *, everything: bool = False) -> None:
    """Print a result; rich colours it on a terminal only, and not where NO_COLOR is set.

    Args: everything: every table of every cell, above the screen that sums them up.
    """
    out = console or Console(highlight=False)
    if everything:
        for table in tables_of(result):
            if table.shown in (Shown.EVERYWHERE, Shown.ASIDE):
                _print_table(out, table)
                out.print()
    _print_lines(out, screen_lines(result, out.width, everything=everything))


def render(result: Result, *, width: int = 80, everything: bool = False) -> str:
    """The same as plain text of a given width, without colour."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, record=False)
    with console.capture() as captured:
        print_result(result, console, everything=everything)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print_table(out: Console, table: Table) -> None:
    out.print(Text(table.title, style="bold"))
    form = form_for(table, out.width)
    if fits(form, out.width):
        _print_lines(out, list(grid_lines(form, form.rows, marked=form.marked)))
        if missing := left_out(table, form):
            _print_lines(out, wrapped(f"Left out at this width: {', '.join(missing)}.", out.width, "dim"))
    else:
        # Rows below each other have room for everything.
        _print_lines(out, list(paragraph_lines(table, table.rows, out.width, marked=table.marked)))
    for note in table.footnotes:
        _print_lines(out, wrapped(note, out.width, "dim"))


def _print_lines(out: Console, lines: list[Text]) -> None:
    for line in lines:
        out.print(line, no_wrap=True, overflow="ignore", crop=False)
