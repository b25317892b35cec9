"""Figures that a study asks for: a metric over the levels of a factor, as a chart."""

from dataclasses import dataclass
from typing import Any

import altair as alt

from crosswind.analysis.result import Figure, FigurePoint, Result
from crosswind.metrics import METRICS
from crosswind.report.charts.panels import Chart
from crosswind.report.charts.style import PALETTE, dash_by_model, scale_type, specification
from crosswind.report.text.format import count_of, factor_name, interval, observed, quantity, scale_of

_MAX_TICKS = 9  # up to so many places along the axis each has its tick
_LOWEST_SHARE = 1 / 20  # of its value, to which a logarithmic axis shows an interval that goes to 0 or below
_ONE_SERIES = "all"

_Row = dict[str, Any]


def figure_charts(result: Result) -> list[Chart]:
    """A chart for each figure of a result."""
    invalid = {cell.cell for cell in result.cells if not cell.valid}
    return [_chart(figure, invalid) for figure in result.figures]


@dataclass(frozen=True)
class _Rows:
    """The data of a figure's layers, in the unit in which it is drawn."""

    points: list[_Row]
    curves: list[_Row]
    unit: str

    @classmethod
    def of(cls, figure: Figure, invalid: set[int]) -> "_Rows":
        known = [value for point in figure.points for value in (point.estimate.value, *point.observed) if value]
        divisor, unit = scale_of(known, figure.unit)
        points = [row for point in figure.points for row in _point_rows(figure, point, divisor, unit, invalid)]
        curves = _curve_rows(figure, divisor)
        if figure.scale == "log":  # a logarithmic axis has no place for 0 and below
            points = [_above_zero(row) for row in points if row["value"] > 0]
            curves = [row for row in curves if row["value"] > 0]
        return cls(points, curves, unit)


def _chart(figure: Figure, invalid: set[int]) -> Chart:
    rows = _Rows.of(figure, invalid)
    x, y, colour = _x(figure), _y(figure, rows.unit), _colour(figure)
    layers = _point_layers(rows.points, x, y, colour)
    if rows.curves:
        layers.insert(0, _curve_layer(rows.curves, x, y, colour))
    return Chart(figure.title, specification(alt.layer(*layers), 360), _notes(figure, invalid))


def _point_layers(rows: list[_Row], x: alt.X, y: alt.Y, colour: alt.Color) -> list[Any]:
    """Estimates with their intervals, samples where there are too few, crosses on invalid cells, published numbers."""
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, color=colour)
    kinds = ("estimate", "sample", "published")
    estimate, sample, published = (base.transform_filter(f"datum.kind == '{kind}'") for kind in kinds)
    doubtful = estimate.transform_filter("datum.doubtful")
    tips = [alt.Tooltip(f"{key}:N") for key in ("series", "at", "estimate", "n", "method")]
    published_tips = [alt.Tooltip(f"{key}:N") for key in ("source", "series", "at", "estimate")]
    return [
        estimate.mark_line(strokeWidth=1.2, opacity=0.8).encode(y=y),
        estimate.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        sample.mark_point(size=28, filled=True, opacity=0.45).encode(y=y, tooltip=tips),
        estimate.mark_point(size=52, filled=True, opacity=1).encode(y=y, tooltip=tips),
        doubtful.mark_point(shape="cross", angle=45, size=160, filled=False, strokeWidth=2, opacity=1).encode(y=y),
        published.mark_point(shape="diamond", size=110, filled=False, strokeWidth=1.8, opacity=1).encode(
            y=y, tooltip=published_tips
        ),
    ]


def _curve_layer(rows: list[_Row], x: alt.X, y: alt.Y, colour: alt.Color) -> Any:
    lines = alt.Chart(alt.InlineData(values=rows)).mark_line(strokeWidth=1.6, opacity=0.85)
    dash = dash_by_model(row["model"] for row in rows)
    return lines.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=["model:N", "series:N", "value:Q"])


def _point_rows(figure: Figure, point: FigurePoint, divisor: float, unit: str, invalid: set[int]) -> list[_Row]:
    head = {"series": point.series or _ONE_SERIES, "x": _place(figure, point), "at": point.x_text}
    estimate = point.estimate
    rows: list[_Row] = []
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        about = {
            "estimate": f"{point.statistic} {interval(estimate, divisor)} {unit}",
            "n": estimate.n,
            "method": estimate.method,
            "doubtful": point.cell in invalid,
        }
        scaled = {key: number / divisor for key, number in numbers.items()}
        rows.append({**head, "kind": "estimate", **scaled, **about})
    else:
        seen = f"{observed(point.observed, divisor)} {unit}"
        about = {"estimate": seen, "n": estimate.n, "method": estimate.reason or ""}
        ends = dict.fromkeys(point.observed)
        rows += [{**head, "kind": "sample", "value": end / divisor, **about} for end in ends]
    for published in point.published:
        about = {"source": published.source, "estimate": quantity(published.value, figure.unit)}
        rows.append({**head, "kind": "published", "value": published.value / divisor, **about})
    return rows


def _curve_rows(figure: Figure, divisor: float) -> list[_Row]:
    places = {point.x: _place(figure, point) for point in figure.points}
    return [
        {"series": curve.series or _ONE_SERIES, "model": curve.label, "x": places[x], "value": y / divisor}
        for curve in figure.curves
        for x, y in zip(curve.xs, curve.ys, strict=True)
    ]


def _above_zero(row: _Row) -> _Row:
    return {**row, "low": max(row["low"], row["value"] * _LOWEST_SHARE)} if "low" in row else row


def _place(figure: Figure, point: FigurePoint) -> float | str:
    return point.x if figure.x_unit else point.x_text


def _x(figure: Figure) -> alt.X:
    if figure.x_unit is None:
        order = [text for _, text in sorted({(point.x, point.x_text) for point in figure.points})]
        return alt.X("x:O", title=figure.x_title, sort=order, axis=alt.Axis(labelAngle=0))
    places = sorted({point.x for point in figure.points})
    log = figure.x_unit == "bytes"
    axis: dict[str, Any] = {"labelOverlap": True} | ({"format": "~s"} if log else {})
    axis |= {"values": places} if len(places) <= _MAX_TICKS else {"tickCount": 6}
    title = f"{figure.x_title}, {figure.x_unit}{', log scale' if log else ''}"
    return alt.X("x:Q", title=title, scale=alt.Scale(type=scale_type(log=log), nice=False, padding=12), axis=axis)


def _y(figure: Figure, unit: str) -> alt.Y:
    log = figure.scale == "log"
    title = ", ".join(filter(None, (METRICS[figure.metric].title.lower(), unit, "log scale" if log else "")))
    scale = alt.Scale(type=scale_type(log=log), nice=True, zero=not log)
    return alt.Y("value:Q", title=title, scale=scale, axis={"tickCount": 5} | ({"format": "~g"} if log else {}))


def _colour(figure: Figure) -> alt.Color:
    domain = list(dict.fromkeys(point.series or _ONE_SERIES for point in figure.points))
    legend = alt.Legend(title=factor_name(figure.series) if figure.series else None, orient="top")
    return alt.Color(
        "series:N",
        scale=alt.Scale(domain=domain, range=[PALETTE[index % len(PALETTE)] for index in range(len(domain))]),
        legend=legend if len(domain) > 1 else None,
    )


def _notes(figure: Figure, invalid: set[int]) -> tuple[str, ...]:
    """How to read this figure, as far as it is not its title."""
    statistics = {point.statistic for point in figure.points if point.estimate.value is not None}
    notes = [f"{' or '.join(sorted(statistics)).capitalize()} with 95 % interval."] if statistics else []
    if any(point.estimate.value is None for point in figure.points):
        notes.append("Faint: smallest and largest sample, where there are too few for an interval.")
    if any(point.published for point in figure.points):
        notes.append("Hollow: published.")
    if any(point.cell in invalid for point in figure.points):
        notes.append("Crossed: not to be trusted.")
    if figure.absent:
        have = "has" if len(figure.absent) == 1 else "have"
        notes.append(f"{count_of(len(figure.absent), 'cell')} without a sample {have} no point.")
    return (" ".join(notes), *([figure.note] if figure.note else []))
