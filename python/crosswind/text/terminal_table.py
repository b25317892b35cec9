"""Tables on a terminal: columns two spaces apart; wide text is folded within its column, first between words.

A table too wide even so has a paragraph for each row.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

GAP = "  "
_NARROWEST = 4
_BETWEEN_PARTS = "   "

TextCell = str | Text


@dataclass(frozen=True)
class TextColumn:
    """A table's column. right: right-aligned, for numbers. spare: rank for leaving it out if too wide; 0: never."""

    heading: str = ""
    right: bool = False
    spare: int = 0


def number_columns(*headings: str) -> list[TextColumn]:
    """Number columns."""
    return [TextColumn(heading, right=True) for heading in headings]


def print_table(console: Console, columns: Sequence[TextColumn], rows: Sequence[Sequence[TextCell]]) -> None:
    """A table as wide as the console, or less."""
    for line in table_lines(columns, rows, console.width):
        console.print(line, soft_wrap=True)


def table_lines(
    columns: Sequence[TextColumn], rows: Sequence[Sequence[TextCell]], width: int | None = None
) -> Iterator[Text]:
    """The headings, if any, and the rows. Args: width: maximum; None: unlimited."""
    has_headings = any(column.heading for column in columns)
    lines = [[Text(column.heading, style="dim") for column in columns]] if has_headings else []
    lines += [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = {place: max((_width(line[place]) for line in lines), default=0) for place in range(len(columns))}
    if width is not None:
        _leave_out(columns, widths, width)
        _narrow(lines, widths, width)
        if table_width(widths.values()) > width:
            for row in lines[1:] if has_headings else lines:
                yield from _paragraph(columns, row, width)
            return
    for line in lines:
        cells = [_folded(line[place], room) for place, room in widths.items()]
        for number in range(max(map(len, cells), default=0)):
            yield _joined(columns, widths, [cell[number] if number < len(cell) else Text() for cell in cells])


def folded(line: Text, width: int) -> list[Text]:
    """A line folded to a width, with two characters of hanging indentation."""
    if line.cell_len <= width:
        return [line]
    start = len(line.plain) - len(line.plain.lstrip())
    first, *others = _folded(line[start:], max(width - start - 2, 1))
    return [Text(" " * start) + first, *(Text(" " * (start + 2)) + other for other in others)]


def side_by_side(parts: Iterable[Text], width: int) -> Iterator[Text]:
    """Parts side by side in lines of at most so many characters, broken across lines where they have more alone."""
    line = Text()
    for part in parts:
        if line and line.cell_len + len(_BETWEEN_PARTS) + part.cell_len > width:
            yield from folded(line, width)
            line = part
        else:
            line = Text.assemble(line, _BETWEEN_PARTS, part) if line else part
    if line:
        yield from folded(line, width)


def table_width(widths: Collection[int]) -> int:
    """Characters in a line with these column widths."""
    return sum(widths) + len(GAP) * max(0, len(widths) - 1)


def _leave_out(columns: Sequence[TextColumn], widths: dict[int, int], width: int) -> None:
    spare = sorted((column.spare, place) for place, column in enumerate(columns) if column.spare)
    for _, place in spare:
        if table_width(widths.values()) > width:
            del widths[place]


def _narrow(lines: Sequence[Sequence[Text]], widths: dict[int, int], width: int) -> None:
    """Narrows the widest column still foldable between words; without one, the widest column."""
    if table_width(widths.values()) <= width:
        return
    longest_words = {
        place: max((cell_len(word) for line in lines for word in line[place].plain.split()), default=0)
        for place in widths
    }
    while table_width(widths.values()) > width:
        foldable = [place for place in widths if widths[place] > longest_words[place]] or list(widths)
        widest = max(foldable, key=lambda place: widths[place])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1


def _paragraph(columns: Sequence[TextColumn], row: Sequence[Text], width: int) -> Iterator[Text]:
    """The first column's cell, and below it each other column with its heading."""
    parts = [
        Text.assemble((column.heading, "dim"), " ", cell) if column.heading else cell
        for column, cell in zip(columns, row, strict=True)
        if cell
    ]
    name = row[0] if row[0] and not columns[0].right else None
    if name is not None:
        yield from folded(name, width)
    for line in side_by_side(parts if name is None else parts[1:], width - 2):
        yield Text("  ") + line


def _joined(columns: Sequence[TextColumn], widths: Mapping[int, int], parts: Sequence[Text]) -> Text:
    line = Text()
    for (place, room), part in zip(widths.items(), parts, strict=True):
        space = " " * (room - part.cell_len)
        line.append_text(Text(space) + part if columns[place].right else part + Text(space)).append(GAP)
    line.rstrip()
    return line


def _width(cell: Text) -> int:
    return max((line.cell_len for line in cell.split("\n")), default=0)


def _folded(cell: Text, room: int) -> list[Text]:
    if _width(cell) <= room:
        return list(cell.split("\n"))
    lines = list(cell.wrap(Console(width=room), room, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines
