"""Estimates as dots on lines: one line for each cell, divided into panels where cells are many."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import MetricEstimates, Result
from crosswind.catalog.metrics import METRICS
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.distributions import MIN_SAMPLES
from crosswind.report.charts.panels import (
    MAX_BARS,
    MAX_PANELS,
    NO_PANELS,
    into_panels,
    panel_factors,
    roles_of,
    row_levels,
)
from crosswind.report.charts.rows import row_axis, row_labels, row_name, rows_height
from crosswind.report.charts.style import (
    Along,
    below_edge,
    inline,
    is_log,
    least_drawn,
    specification,
    tips,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import scale_of_metric
from crosswind.stats.arrays import Array
from crosswind.stats.estimate import Interval

_DRAWN = ("mean", "median")


def intervals(name: str, result: Result, data: Sequence[CellData], most: int = MAX_BARS) -> Panels:
    """Mean with its interval, median, and where they are few, every sample: one line for each cell.

    More than `most` cells are divided by the factors with the fewest levels, all on one scale.
    """
    metric = METRICS[name]
    cells = [cell for cell in result.cells if name in cell.estimates]
    few = {cell.cell: cell.samples[name].values for cell in data if name in cell.samples}
    few = {cell: values for cell, values in few.items() if values.size < MIN_SAMPLES}
    known = [part for cell in cells for kind in _DRAWN for part in _numbers(cell.estimates[name].statistic(kind))]
    known += [float(value) for values in few.values() for value in values]
    if not known:
        return NO_PANELS
    divisor, unit = scale_of_metric(name, cells)
    log = is_log(known, metric.unit, metric.axis)
    floor = least_drawn(metric) if log else -math.inf
    factors = panel_factors([cell.levels for cell in cells], most)
    panels = into_panels(cells, factors, most)
    along = Along.of(f"{metric.title}, {unit}", log=log, zero=False, nice=not log, padding=10 if log else 0)
    if len(panels) > 1:
        along.scale.domain = [max(min(known), floor) / divisor, max(known) / divisor]
    colours, roles = Colours(cell.levels for cell in result.cells), roles_of(cell.levels for cell in cells)
    charts: list[Chart] = []
    for caption, members in panels[:MAX_PANELS]:
        levels = row_levels(members, factors)
        names = {cell.cell: row_name(cell, levels[cell.cell]) for cell in members}
        labels = row_labels(names.values())
        marks = []
        for cell in members:
            label = labels[names[cell.cell]]
            level = roles.level(roles.colour, cell.levels)
            own_marks = _marks(label, level, cell.estimates[name], few.get(cell.cell), divisor)
            marks += [_from(mark, floor / divisor) for mark in own_marks]
        by = colours.by("colour", roles.colour, [mark.colour for mark in marks], labelled=True)
        note = (below_edge(floor),) if min(known) < floor and not charts else ()
        drawing = specification(_drawing(marks, along, by), rows_height(labels.values(), frame_px=50))
        charts.append(Chart(caption, drawing, note))
    return Panels(charts, len(panels))


@dataclass(frozen=True)
class _Mark:
    """A cell's mark: its mean or its median with limits, or a single sample."""

    cell: str
    colour: str
    kind: str
    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None
    n: int | None = None


def _marks(cell: str, colour: str, estimates: MetricEstimates, few: Array | None, divisor: float) -> list[_Mark]:
    def scaled(value: float) -> float:
        # Six digits are finer than a pixel.
        return float(f"{value / divisor:.6g}")

    marks = []
    for kind in _DRAWN:
        estimate = estimates.statistic(kind)
        limits = estimate.limits
        if estimate.value is not None and limits is not None:
            numbers = scaled(estimate.value), scaled(limits[0]), scaled(limits[1])
            marks.append(_Mark(cell, colour, kind, *numbers, estimate.method, estimate.n))
    samples = [float(value) for value in few] if few is not None else []
    return marks + [_Mark(cell, colour, "sample", scaled(value)) for value in samples]


def _from(mark: _Mark, floor: float) -> _Mark:
    """A mark limited to an axis's floor."""
    low, high = (None if end is None else max(end, floor) for end in (mark.low, mark.high))
    return replace(mark, value=max(mark.value, floor), low=low, high=high)


def _drawing(marks: Sequence[_Mark], along: Along, colour: alt.Color) -> list[alt.Chart]:
    # Named, because a cell without a mean is missing from the first layers.
    order = list(dict.fromkeys(mark.cell for mark in marks))
    base = alt.Chart(inline(marks)).encode(y=alt.Y("cell:N", title=None, sort=order, axis=row_axis()), color=colour)
    x, said = along.x("value"), tips("cell", "kind", "value:Q", "low:Q", "high:Q", "n:Q", "method")
    sample, mean, median = (base.transform_filter(f"datum.kind == '{kind}'") for kind in ("sample", "mean", "median"))
    return [
        sample.mark_point(shape="circle", size=34, opacity=0.85, filled=True).encode(x=x),
        mean.mark_rule(strokeWidth=2.2).encode(x=along.x("low"), x2="high:Q", tooltip=said),
        mean.mark_point(shape="circle", size=70, filled=True, opacity=1).encode(x=x, tooltip=said),
        median.mark_point(shape="stroke", angle=90, size=160, strokeWidth=2, opacity=1).encode(x=x, tooltip=said),
    ]


def _numbers(estimate: Interval) -> list[float]:
    return [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]
