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
from crosswind.report.text.format import factor_name, scale_of
from crosswind.stats.estimate import Array

_SHORT = 8
"""Characters of names of which four stand in one line of a narrow legend."""

PALETTE = ["#2A82C4", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#A6761D"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
POINTS = 500
"""Most points of one cell's curve; with fewer samples every one is drawn."""
LOG_SPREAD = 20
PANELS = 12
"""Most panels of one kind that a page draws; what it leaves out it counts."""
COLOUR_FIRST = ("workload.transport", "host.congestion_control")
"""Factors that are told by colour wherever they vary."""


@dataclass(frozen=True)
class Chart:
    """A chart: its caption, its specification, which holds its data, and remarks to print below."""

    caption: str
    spec: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Panels:
    """Charts of one kind, and how many there would be: at most PANELS of them are drawn."""

    charts: list[Chart]
    total: int


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
    fitting = [key for key in (*COLOUR_FIRST, *varied) if key in varied and len(found[key]) <= len(PALETTE)]
    colour = fitting[0] if fitting else None
    dashed = [key for key in varied if key != colour and len(found[key]) <= len(DASHES)]
    dash = dashed[0] if dashed else None
    return Roles(colour, dash, tuple(key for key in varied if key not in (colour, dash)))


def distribution(name: str, data: list[CellData]) -> Panels:
    """Empirical distribution functions of one metric: a panel for each combination of the remaining factors."""
    drawn = [one for one in data if name in one.samples and one.samples[name].values.size >= 30]
    if not drawn:
        return Panels([], 0)
    divisor, unit = scale_of([float(np.median(one.samples[name].values)) for one in drawn], METRICS[name].unit)
    roles = roles_of(one.levels for one in drawn)
    low = min(float(one.samples[name].values.min()) for one in drawn) / divisor
    high = max(float(one.samples[name].values.max()) for one in drawn) / divisor
    log = low > 0 and high / low > LOG_SPREAD
    # Room at the left edge, where the clean mass of a distribution would hide behind the axis.
    low = low * 0.85 if log else low - 0.03 * (high - low)
    scale = alt.Scale(type="log" if log else "linear", domain=[low, high], nice=False, zero=False)
    members: dict[str, list[CellData]] = {}
    for one in drawn:
        members.setdefault(roles.panel(one.levels), []).append(one)
    title = f"{METRICS[name].title}, {unit}{', log scale' if log else ''}"
    charts = []
    for panel, inside in list(members.items())[:PANELS]:
        rows = [row for one in inside for row in _curve_rows(one, name, roles, divisor)]
        drawing = (
            alt.Chart(alt.InlineData(values=rows))
            .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
            .encode(
                x=alt.X("x:Q", title=title, scale=scale, axis=axis_of(log)),
                y=alt.Y("y:Q", title="share of samples, %", scale=alt.Scale(domain=[0, 100])),
                color=colour_of(roles.colour, [roles.name(roles.colour, one.levels) for one in drawn]),
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
    return Panels(charts, len(members))


def _curve_rows(one: CellData, name: str, roles: Roles, divisor: float) -> list[dict[str, Any]]:
    x, y = curve(one.samples[name].values)
    head = {"colour": roles.name(roles.colour, one.levels), "dash": roles.name(roles.dash, one.levels)}
    return [{**head, "x": round(v / divisor, 6), "y": round(100 * s, 3)} for v, s in zip(x, y, strict=True)]


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


def colour_of(factor: str | None, names: Iterable[str], *, narrow: bool = False) -> alt.Color:
    """The colour of the field `colour`: one for each name, with a legend where a factor gives the names; `narrow` where
    labels leave the drawing little room, to which long names in columns would not keep.
    """
    domain = list(dict.fromkeys(names))
    columns = 2 if narrow and max(map(len, domain), default=0) > _SHORT else alt.Undefined
    legend = alt.Legend(title=factor_name(factor), orient="top", columns=columns) if factor else None
    return alt.Color("colour:N", scale=alt.Scale(domain=domain, range=PALETTE[: len(domain)]), legend=legend)


def _dash(roles: Roles, cells: Iterable[Any]) -> alt.StrokeDash:
    domain = list(dict.fromkeys(roles.name(roles.dash, cell.levels) for cell in cells))
    title = factor_name(roles.dash) if roles.dash else None
    legend = alt.Legend(title=title, orient="top", symbolType="stroke") if roles.dash else None
    return alt.StrokeDash("dash:N", scale=alt.Scale(domain=domain, range=DASHES[: len(domain)]), legend=legend)


def axis_of(log: bool) -> alt.Axis:
    """An axis of some six ticks."""
    return alt.Axis(labelOverlap=True, format="~g" if log else "", tickCount=6) if log else alt.Axis(tickCount=6)


def spec_of(drawing: Any, height: int) -> dict[str, Any]:
    """A chart's specification, as wide as its place and `height` pixels high."""
    spec: dict[str, Any] = drawing.properties(width="container", height=height).to_dict(validate=False)
    for unwanted in ("$schema", "config"):  # the page configures all charts alike, and nothing shall look like a link
        spec.pop(unwanted, None)
    return spec
