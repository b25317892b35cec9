"""A metric's empirical distribution functions."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.panels import MAX_PANELS, NO_PANELS, Roles, roles_of
from crosswind.report.charts.style import (
    DASHES,
    Along,
    Specification,
    inline,
    is_log,
    least_drawn,
    specification,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import factor_name, scale_of_metric
from crosswind.stats.arrays import Array

CURVE_POINTS = 500
"""Most points of one cell's curve; with fewer samples every one is drawn."""
MIN_SAMPLES = 30
"""Minimum samples for a distribution function; fewer are drawn one by one beside the intervals."""

_MOST = 0.99
_FAR = 3
"""Ratio of the largest sample to the 99th percentile beyond which a linear axis leaves it out."""


def distribution(name: str, result: Result, data: Sequence[CellData]) -> Panels:
    """One metric's distribution functions: a panel for each combination of factors beyond two.

    A share has none: its values are 0 and 1.
    """
    metric, drawn = METRICS[name], drawn_cells(name, data)
    if not drawn:
        return NO_PANELS
    divisor, unit = scale_of_metric(name, result.cells)
    roles = roles_of(cell.levels for cell in drawn)
    values = np.concatenate([cell.samples[name].values for cell in drawn]) / divisor
    low, high = float(values.min()), float(values.max())
    log = is_log(values.tolist(), metric.unit, metric.axis)
    # Some space at the left edge, where the axis would hide many equal values.
    low = max(low * 0.85, least_drawn(metric) / divisor) if log else low - 0.03 * (high - low)
    top = high if log else max(float(np.quantile(cell.samples[name].values, _MOST)) for cell in drawn) / divisor
    notes: tuple[str, ...] = ()
    if high > _FAR * top:
        notes, high = (f"At most {100 - 100 * _MOST:g} % of a cell's samples lie beyond the axis.",), top
    x = Along.of(f"{metric.title}, {unit}", log=log, domain=[low, high], nice=False, zero=False).x("x")
    levels = [roles.level(roles.colour, cell.levels) for cell in drawn]
    colour = Colours(cell.levels for cell in data).by("colour", roles.colour, levels)
    dash = _dash(roles, drawn)
    panels: dict[str, list[CellData]] = {}
    for cell in drawn:
        panels.setdefault(roles.panel(cell.levels), []).append(cell)
    charts: list[Chart] = []
    for caption, members in list(panels.items())[:MAX_PANELS]:
        steps = [step for cell in members for step in _steps(cell, name, roles, divisor)]
        charts.append(Chart(caption, _drawing(steps, x, unit, colour, dash), () if charts else notes))
    return Panels(charts, len(panels))


def drawn_cells(name: str, data: Sequence[CellData]) -> list[CellData]:
    """Cells with a distribution function for a metric."""
    if METRICS[name].is_share:
        return []
    return [cell for cell in data if name in cell.samples and cell.samples[name].values.size >= MIN_SAMPLES]


def curve(values: Array, points: int = CURVE_POINTS) -> tuple[Array, Array]:
    """Points on an empirical distribution function: every sample, or `points`, half of them in the slowest tenth.

    Returns: (sorted values, share of samples at or below each), always with the smallest and the largest sample.
    """
    ordered = np.sort(values)
    n = ordered.size
    if n <= points:
        ranks = np.arange(n)
    else:
        body, tail = np.linspace(0, 0.9 * n, points // 2), np.linspace(0.9 * n, n - 1, points - points // 2)
        ranks = np.unique(np.concatenate([body, tail]).astype(np.int64))
    return ordered[ranks], (ranks + 1) / n


@dataclass(frozen=True)
class _Step:
    """A distribution function's step: `y` percent of the samples are `x` or less."""

    colour: str
    dash: str
    x: float
    y: float
    n: int


def _steps(cell: CellData, name: str, roles: Roles, divisor: float) -> list[_Step]:
    values, shares = curve(cell.samples[name].values)
    n = cell.samples[name].values.size
    colour, dash = roles.level(roles.colour, cell.levels), roles.level(roles.dash, cell.levels)
    return [
        _Step(colour, dash, round(float(value) / divisor, 6), round(100 * float(share), 3), n)
        for value, share in zip(values, shares, strict=True)
    ]


def _drawing(steps: Sequence[_Step], x: alt.X, unit: str, colour: alt.Color, dash: alt.StrokeDash) -> Specification:
    """One panel. Args: colour, dash: common to all panels."""
    drawing = (
        alt.Chart(inline(steps))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=x,
            y=alt.Y("y:Q", title="share of samples, %", scale=alt.Scale(domain=[0, 100])),
            color=colour,
            strokeDash=dash,
            tooltip=[
                alt.Tooltip("colour:N"),
                alt.Tooltip("dash:N"),
                alt.Tooltip("x:Q", title=unit),
                alt.Tooltip("y:Q", title="%"),
                alt.Tooltip("n:Q"),
            ],
            order=alt.Order("y:Q"),
        )
    )
    return specification(drawing, 260)


def _dash(roles: Roles, cells: Sequence[CellData]) -> alt.StrokeDash:
    domain = list(dict.fromkeys(roles.level(roles.dash, cell.levels) for cell in cells))
    title = factor_name(roles.dash) if roles.dash else None
    legend = alt.Legend(title=title, orient="top", symbolType="stroke") if roles.dash else None
    return alt.StrokeDash("dash:N", scale=alt.Scale(domain=domain, range=DASHES[: len(domain)]), legend=legend)
