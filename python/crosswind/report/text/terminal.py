"""The result on a terminal: what it says, the numbers, and whether to trust them."""

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from crosswind.analysis.result import Result
from crosswind.report.charts.profiles import profile_table
from crosswind.report.tables.costs import cpu_table, drops_table, overhead_table
from crosswind.report.tables.equivalence import equivalence_tables
from crosswind.report.tables.peers import peers_table
from crosswind.report.tables.tables import (
    PHASES,
    Table,
    comparisons_table,
    fit_tables,
    is_connecting,
    loss_table,
    metric_tables,
    models_table,
    published_table,
)
from crosswind.report.text.headline import sentences, verdict

_COLOURS = {"good": "green", "doubtful": "yellow", "bad": "bold red"}
_MARKS = {"good": "✓", "doubtful": "!", "bad": "✗"}
_SECONDARY = ("delayed_share", "connect", *PHASES, "request", "reply", "transfer_time_app")
_COMPARISONS_SHOWN = 12


def print_result(result: Result, console: Console | None = None) -> None:
    """Print a result; colours only on a terminal and without NO_COLOR, as rich has it."""
    out = console or Console(highlight=False)
    kind, sentence = verdict(result)
    out.print(Text(result.title, style="bold"))
    out.print(Text(f"{_MARKS[kind]} {sentence}", style=_COLOURS[kind]))
    for line in sentences(result):
        for wrapped in textwrap.wrap(line, out.width - 2, initial_indent="  ", subsequent_indent="    "):
            out.print(Text(wrapped))
    for table, _ in fit_tables(result):
        _print(out, table)
    asked = {one.metric for one in result.figures} | {one.metric for one in result.equivalences}
    for name, table in metric_tables(result):
        if name not in _SECONDARY or name in asked or (is_connecting(result) and name in ("connect", *PHASES)):
            _print(out, table)
    costs = (drops_table(result), overhead_table(result), cpu_table(result), profile_table(result))
    beside = (models_table(result), published_table(result), comparisons_table(result))
    for extra in (loss_table(result), *costs, *equivalence_tables(result), *beside):
        if extra is not None:
            _print(out, extra, limit=_COMPARISONS_SHOWN)
    if peers := peers_table(result):
        _print(out, peers)
    if result.figures:
        said = f"Figures, in the HTML report: {'; '.join(figure.title for figure in result.figures)}."
        out.print()
        for line in textwrap.wrap(said, out.width - 2, initial_indent="  ", subsequent_indent="    "):
            out.print(Text(line, style="dim"))
    _doubts(out, result)


def render(result: Result, *, width: int = 80) -> str:
    """The same as plain text of a given width, without colour."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, record=False)
    with console.capture() as captured:
        print_result(result, console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print(out: Console, table: Table, *, limit: int | None = None) -> None:
    out.print()
    out.print(Text(table.title, style="bold"))
    fitting = table if _fits(table, out.width) else table.narrow or table
    if _fits(fitting, out.width):
        _print_grid(out, fitting, limit)
    else:
        _print_folded(out, fitting, limit)
    hidden = len(table.rows) - (limit or len(table.rows))
    if hidden > 0:
        out.print(Text(f"… and {hidden} more in the HTML report", style="dim"))
    for note in table.footnotes:
        for line in textwrap.wrap(note, out.width - 2, initial_indent="  ", subsequent_indent="    "):
            out.print(Text(line, style="dim"))


def _fits(table: Table, width: int) -> bool:
    """Whether a grid keeps every number on one line; otherwise each row becomes a paragraph of its own."""
    widths = [max(len(cell) for cell in column) for column in zip(table.columns, *table.rows, strict=True)]
    return sum(widths) + 2 * len(widths) <= width


def _print_grid(out: Console, table: Table, limit: int | None) -> None:
    grid = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for index, column in enumerate(table.columns):
        grid.add_column(column, justify="left" if index < table.text else "right", no_wrap=True)
    for index, row in enumerate(table.rows[:limit]):
        grid.add_row(*(Text(cell) for cell in row), style="red" if index in table.marked else None)
    out.print(grid)


def _print_folded(out: Console, table: Table, limit: int | None) -> None:
    for index, row in enumerate(table.rows[:limit]):
        doubtful = index in table.marked
        head = " · ".join(cell for cell in row[: table.text] if cell)
        out.print(Text(f"{'✗' if doubtful else ' '} {head}", style="bold red" if doubtful else "bold"))
        pairs = [f"{name} {cell}" for name, cell in zip(table.columns[table.text :], row[table.text :], strict=True)]
        for line in _filled(pairs, out.width - 4):
            out.print(Text(f"    {line}"), no_wrap=True, overflow="ignore", crop=False)


def _filled(parts: Iterable[str], width: int) -> Iterable[str]:
    """Parts side by side, none broken across lines."""
    line = ""
    for part in parts:
        if line and len(line) + 3 + len(part) > width:
            yield line
            line = part
        else:
            line = f"{line}   {part}" if line else part
    if line:
        yield line


def _doubts(out: Console, result: Result) -> None:
    lines = [f"{' · '.join(cell.levels.values()) or 'the cell'}: {cell.reason}" for cell in result.cells if cell.reason]
    warnings = dict.fromkeys([*result.warnings, *(text for cell in result.cells for text in cell.warnings)])
    if lines or warnings:
        out.print()
    for line in lines:
        out.print(Text(f"invalid: {line}", style="red"))
    for line in warnings:
        out.print(Text(f"warning: {line}", style="yellow"))
