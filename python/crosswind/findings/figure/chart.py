"""A study's figures: a metric over a factor's levels, as a chart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.findings.figure.judge import Figure, FigurePoint
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.style import (
    GREY,
    LOG_LABELS,
    Along,
    dash_by_model,
    inline,
    is_log,
    scale_type,
    specification,
    tips,
)
from crosswind.report.page import Chart
from crosswind.report.text.format import count_of, interval, observed, quantity, scale_of, sentence, with_unit
from crosswind.text.quantities import SHARE

_MAX_TICKS = 9  # up to so many places along the axis each has its tick
_LOWEST_SHARE = 1 / 20  # share of a value down to which a logarithmic axis shows an interval reaching 0 or below
_ONE_SERIES = "all"
_HOLLOW: dict[str, Any] = {"shape": "diamond", "size": 110, "filled": False, "strokeWidth": 1.8, "opacity": 1}
_PUBLISHED, _SHARED = "published", "published for several series"
_STRAIGHT = 36  # maximum characters of all labels side by side, even on a narrow page; more are turned


@dataclass(frozen=True)
class _Mark:
    """A mark at a point: an estimate with its limits, a sample where there are too few, or a published number.

    `at`: the level in the study; `estimate`: the mark in words.
    """

    kind: str
    series: str
    x: float | str
    at: str
    value: float
    estimate: str
    low: float | None = None
    high: float | None = None
    n: int | None = None
    method: str | None = None
    doubtful: bool | None = None
    source: str | None = None


@dataclass(frozen=True)
class _CurvePoint:
    series: str
    model: str
    x: float | str
    value: float


def figure_chart(figure: Figure, result: Result) -> Chart:
    """The chart for a result's figure."""
    invalid = {cell.cell for cell in result.cells if not cell.valid}
    return _chart(figure, invalid, Colours(cell.levels for cell in result.cells))


@dataclass(frozen=True)
class _Drawn:
    """The figure's layers, in the drawn unit."""

    marks: list[_Mark]
    curves: list[_CurvePoint]
    unit: str

    @classmethod
    def of(cls, figure: Figure, invalid: set[int]) -> "_Drawn":
        known = [value for point in figure.points for value in (point.estimate.value, *point.observed) if value]
        # A linear axis has ticks as large as the largest value.
        divisor, unit = scale_of(known if figure.scale == "log" else [max(known, default=0.0)], figure.unit)
        marks = [mark for point in figure.points for mark in _marks(figure, point, divisor, unit, invalid)]
        curves = _curve_points(figure, divisor)
        if figure.scale == "log":  # a logarithmic axis has no place for 0 and below
            marks = [
                mark if mark.low is None else replace(mark, low=max(mark.low, mark.value * _LOWEST_SHARE))
                for mark in marks
                if mark.value > 0
            ]
            curves = [point for point in curves if point.value > 0]
        return cls(_shared_once(marks), curves, unit)


def _chart(figure: Figure, invalid: set[int], colours: Colours) -> Chart:
    drawn = _Drawn.of(figure, invalid)
    series = list(dict.fromkeys(point.series or _ONE_SERIES for point in figure.points))
    x, y = _x(figure), _y(figure, drawn.unit)
    colour = colours.by("series", figure.series, series)
    layers = _mark_layers(figure, drawn.marks, x, y, colour)
    if drawn.curves:
        layers.insert(0, _curve_layer(drawn.curves, x, y, colour))
    return Chart(figure.title, specification(layers, 360), _notes(figure, drawn.marks, invalid))


def _mark_layers(figure: Figure, marks: Sequence[_Mark], x: alt.X, y: alt.Y, colour: alt.Color) -> list[Any]:
    """Estimates with their intervals, samples where there are too few, crosses on invalid cells, published numbers.

    A line joins only ordered levels; others stand beside each other.
    """
    base = alt.Chart(inline(marks)).encode(x=x, color=colour)
    if not figure.x_is_ordered:
        base = base.encode(xOffset=alt.XOffset("series:N", sort=list(dict.fromkeys(mark.series for mark in marks))))
    kinds = ("estimate", "sample", _PUBLISHED)
    estimate, sample, published = (base.transform_filter(f"datum.kind == '{kind}'") for kind in kinds)
    is_shared = any(mark.kind == _SHARED for mark in marks)
    shared = alt.Chart(inline(marks)).encode(x=x).transform_filter(f"datum.kind == '{_SHARED}'")
    doubtful = estimate.transform_filter("datum.doubtful")
    said, published_said = tips("series", "at", "estimate", "n", "method"), tips("source", "series", "at", "estimate")
    lines = [estimate.mark_line(strokeWidth=1.2, opacity=0.8).encode(y=y)] if figure.x_is_ordered else []
    return [
        *lines,
        estimate.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        sample.mark_point(size=28, filled=True, opacity=0.45).encode(y=y, tooltip=said),
        estimate.mark_point(size=52, filled=True, opacity=1).encode(y=y, tooltip=said),
        doubtful.mark_point(shape="cross", angle=45, size=160, filled=False, strokeWidth=2, opacity=1).encode(y=y),
        published.encode(y=y, tooltip=published_said).mark_point(**_HOLLOW),
        *([shared.encode(y=y, tooltip=published_said).mark_point(color=GREY, **_HOLLOW)] if is_shared else []),
    ]


def _curve_layer(points: Sequence[_CurvePoint], x: alt.X, y: alt.Y, colour: alt.Color) -> Any:
    lines = alt.Chart(inline(points)).mark_line(strokeWidth=1.6, opacity=0.85)
    dash = dash_by_model(point.model for point in points)
    return lines.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=["model:N", "series:N", "value:Q"])


def _marks(figure: Figure, point: FigurePoint, divisor: float, unit: str, invalid: set[int]) -> list[_Mark]:
    series, place, estimate = point.series or _ONE_SERIES, _place(figure, point), point.estimate

    def mark(kind: str, value: float, text: str) -> _Mark:
        return _Mark(kind, series, place, point.x_text, value / divisor, text)

    marks = []
    limits = estimate.limits
    if estimate.value is not None and limits is not None:
        bare = mark("estimate", estimate.value, f"{point.statistic} {with_unit(interval(estimate, divisor), unit)}")
        limited = replace(bare, low=limits[0] / divisor, high=limits[1] / divisor)
        marks.append(replace(limited, n=estimate.n, method=estimate.method, doubtful=point.cell in invalid))
    else:
        text = with_unit(observed(point.observed, divisor), unit)
        marks += [
            replace(mark("sample", end, text), n=estimate.n, method=estimate.reason or "")
            for end in dict.fromkeys(point.observed)
        ]
    marks += [
        replace(mark(_PUBLISHED, published.value, quantity(published.value, figure.unit)), source=published.source)
        for published in point.published
    ]
    return marks


def _shared_once(marks: Sequence[_Mark]) -> list[_Mark]:
    """A published number beside several series, as one mark outside them."""
    values_of: dict[tuple[object, ...], set[str]] = {}
    for mark in marks:
        if mark.kind == _PUBLISHED:
            values_of.setdefault((mark.source, mark.x, mark.value), set()).add(mark.series)
    shown: dict[tuple[object, ...], _Mark] = {}
    for index, mark in enumerate(marks):
        of_mark = (mark.source, mark.x, mark.value)
        beside = values_of.get(of_mark, set()) if mark.kind == _PUBLISHED else set()
        shared = replace(mark, kind=_SHARED, series=", ".join(sorted(beside)))
        shown.setdefault(of_mark if len(beside) > 1 else (index,), shared if len(beside) > 1 else mark)
    return list(shown.values())


def _curve_points(figure: Figure, divisor: float) -> list[_CurvePoint]:
    places = {point.x: _place(figure, point) for point in figure.points}
    return [
        _CurvePoint(curve.series or _ONE_SERIES, curve.label, places[x], y / divisor)
        for curve in figure.curves
        for x, y in zip(curve.xs, curve.ys, strict=True)
    ]


def _place(figure: Figure, point: FigurePoint) -> float | str:
    return point.x if figure.x_unit else point.x_text


def _x(figure: Figure) -> alt.X:
    if figure.x_unit is None:
        order = [text for _, text in sorted({(point.x, point.x_text) for point in figure.points})]
        angle = 0 if len(order) * max(map(len, order)) <= _STRAIGHT else -40
        return alt.X("x:O", title=figure.x_title, sort=order, axis=alt.Axis(labelAngle=angle, labelLimit=0))
    places = sorted({point.x for point in figure.points})
    # A delay stays linear: the law over it is a line.
    is_size = figure.x_unit == "bytes"
    log = is_size or (figure.x_unit != "ms" and is_log(places, SHARE))
    ticks: dict[str, Any] = {"labelOverlap": "greedy", "labelSeparation": 8, "format": "~s" if is_size else LOG_LABELS}
    ticks |= {"values": places} if len(places) <= _MAX_TICKS else {"tickCount": 6}
    title = f"{figure.x_title}, {figure.x_unit}{', log scale' if log else ''}"
    return alt.X("x:Q", title=title, scale=alt.Scale(type=scale_type(log=log), nice=False, padding=12), axis=ticks)


def _y(figure: Figure, unit: str) -> alt.Y:
    log = figure.scale == "log"
    title = ", ".join(filter(None, (METRICS[figure.metric].title.lower(), unit)))
    return Along.of(title, log=log, nice=True, zero=not log).y("value")


def _notes(figure: Figure, marks: Sequence[_Mark], invalid: set[int]) -> tuple[str, ...]:
    """How to read this figure, as far as it is not its title."""
    statistics = {point.statistic for point in figure.points if point.estimate.value is not None}
    notes = [f"{' or '.join(sorted(statistics)).capitalize()} with 95 % interval."] if statistics else []
    if any(not (point.estimate.is_whole or point.estimate.is_exact) for point in figure.points):
        notes.append("A dot without a line, or with half a line: too few repetitions for an interval.")
    if any(point.estimate.value is None for point in figure.points):
        notes.append("Faint: smallest and largest sample, where samples are too few for an interval.")
    if any(point.published for point in figure.points):
        is_shared = any(mark.kind == _SHARED for mark in marks)
        notes.append(f"Hollow: published{', grey where it applies to several series' if is_shared else ''}.")
    if any(point.cell in invalid for point in figure.points):
        notes.append("Crossed: invalid.")
    if figure.absent:
        have = "has" if len(figure.absent) == 1 else "have"
        notes.append(f"{count_of(len(figure.absent), 'cell')} without a sample {have} no point.")
    return (" ".join(notes), *([sentence(figure.note)] if figure.note else []))
