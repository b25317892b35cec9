"""Fitted coefficients over their levels, beside the published ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.findings.fit.result import Fit, FitRow
from crosswind.report.charts.style import PALETTE, Along, Specification, colour_of, inline, is_log, specification, tips
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import factor_name, three_digits
from crosswind.stats.estimate import Interval
from crosswind.text.quantities import SHARE

_OURS, _PUBLISHED = "measured", "published"
_COLOURS = {_OURS: PALETTE[0], _PUBLISHED: PALETTE[1]}
_HEIGHT = 260


@dataclass(frozen=True)
class _Coefficient:
    """A coefficient at a level, with its limits where it has any."""

    source: str
    level: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None


def fit_charts(fit: Fit) -> Panels:
    """A chart of b and one of c, over the levels of `by`; none for a coefficient with a number at one level only."""
    charts = [chart for key in ("b", "c") for chart in _charts(fit, key)]
    return Panels(charts, len(charts))


def _charts(fit: Fit, key: str) -> list[Chart]:
    points = [coefficient for row in fit.rows for coefficient in _coefficients(row, key)]
    if len({coefficient.level for coefficient in points}) < 2:
        return []
    unit = f", {fit.unit}" if key == "b" else ""
    refused = [row.level or "all" for row in fit.rows if _of(row, key).value is None]
    notes = f"{_OURS.capitalize()} with 95 % interval."
    if any(point.source == _PUBLISHED for point in points):
        notes += " Hollow: published."
    if refused:
        notes += f" Without a measured one: {', '.join(refused)}."
    levels = [row.level or "all" for row in fit.rows]
    drawing = _drawing(points, levels, factor_name(fit.by), f"{key}{unit}")
    return [Chart(f"{fit.title.partition(':')[0]}: {key}", drawing, (notes,))]


def _coefficients(row: FitRow, key: str) -> list[_Coefficient]:
    level, ours = row.level or "all", _of(row, key)
    points = []
    if ours.value is not None:
        text = f"{three_digits(ours.value)} [{three_digits(ours.low)}, {three_digits(ours.high)}]"
        points.append(_Coefficient(_OURS, level, ours.value, text, ours.low, ours.high))
    for coefficient in row.published:
        value = coefficient.b if key == "b" else coefficient.c
        if value is not None:
            points.append(_Coefficient(_PUBLISHED, level, value, f"{value:g}"))
    return points


def _of(row: FitRow, key: str) -> Interval:
    return row.b if key == "b" else row.c


def _drawing(coefficients: Sequence[_Coefficient], levels: Sequence[str], by: str, title: str) -> Specification:
    ends = [end for point in coefficients for end in (point.value, point.low, point.high) if end is not None]
    log = is_log(ends, SHARE)
    along = Along.of(title, log=log, nice=True, zero=not log)
    y, sources = along.y("value"), {point.source for point in coefficients}
    base = alt.Chart(inline(coefficients)).encode(
        x=alt.X("level:O", title=by, sort=list(levels), axis=alt.Axis(labelAngle=0)),
        color=colour_of("source", {source: colour for source, colour in _COLOURS.items() if source in sources}),
        tooltip=tips("source", "level", "text"),
    )
    ours = base.transform_filter(f"datum.source == '{_OURS}'")
    published = base.transform_filter(f"datum.source == '{_PUBLISHED}'")
    layers = [
        ours.mark_rule(strokeWidth=2).encode(y=along.y("low"), y2="high:Q"),
        ours.mark_point(size=60, filled=True, opacity=1).encode(y=y),
        published.mark_point(shape="diamond", size=110, filled=False, strokeWidth=1.8, opacity=1).encode(y=y),
    ]
    return specification(layers, _HEIGHT)
