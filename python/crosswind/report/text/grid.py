"""A table as lines of text: its fitting form, and the omissions."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.text import Text

from crosswind.report.tables.table import ColumnKind, Table
from crosswind.report.text.format import without_middle
from crosswind.text.terminal_table import GAP, TextColumn, folded, side_by_side, table_lines, table_width

_LEFT = (ColumnKind.NAME, ColumnKind.SENTENCE)
_BETWEEN_LEVELS = " · "
_SHORTEST_NAME = 24
_SHORTEST_LEVEL = 4


def form_for(table: Table, width: int) -> Table:
    """A table's widest fitting form, else its narrowest. Factor names give way before numbers do."""
    while not fits(table, width):
        if fits(_without_factors(table), width):
            return _without_factors(table)
        if table.narrow is None:
            break
        table = table.narrow
    return table


def fits(table: Table, width: int) -> bool:
    """Whether a grid keeps every number on one line."""
    widths = _widths(table.headings, table.rows)
    return table_width(widths) <= width


def with_short_names(table: Table, width: int) -> Table:
    """The table with row names cut to fit, if enough of them stays."""
    widths = _widths(table.headings, table.rows)
    room = width - sum(widths[1:]) - len(GAP) * (len(widths) - 1)
    if table.name_columns != 1 or room < _SHORTEST_NAME or room >= widths[0]:
        return table
    shorter = table if cell_len(table.headings[0]) <= room else _without_factors(table)
    return replace(shorter, rows=[[_cut(row[0], room), *row[1:]] for row in table.rows])


def _without_factors(table: Table) -> Table:
    if table.name_columns != 1 or _BETWEEN_LEVELS not in table.headings[0]:
        return table
    name, *others = table.columns
    return replace(table, columns=[replace(name, heading="cell"), *others])


def left_out(table: Table, form: Table) -> list[str]:
    """A narrower form's omissions: columns, and its columns' intervals."""
    kept = {_name(heading): heading for heading in form.headings}
    missing = []
    for column in table.columns:
        if column.kind is ColumnKind.NAME:
            continue
        name = _name(column.heading)
        if name not in kept:
            missing.append(name)
        elif kept[name] != column.heading:
            missing.append(f"the interval of {name}")
    return missing


def grid_lines(table: Table, width: int | None = None, *, left: Collection[ColumnKind] = _LEFT) -> Iterator[Text]:
    """The heading and the rows, aligned, marked ones in red, better ones in green.

    Args: width: maximum; None: unlimited. left: kinds aligned left, unlike numbers.
    """
    columns = [TextColumn(column.heading, right=column.kind not in left) for column in table.columns]
    styles = dict.fromkeys(table.better, "green") | dict.fromkeys(table.marked, "red")
    rows = [[Text(cell, style=styles.get(number, "")) for cell in row] for number, row in enumerate(table.rows)]
    return table_lines(columns, rows, width)


def paragraph_lines(table: Table, width: int) -> Iterator[Text]:
    """Each row as a paragraph, for a table too wide for the terminal."""
    names = table.name_columns
    for number, row in enumerate(table.rows):
        head = " · ".join(cell for cell in row[:names] if cell)
        is_marked = number in table.marked
        yield from folded(Text(f"{'✗' if is_marked else ' '} {head}", "bold red" if is_marked else "bold"), width)
        pairs = [Text(f"{name} {cell}") for name, cell in zip(table.headings[names:], row[names:], strict=True)]
        yield from (Text("    ") + line for line in side_by_side(pairs, width - 4))


def _cut(name: str, room: int) -> str:
    """Levels side by side in so much room, the longest of them cut first, in its middle: names differ at their ends."""
    parts = name.split(_BETWEEN_LEVELS)
    lengths = [len(part) for part in parts]
    while sum(lengths) + len(_BETWEEN_LEVELS) * (len(parts) - 1) > room and max(lengths) > _SHORTEST_LEVEL:
        lengths[lengths.index(max(lengths))] -= 1
    return _BETWEEN_LEVELS.join(map(without_middle, parts, lengths))


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]


def _name(heading: str) -> str:
    """A column's name without its interval's part."""
    return heading.partition(" [")[0]
