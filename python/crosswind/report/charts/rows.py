"""A chart's rows, one per cell: labels in lines short enough for a narrow page, and room for them."""

from collections.abc import Iterable, Mapping, Sequence

import altair as alt

from crosswind.analysis.result import CellResult
from crosswind.report.text.format import levels, without_middle

LINE = 30
"""Characters in a label's line."""
_SEPARATOR = " · "
_LINE_PX = 14
_MOST_LINES = 6
_BETWEEN_PX = 8
_FRAME_PX = 82
"""Height above and below the rows: legend and axis."""


def row_name(cell: CellResult, own: Mapping[str, str], *more: str) -> str:
    """A cell's row name, before it is broken into lines; invalid ones are marked.

    Args: own: the cell's naming levels. more: the row's further names.
    """
    return _SEPARATOR.join([levels(own), *more]) + ("" if cell.valid else " ✗")


def row_labels(texts: Iterable[str]) -> Mapping[str, str]:
    """Each text's row label: broken into lines between levels, then between words; a longer word loses its middle.

    Two texts with the same label keep all their characters.
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
    """The rows' axis, with multi-line labels: Vega sets the first line beside the row, not the middle."""
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
    """A chart's height, px. Args: labels: its rows'. each_px: a row's minimum."""
    shown = list(dict.fromkeys(labels))
    lines = max((label.count("\n") + 1 for label in shown), default=1)
    return frame_px + max(_LINE_PX * lines + _BETWEEN_PX, each_px) * len(shown)
