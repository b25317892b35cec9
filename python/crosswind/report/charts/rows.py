"""Rows of a chart that has one for each cell: labels in lines short enough for a narrow page, and room for them."""

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from crosswind.analysis.result import CellResult
from crosswind.report.text.format import levels, without_middle

LINE = 30
"""Characters of a line of a label."""
_SEPARATOR = " · "
_LINE_PX = 14
_MOST_LINES = 6
_BETWEEN_PX = 8
_FRAME_PX = 82
"""Height of what is above and below the rows: legend and axis."""


def row_name(cell: CellResult, own: Mapping[str, str], *more: str) -> str:
    """What a cell's row is called before it is broken into lines; one that is not valid is marked.

    Args: own: the levels that name the cell. more: what names the row beside them.
    """
    return _SEPARATOR.join([levels(own), *more]) + ("" if cell.valid else " ✗")


def row_labels(texts: Iterable[str]) -> Mapping[str, str]:
    """Each text as the label of its row: broken into lines between levels, and one that is longer between its words; a
    longer word loses its middle.

    Two texts that would have one label then keep all their characters.
    """
    known = list(dict.fromkeys(texts))
    short = {text: _in_lines(text) for text in known}
    labels = list(short.values())
    return {text: label if labels.count(label) == 1 else text for text, label in short.items()}


def _in_lines(text: str) -> str:
    parts = [_filled(part.split(" "), " ") if len(part) > LINE else [part] for part in text.split(_SEPARATOR)]
    lines: list[str] = []
    for levels_part in parts:
        joined = _filled([lines[-1], levels_part[0]], _SEPARATOR) if lines else levels_part[:1]
        lines[-1:] = [*joined, *levels_part[1:]]
    return "\n".join(lines)


def _filled(words: Sequence[str], separator: str) -> list[str]:
    """Words in lines, as many in each as it has space for."""
    lines: list[str] = []
    for word in (without_middle(word, LINE) for word in words):
        if lines and len(lines[-1]) + len(separator) + len(word) <= LINE:
            lines[-1] += separator + word
        else:
            lines.append(word)
    return lines


def row_axis() -> alt.Axis:
    """The axis of the rows, whose labels have several lines: Vega sets the first one beside the row, not the middle."""
    more = [
        (f"length(split(datum.value, '\\n')) == {lines}", (1 - lines) * _LINE_PX / 2) for lines in range(2, _MOST_LINES)
    ]
    return alt.Axis(
        labelExpr="split(datum.label, '\\n')",
        labelLimit=0,
        labelLineHeight=_LINE_PX,
        labelOffset={"condition": [{"test": test, "value": offset} for test, offset in more], "value": 0},
        grid=False,
    )


def rows_height(labels: Iterable[str], *, frame_px: int = _FRAME_PX, each_px: int = 0) -> int:
    """The height of a chart, px. Args: labels: of its rows. each_px: what a row needs at least."""
    shown = list(dict.fromkeys(labels))
    lines = max((label.count("\n") + 1 for label in shown), default=1)
    return frame_px + max(_LINE_PX * lines + _BETWEEN_PX, each_px) * len(shown)
