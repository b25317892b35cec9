"""Estimates as dots on lines: one line for each cell, parted into panels where cells are many."""

from collections import Counter
from typing import Any

import altair as alt

from crosswind.analysis import CellData
from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Cell, Interval, Metric, Result
from crosswind.report.charts.charts import (
    COLOUR_FIRST,
    LOG_SPREAD,
    PANELS,
    Chart,
    Panels,
    Roles,
    axis_of,
    colour_of,
    roles_of,
    spec_of,
)
from crosswind.report.text.format import levels, scale_of
from crosswind.stats.estimate import Array

ROWS = 40
"""Most cells of one chart."""


def intervals(name: str, result: Result, data: list[CellData]) -> Panels:
    """Mean with its interval, median, and where they are few, every sample: one line for each cell.

    More than ROWS cells are parted by the factors with the fewest levels, all on one scale.
    """
    cells = [cell for cell in result.cells if name in cell.estimates]
    few = {one.cell: one.samples[name].values for one in data if name in one.samples}
    few = {cell: values for cell, values in few.items() if values.size < 30}
    known = [part for cell in cells for part in _numbers(cell.estimates[name].mean, cell.estimates[name].median)]
    known += [float(value) for values in few.values() for value in values]
    if not known:
        return Panels([], 0)
    divisor, unit = scale_of(known, METRICS[name].unit)
    log = min(known) > 0 and max(known) / min(known) > LOG_SPREAD
    parting = parted_by([cell.levels for cell in cells], ROWS)
    panels = parted(cells, parting)
    title = f"{METRICS[name].title}, {unit}{', log scale' if log else ''}"
    scale = alt.Scale(type="log" if log else "linear", zero=False, nice=True)
    if len(panels) > 1:
        scale.domain = [min(known) / divisor, max(known) / divisor]
    charts = []
    for panel, members in panels[:PANELS]:
        short = {cell.cell: {key: of for key, of in cell.levels.items() if key not in parting} for cell in members}
        roles = roles_of(short.values())
        rows = []
        for cell in members:
            colour = roles.name(roles.colour, short[cell.cell])
            head = {"cell": levels(short[cell.cell]) + ("" if cell.valid else " ✗"), "colour": colour}
            rows += [{**head, **row} for row in _rows(cell.estimates[name], few.get(cell.cell), divisor)]
        colours = colour_of(roles.colour, [row["colour"] for row in rows], narrow=True)
        drawing = _drawing(rows, {"title": title, "scale": scale, "axis": axis_of(log)}, colours)
        charts.append(Chart(panel, spec_of(drawing, 70 + 22 * len(members))))
    return Panels(charts, len(panels))


def parted_by(cells: list[dict[str, str]], most: int) -> tuple[str, ...]:
    """The factors to part cells by until no part holds more than `most`: those with the fewest levels first.

    The one with the most levels is never among them, so that a panel has something to compare.
    """
    found: dict[str, set[str]] = {}
    for of in cells:
        for key, value in of.items():
            found.setdefault(key, set()).add(value)
    varied = [key for key, values in found.items() if len(values) > 1]
    chosen: list[str] = []
    for key in sorted(varied, key=lambda key: (key in COLOUR_FIRST, len(found[key])))[:-1]:
        if max(Counter(tuple(of.get(part) for part in chosen) for of in cells).values()) <= most:
            break
        chosen.append(key)
    return tuple(key for key in varied if key in chosen)


def parted(cells: list[Cell], parting: tuple[str, ...]) -> list[tuple[str, list[Cell]]]:
    """Captions and cells of the panels; one that is still too long is cut."""
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        panels.setdefault(Roles(None, None, parting).panel(cell.levels), []).append(cell)
    cut = []
    for panel, members in panels.items():
        for start in range(0, len(members), ROWS):
            part = members[start : start + ROWS]
            numbers = f"cells {start + 1} to {start + len(part)}" if len(part) < len(members) else ""
            cut.append((" · ".join(filter(None, (panel, numbers))), part))
    return cut


def _rows(metric: Metric, few: Array | None, divisor: float) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for kind, one in (("mean", metric.mean), ("median", metric.median)):
        if one.value is not None and one.low is not None and one.high is not None:
            numbers = {key: _digits(getattr(one, key) / divisor) for key in ("value", "low", "high")}
            rows.append({"kind": kind, **numbers, "method": one.method, "n": one.n})
    return rows + [
        {"kind": "sample", "value": _digits(float(value) / divisor)} for value in ([] if few is None else few)
    ]


def _drawing(rows: list[dict[str, Any]], along: dict[str, Any], colour: alt.Color) -> Any:
    # Named, because a cell without a mean is missing from the layers that are drawn first.
    order = list(dict.fromkeys(row["cell"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("cell:N", title=None, sort=order, axis=alt.Axis(labelLimit=190, grid=False)), color=colour
    )
    x, low = alt.X("value:Q", **along), alt.X("low:Q", **along)
    numbers = [alt.Tooltip(f"{key}:Q") for key in ("value", "low", "high", "n")]
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("kind:N"), *numbers, alt.Tooltip("method:N")]
    sample, mean, median = (base.transform_filter(f"datum.kind == '{kind}'") for kind in ("sample", "mean", "median"))
    return alt.layer(
        sample.mark_point(shape="circle", size=34, opacity=0.85, filled=True).encode(x=x),
        mean.mark_rule(strokeWidth=2.2).encode(x=low, x2="high:Q", tooltip=tips),
        mean.mark_point(shape="circle", size=70, filled=True, opacity=1).encode(x=x, tooltip=tips),
        median.mark_point(shape="stroke", angle=90, size=160, strokeWidth=2, opacity=1).encode(x=x, tooltip=tips),
    )


def _digits(value: float) -> float:
    """Six digits, which is finer than a pixel."""
    return float(f"{value:.6g}")


def _numbers(*parts: Interval) -> list[float]:
    return [value for one in parts for value in (one.value, one.low, one.high) if value is not None]
