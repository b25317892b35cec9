"""The result on a terminal: what it says, the numbers, and whether to trust them."""

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from crosswind.analysis.result import Result
from crosswind.report.tables import tables_of
from crosswind.report.tables.table import Kind, Shown, Table
from crosswind.report.text.answers import answer_sentence, answered
from crosswind.report.text.claims import claim_sentence
from crosswind.report.text.format import levels
from crosswind.report.text.headline import Trust, sentences, verdict

_COLOURS = {Trust.GOOD: "green", Trust.DOUBTFUL: "yellow", Trust.BAD: "bold red"}
_MARKS = {Trust.GOOD: "✓", Trust.DOUBTFUL: "!", Trust.BAD: "✗"}
_LEFT = (Kind.NAME, Kind.SENTENCE)


def print_result(result: Result, console: Console | None = None) -> None:
    """Print a result; rich colours it on a terminal only, and not where NO_COLOR is set."""
    out = console or Console(highlight=False)
    found = verdict(result)
    out.print(Text(result.title, style="bold"))
    out.print(Text(f"{_MARKS[found.trust]} {found.sentence}", style=_COLOURS[found.trust]))
    for answer in answered(result):
        for line in textwrap.wrap(answer.asks, out.width):
            out.print(Text(line, style="bold"))
        _print_wrapped(out, answer_sentence(answer))
    for sentence in (*sentences(result), *map(claim_sentence, result.claims)):
        _print_wrapped(out, sentence)
    for table in tables_of(result):
        if table.shown is Shown.EVERYWHERE:
            _print_table(out, table)
    if result.figures:
        out.print()
        titles = "; ".join(figure.title for figure in result.figures)
        _print_wrapped(out, f"Figures, in the HTML report: {titles}.", style="dim")
    _print_doubts(out, result)


def render(result: Result, *, width: int = 80) -> str:
    """The same as plain text of a given width, without colour."""
    console = Console(width=width, no_color=True, force_terminal=False, highlight=False, record=False)
    with console.capture() as captured:
        print_result(result, console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print_wrapped(out: Console, text: str, style: str = "") -> None:
    for line in textwrap.wrap(text, out.width - 2, initial_indent="  ", subsequent_indent="    "):
        out.print(Text(line, style=style))


def _print_table(out: Console, table: Table) -> None:
    out.print()
    out.print(Text(table.title, style="bold"))
    fitting = table if _fits(table, out.width) else table.narrow or table
    rows = fitting.rows[: table.terminal_rows]
    if _fits(fitting, out.width):
        _print_grid(out, fitting, rows)
    else:
        _print_paragraphs(out, fitting, rows)
    hidden = len(fitting.rows) - len(rows)
    if hidden:
        out.print(Text(f"… and {hidden} more in the HTML report", style="dim"))
    for note in table.footnotes:
        _print_wrapped(out, note, style="dim")


def _fits(table: Table, width: int) -> bool:
    """Whether a grid keeps every number on one line; otherwise each row becomes a paragraph of its own."""
    widths = [max(len(cell) for cell in column) for column in zip(table.headings, *table.rows, strict=True)]
    return sum(widths) + 2 * len(widths) <= width


def _print_grid(out: Console, table: Table, rows: list[list[str]]) -> None:
    grid = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in table.columns:
        grid.add_column(column.heading, justify="left" if column.kind in _LEFT else "right", no_wrap=True)
    for index, row in enumerate(rows):
        grid.add_row(*(Text(cell) for cell in row), style="red" if index in table.marked else None)
    out.print(grid)


def _print_paragraphs(out: Console, table: Table, rows: list[list[str]]) -> None:
    names = table.name_columns
    for index, row in enumerate(rows):
        invalid = index in table.marked
        head = " · ".join(cell for cell in row[:names] if cell)
        out.print(Text(f"{'✗' if invalid else ' '} {head}", style="bold red" if invalid else "bold"))
        pairs = [f"{name} {cell}" for name, cell in zip(table.headings[names:], row[names:], strict=True)]
        for line in _lines(pairs, out.width - 4):
            out.print(Text(f"    {line}"), no_wrap=True, overflow="ignore", crop=False)


def _lines(parts: Iterable[str], width: int) -> Iterable[str]:
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


def _print_doubts(out: Console, result: Result) -> None:
    """Why cells are not valid, and warnings, each once."""
    reasons = [f"{levels(cell.levels)}: {cell.reason}" for cell in result.cells if cell.reason]
    warnings = dict.fromkeys([*result.warnings, *(text for cell in result.cells for text in cell.warnings)])
    if reasons or warnings:
        out.print()
    for reason in reasons:
        out.print(Text(f"invalid: {reason}", style="red"))
    for warning in warnings:
        out.print(Text(f"warning: {warning}", style="yellow"))
