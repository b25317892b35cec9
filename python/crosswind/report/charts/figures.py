"""Figures that a study asks for: a metric over the levels of a factor, as a chart."""

from typing import Any

import altair as alt

from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Figure, FigurePoint, Result
from crosswind.report.charts.charts import DASHES, PALETTE, Chart, spec_of
from crosswind.report.text.format import factor_name, interval, observed, quantity, scale_of
from crosswind.report.text.headline import counted

_GREY = "#888888"
_TICKS = 9  # up to so many places along the axis each has its tick


def figure_charts(result: Result) -> list[Chart]:
    """A chart for each figure of a result."""
    invalid = {cell.cell for cell in result.cells if not cell.valid}
    return [_chart(figure, invalid) for figure in result.figures]


def _chart(figure: Figure, invalid: set[int]) -> Chart:
    known = [value for point in figure.points for value in (point.estimate.value, *point.observed) if value]
    divisor, unit = scale_of(known, figure.unit)
    log = figure.scale == "log"
    points = [row for point in figure.points for row in _rows(figure, point, divisor, unit, point.cell in invalid)]
    places = {point.x: point.x if figure.x_unit else point.x_text for point in figure.points}
    curves: list[dict[str, Any]] = [
        {"series": curve.series or "all", "model": curve.label, "x": places[x], "value": y / divisor}
        for curve in figure.curves
        for x, y in zip(curve.xs, curve.ys, strict=True)
    ]
    if log:  # a logarithmic axis has no place for 0 and below
        points, curves = ([row for row in rows if row["value"] > 0] for rows in (points, curves))
        points = [{**row, "low": max(row["low"], row["value"] / 20)} if "low" in row else row for row in points]
    x = _x(figure)
    title = ", ".join(filter(None, (METRICS[figure.metric].title.lower(), unit, "log scale" if log else "")))
    scale = alt.Scale(type="log" if log else "linear", nice=True, zero=not log)
    y = alt.Y("value:Q", title=title, scale=scale, axis={"tickCount": 5} | ({"format": "~g"} if log else {}))
    colour = _colour(figure)
    measured = alt.Chart(alt.InlineData(values=points)).encode(x=x, color=colour)
    estimate, sample, theirs = (measured.transform_filter(f"datum.kind == '{kind}'") for kind in _KINDS)
    doubtful = estimate.transform_filter("datum.doubtful")
    tips = [alt.Tooltip(f"{key}:N") for key in ("series", "at", "estimate", "n", "method")]
    layers = [
        estimate.mark_line(strokeWidth=1.2, opacity=0.8).encode(y=y),
        estimate.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        sample.mark_point(size=28, filled=True, opacity=0.45).encode(y=y, tooltip=tips),
        estimate.mark_point(size=52, filled=True, opacity=1).encode(y=y, tooltip=tips),
        doubtful.mark_point(shape="cross", angle=45, size=160, filled=False, strokeWidth=2, opacity=1).encode(y=y),
        theirs.mark_point(shape="diamond", size=110, filled=False, strokeWidth=1.8, opacity=1).encode(
            y=y, tooltip=[alt.Tooltip(f"{key}:N") for key in ("source", "series", "at", "estimate")]
        ),
    ]
    if curves:
        models = list(dict.fromkeys(curve.label for curve in figure.curves))
        dashes = alt.Scale(domain=models, range=(DASHES[1:] + DASHES[:1])[: len(models)])
        legend = alt.Legend(title="model", orient="bottom", columns=2, symbolStrokeColor=_GREY, symbolType="stroke")
        drawn = alt.Chart(alt.InlineData(values=curves)).mark_line(strokeWidth=1.6, opacity=0.85)
        dash = alt.StrokeDash("model:N", scale=dashes, legend=legend)
        layers.insert(
            0, drawn.encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=["model:N", "series:N", "value:Q"])
        )
    return Chart(figure.title, spec_of(alt.layer(*layers), 360), _notes(figure, invalid))


_KINDS = ("estimate", "sample", "published")


def _rows(figure: Figure, point: FigurePoint, divisor: float, unit: str, doubtful: bool) -> list[dict[str, Any]]:
    head = {"series": point.series or "all", "x": point.x if figure.x_unit else point.x_text, "at": point.x_text}
    estimate = point.estimate
    rows: list[dict[str, Any]] = []
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        numbers = {key: getattr(estimate, key) / divisor for key in ("value", "low", "high")}
        said = f"{point.statistic} {interval(estimate, divisor)} {unit}"
        about = {"estimate": said, "n": estimate.n, "method": estimate.method, "doubtful": doubtful}
        rows.append({**head, "kind": "estimate", **numbers, **about})
    else:
        said = f"{observed(point.observed, divisor)} {unit}"
        about = {"estimate": said, "n": estimate.n, "method": estimate.reason or ""}
        ends = dict.fromkeys(point.observed)
        rows += [{**head, "kind": "sample", "value": end / divisor, **about} for end in ends]
    for theirs in point.published:
        said = quantity(theirs.value, figure.unit)
        rows.append(
            {**head, "kind": "published", "value": theirs.value / divisor, "source": theirs.source, "estimate": said}
        )
    return rows


def _x(figure: Figure) -> alt.X:
    if figure.x_unit is None:
        order = [text for _, text in sorted({(point.x, point.x_text) for point in figure.points})]
        return alt.X("x:O", title=figure.x_title, sort=order, axis=alt.Axis(labelAngle=0))
    places = sorted({point.x for point in figure.points})
    log = figure.x_unit == "bytes"
    axis: dict[str, Any] = {"labelOverlap": True} | ({"format": "~s"} if log else {})
    axis |= {"values": places} if len(places) <= _TICKS else {"tickCount": 6}
    title = f"{figure.x_title}, {figure.x_unit}{', log scale' if log else ''}"
    return alt.X(
        "x:Q", title=title, scale=alt.Scale(type="log" if log else "linear", nice=False, padding=12), axis=axis
    )


def _colour(figure: Figure) -> alt.Color:
    domain = list(dict.fromkeys(point.series or "all" for point in figure.points))
    legend = alt.Legend(title=factor_name(figure.series) if figure.series else None, orient="top")
    return alt.Color(
        "series:N",
        scale=alt.Scale(domain=domain, range=[PALETTE[index % len(PALETTE)] for index in range(len(domain))]),
        legend=legend if len(domain) > 1 else None,
    )


def _notes(figure: Figure, invalid: set[int]) -> tuple[str, ...]:
    """How to read this figure, as far as it is not its title."""
    statistics = {point.statistic for point in figure.points if point.estimate.value is not None}
    said = [f"{' or '.join(sorted(statistics)).capitalize()} with 95 % interval."] if statistics else []
    if any(point.estimate.value is None for point in figure.points):
        said.append("Faint: smallest and largest sample, where there are too few for an interval.")
    if any(point.published for point in figure.points):
        said.append("Hollow: published.")
    if any(point.cell in invalid for point in figure.points):
        said.append("Crossed: not to be trusted.")
    if figure.absent:
        count = len(figure.absent)
        said.append(f"{counted(count, 'cell')} without a sample {'has' if count == 1 else 'have'} no point.")
    return (" ".join(said), *([figure.note] if figure.note else []))
