"""Charts as Vega-Lite specifications, each of one view, so that a page can let them wrap and shrink.

Colours are Okabe and Ito's, which colour-blind readers can tell apart, the blue lightened to show on a dark page too;
a second factor is told by dashes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from crosswind.analysis import CellData
from crosswind.analysis.metrics import METRICS
from crosswind.report.format import factor_name, levels, scale_of
from crosswind.result import Interval, Result
from crosswind.stats.estimate import Array

PALETTE = ["#2A82C4", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#A6761D"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
POINTS = 500
"""Most points of one cell's curve; with fewer samples every one is drawn."""
LOG_SPREAD = 20
_COLOUR_FIRST = ("workload.transport", "host.congestion_control")
_PANELS = 12


@dataclass(frozen=True)
class Chart:
    """A chart: its caption and its specification, which holds its data."""

    caption: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Roles:
    """Which factor is told by colour, which by dash, and which by a panel of its own."""

    colour: str | None
    dash: str | None
    panels: tuple[str, ...]

    def name(self, key: str | None, of: dict[str, str]) -> str:
        """A cell's level of one factor; the factor's absence is one level."""
        return of.get(key, "all") if key else "all"

    def panel(self, of: dict[str, str]) -> str:
        """The panel that a cell is drawn in."""
        return " · ".join(f"{factor_name(key)} {of[key]}" for key in self.panels if key in of)


def roles_of(cells: Iterable[dict[str, str]]) -> Roles:
    """Colour for transport or congestion control if they vary, dash for the next factor, panels for the rest."""
    found: dict[str, dict[str, None]] = {}
    for of in cells:
        for key, value in of.items():
            found.setdefault(key, {})[value] = None
    varied = [key for key, values in found.items() if len(values) > 1]
    fitting = [key for key in (*_COLOUR_FIRST, *varied) if key in varied and len(found[key]) <= len(PALETTE)]
    colour = fitting[0] if fitting else None
    dashed = [key for key in varied if key != colour and len(found[key]) <= len(DASHES)]
    dash = dashed[0] if dashed else None
    return Roles(colour, dash, tuple(key for key in varied if key not in (colour, dash)))


def distribution(name: str, data: list[CellData]) -> list[Chart]:
    """Empirical distribution functions of one metric: a panel for each combination of the remaining factors."""
    drawn = [one for one in data if name in one.samples and one.samples[name].values.size >= 30]
    if not drawn:
        return []
    divisor, unit = scale_of([float(np.median(one.samples[name].values)) for one in drawn], METRICS[name].unit)
    roles = roles_of(one.levels for one in drawn)
    low = min(float(one.samples[name].values.min()) for one in drawn) / divisor
    high = max(float(one.samples[name].values.max()) for one in drawn) / divisor
    log = low > 0 and high / low > LOG_SPREAD
    # Room at the left edge, where the clean mass of a distribution would hide behind the axis.
    low = low * 0.85 if log else low - 0.03 * (high - low)
    scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False, zero=False)
    panels: dict[str, list[dict[str, Any]]] = {}
    for one in drawn:
        x, y = curve(one.samples[name].values)
        rows = panels.setdefault(roles.panel(one.levels), [])
        head = {"colour": roles.name(roles.colour, one.levels), "dash": roles.name(roles.dash, one.levels)}
        rows += [{**head, "x": round(v / divisor, 6), "y": round(100 * s, 3)} for v, s in zip(x, y, strict=True)]
    title = f"{METRICS[name].title}, {unit}{', log scale' if log else ''}"
    charts = []
    for panel, rows in list(panels.items())[:_PANELS]:
        drawing = (
            alt.Chart(alt.InlineData(values=rows))
            .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
            .encode(
                x=alt.X("x:Q", title=title, scale=scale, axis=_axis(log)),
                y=alt.Y("y:Q", title="share of samples, %", scale=alt.Scale(domain=[0, 100])),
                color=_colour(roles, drawn),
                strokeDash=_dash(roles, drawn),
                tooltip=[
                    alt.Tooltip("colour:N"),
                    alt.Tooltip("dash:N"),
                    alt.Tooltip("x:Q", title=unit),
                    alt.Tooltip("y:Q", title="%"),
                ],
                order=alt.Order("y:Q"),
            )
        )
        charts.append(Chart(panel, spec_of(drawing, 260)))
    return charts


def intervals(name: str, result: Result, data: list[CellData]) -> list[Chart]:
    """Mean with its interval, median, and where they are few, every sample: one line for each cell."""
    cells = [cell for cell in result.cells if name in cell.estimates]
    samples = {one.cell: one.samples[name].values for one in data if name in one.samples}
    known = [part for cell in cells for part in _numbers(cell.estimates[name].mean, cell.estimates[name].median)]
    few = {cell: values for cell, values in samples.items() if values.size < 30}
    known += [float(value) for values in few.values() for value in values]
    if not known:
        return []
    divisor, unit = scale_of(known, METRICS[name].unit)
    log = min(known) > 0 and max(known) / min(known) > LOG_SPREAD
    roles = roles_of(cell.levels for cell in cells)
    rows: list[dict[str, Any]] = []
    for cell in cells:
        metric = cell.estimates[name]
        head = {
            "cell": levels(cell.levels) + ("" if cell.valid else " ✗"),
            "colour": roles.name(roles.colour, cell.levels),
        }
        for kind, one in (("mean", metric.mean), ("median", metric.median)):
            if one.value is not None and one.low is not None and one.high is not None:
                limits = {"low": one.low / divisor, "high": one.high / divisor}
                rows.append(
                    {**head, "kind": kind, "value": one.value / divisor, **limits, "method": one.method, "n": one.n}
                )
        rows += [{**head, "kind": "sample", "value": float(value) / divisor} for value in few.get(cell.cell, [])]
    title = f"{METRICS[name].title}, {unit}{', log scale' if log else ''}"
    scale = alt.Scale(type="log" if log else "linear", zero=False, nice=True)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("cell:N", title=None, sort=None, axis=alt.Axis(labelLimit=190, grid=False)), color=_colour(roles, cells)
    )
    x = alt.X("value:Q", title=title, scale=scale, axis=_axis(log))
    low = alt.X("low:Q", title=title, scale=scale, axis=_axis(log))
    numbers = [alt.Tooltip(f"{key}:Q") for key in ("value", "low", "high", "n")]
    tips = [alt.Tooltip("cell:N"), alt.Tooltip("kind:N"), *numbers, alt.Tooltip("method:N")]
    sample, mean, median = (base.transform_filter(f"datum.kind == '{kind}'") for kind in ("sample", "mean", "median"))
    drawing = alt.layer(
        sample.mark_point(shape="circle", size=34, opacity=0.85, filled=True).encode(x=x),
        mean.mark_rule(strokeWidth=2.2).encode(x=low, x2="high:Q", tooltip=tips),
        mean.mark_point(shape="circle", size=70, filled=True, opacity=1).encode(x=x, tooltip=tips),
        median.mark_point(shape="stroke", angle=90, size=160, strokeWidth=2, opacity=1).encode(x=x, tooltip=tips),
    )
    return [Chart("", spec_of(drawing, 70 + 22 * len(cells)))]


def curve(values: Array, points: int = POINTS) -> tuple[Array, Array]:
    """Points of an empirical distribution function: every sample, or `points`, half of them in the slowest tenth.

    Returns: (sorted values, share of samples at or below each), the smallest and the largest sample always among them.
    """
    ordered = np.sort(values)
    n = ordered.size
    if n <= points:
        ranks = np.arange(n)
    else:
        body, tail = np.linspace(0, 0.9 * n, points // 2), np.linspace(0.9 * n, n - 1, points - points // 2)
        ranks = np.unique(np.concatenate([body, tail]).astype(np.int64))
    return ordered[ranks], (ranks + 1) / n


def _numbers(*parts: Interval) -> list[float]:
    return [value for one in parts for value in (one.value, one.low, one.high) if value is not None]


def _colour(roles: Roles, cells: Iterable[Any]) -> alt.Color:
    domain = list(dict.fromkeys(roles.name(roles.colour, cell.levels) for cell in cells))
    title = factor_name(roles.colour) if roles.colour else None
    legend = alt.Legend(title=title, orient="top") if roles.colour else None
    return alt.Color("colour:N", scale=alt.Scale(domain=domain, range=PALETTE[: len(domain)]), legend=legend)


def _dash(roles: Roles, cells: Iterable[Any]) -> alt.StrokeDash:
    domain = list(dict.fromkeys(roles.name(roles.dash, cell.levels) for cell in cells))
    title = factor_name(roles.dash) if roles.dash else None
    legend = alt.Legend(title=title, orient="top", symbolType="stroke") if roles.dash else None
    return alt.StrokeDash("dash:N", scale=alt.Scale(domain=domain, range=DASHES[: len(domain)]), legend=legend)


def _axis(log: bool) -> alt.Axis:
    return alt.Axis(labelOverlap=True, format="~g" if log else "", tickCount=6) if log else alt.Axis(tickCount=6)


def spec_of(drawing: Any, height: int) -> dict[str, Any]:
    """A chart's specification, as wide as its place and `height` pixels high."""
    spec: dict[str, Any] = drawing.properties(width="container", height=height).to_dict(validate=False)
    for unwanted in ("$schema", "config"):  # the page configures all charts alike, and nothing shall look like a link
        spec.pop(unwanted, None)
    return spec
