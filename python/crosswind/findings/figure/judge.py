"""A study's figures: estimates over a factor's levels, beside models and published numbers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crosswind.analysis.axes import Axis, axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.predictions import predictions_of
from crosswind.analysis.result import CellResult, MetricEstimates
from crosswind.catalog.metrics import METRICS, are_far_apart
from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Note, Stored
from crosswind.findings.judged import Context, Judging
from crosswind.findings.published.judge import PublishedResult
from crosswind.stats.estimate import Interval

_FAR_APART = 100
"""How many times its smallest value a figure's largest one is, where its axis is logarithmic."""


class AskedFigure(Stored):
    """A metric to draw over the levels of `x`, a line for each level of `series`."""

    title: str
    metric: str
    statistic: str | None = None
    x: str
    series: str | None = None
    models: tuple[str, ...] = ()
    scale: Literal["auto", "linear", "log"] = "auto"
    note: Note = None
    cells: frozenset[int]


class PublishedPoint(ResultModel):
    """A published number in a figure, in the figure's unit. ci: half width."""

    source: str
    value: float
    ci: float | None


class FigurePoint(ResultModel):
    """One cell in a figure. `x`: its place (Figure), `x_text`: the level in the study.

    `estimate`: the figure's statistic. Without a requested one, it is the mean, the median if no mean can be estimated,
    or the refused mean. `statistic` names it.
    """

    cell: int
    series: str | None
    x: float
    x_text: str
    statistic: str
    estimate: Interval
    observed: tuple[float, float]
    published: list[PublishedPoint]


class FigureCurve(ResultModel):
    """A model's predictions for one series' cells, at their own places."""

    series: str | None
    model: str
    label: str
    xs: list[float]
    ys: list[float]


class Figure(ResultModel):
    """A metric over a factor's levels, as a study requests it. Values in `unit`.

    `x` and `series` are keys. Places along x are numbers in `x_unit`: loss in %, the round trip for `path.delay` in ms,
    rates in Mbit/s, sizes in bytes; with a null `x_unit` they only count the levels. `x_is_ordered`: whether one level
    is more than another. `scale`: the metric's. `absent`: cells without a sample, and without a point.
    """

    title: str
    metric: str
    unit: str
    x: str
    x_title: str
    x_unit: str | None
    x_is_ordered: bool
    series: str | None
    scale: Literal["linear", "log"]
    note: str | None
    points: list[FigurePoint]
    curves: list[FigureCurve]
    absent: list[int]


def judge_figures(context: Context) -> list[Figure]:
    """A run's figures, without those with a constant x, as in a quick variant."""
    results = {cell.cell: cell for cell in context.cells}
    published = [finding for finding in context.found.get("published", ()) if isinstance(finding, PublishedResult)]
    asked = map(AskedFigure.model_validate, context.record.asked.get("figure", ()))
    made = (_figure(figure, context.data, results, published) for figure in asked)
    return [figure for figure in made if len({point.x for point in figure.points}) > 1]


@dataclass(frozen=True)
class _Places:
    """Cells' places in a figure, by index: along its axis, and their series."""

    axis: Axis
    series: Mapping[int, str | None]


def _figure(
    asked: AskedFigure,
    data: Sequence[CellData],
    cells: Mapping[int, CellResult],
    published: Iterable[PublishedResult],
) -> Figure:
    metric = METRICS[asked.metric]
    cells_of_figure = [cell for cell in data if cell.cell in asked.cells]
    drawn = [cell for cell in cells_of_figure if metric.name in cells[cell.cell].estimates]
    axis = axis_of(asked.x, drawn)
    places = _Places(axis, _series_names(asked, drawn, axis))
    # Published numbers are means.
    beside = _published_points(asked.metric, published) if asked.statistic in (None, "mean") else {}
    return Figure(
        **asked.shared_with(Figure, but=("scale",)),
        unit=metric.unit.name,
        x_title=axis.title,
        x_unit=axis.unit,
        x_is_ordered=axis.is_ordered,
        scale=_scale(asked, [cells[cell.cell] for cell in drawn]),
        points=[_point(cells[cell.cell], asked, places, beside.get(cell.cell, [])) for cell in drawn],
        curves=_curves(asked, drawn, cells, places),
        absent=[cell.cell for cell in cells_of_figure if metric.name not in cells[cell.cell].estimates],
    )


def _scale(asked: AskedFigure, cells: Iterable[CellResult]) -> Literal["linear", "log"]:
    """A figure's requested scale, or a logarithmic one if a linear one would hide its small values."""
    if asked.scale != "auto":
        return asked.scale
    estimates = [cell.estimates[asked.metric] for cell in cells]
    values = [_estimate(cell_estimates, asked.statistic)[0].value for cell_estimates in estimates]
    known = [value for value in values if value is not None] or [
        cell_estimates.smallest for cell_estimates in estimates
    ]
    return "log" if are_far_apart(known, _FAR_APART, METRICS[asked.metric].unit) else "linear"


def _published_points(metric: str, published: Iterable[PublishedResult]) -> dict[int, list[PublishedPoint]]:
    """A metric's published numbers at each cell."""
    points: dict[int, list[PublishedPoint]] = {}
    for each in published:
        if each.metric == metric and each.theirs is not None:
            point = PublishedPoint(source=each.source, value=each.theirs, ci=each.theirs_ci)
            for cell in [number.cell for number in each.numbers if number.cell is not None]:
                points.setdefault(cell, []).append(point)
    return points


def _point(cell: CellResult, asked: AskedFigure, places: _Places, published: list[PublishedPoint]) -> FigurePoint:
    estimates = cell.estimates[asked.metric]
    estimate, statistic = _estimate(estimates, asked.statistic)
    x = places.axis.places[cell.cell]
    return FigurePoint(
        cell=cell.cell,
        series=places.series[cell.cell],
        x=x,
        x_text=cell.levels.get(asked.x, f"{x:g}"),
        statistic=statistic,
        estimate=estimate,
        observed=(estimates.smallest, estimates.largest),
        published=published,
    )


def _estimate(estimates: MetricEstimates, asked: str | None) -> tuple[Interval, str]:
    """A metric's drawn estimate: the requested statistic, else the mean, the median or the refused mean."""
    if asked is not None:
        return estimates.statistic(asked), asked
    mean, median = estimates.mean, estimates.median
    return (median, "median") if mean.value is None and median.value is not None else (mean, "mean")


def _series_names(asked: AskedFigure, cells: Sequence[CellData], axis: Axis) -> dict[int, str | None]:
    """Each cell's series: its level, and for two cells at one place, their other differing levels too."""
    names = {cell.cell: cell.levels.get(asked.series) if asked.series else None for cell in cells}
    shared = Counter((names[cell.cell], axis.places[cell.cell]) for cell in cells)
    if all(count == 1 for count in shared.values()):
        return names
    levels = {key: {cell.levels.get(key) for cell in cells} for cell in cells for key in cell.levels}
    others = [key for key, of_factor in levels.items() if key not in (asked.series, asked.x) and len(of_factor) > 1]
    return {
        cell.cell: " · ".join(filter(None, [names[cell.cell], *(cell.levels.get(key) for key in others)])) or None
        for cell in cells
    }


def _curves(
    asked: AskedFigure, drawn: Sequence[CellData], cells: Mapping[int, CellResult], places: _Places
) -> list[FigureCurve]:
    """The models' predictions for each series, at the places of its cells."""
    rows: dict[tuple[str | None, str, str], list[tuple[float, float]]] = {}
    for cell in drawn:
        for made in predictions_of(asked.models, cells[cell.cell].estimates, cell):
            if made.metric == asked.metric and made.value is not None:
                curve = rows.setdefault((places.series[cell.cell], made.model, made.title), [])
                curve.append((places.axis.places[cell.cell], made.value))
    return [
        FigureCurve(
            series=series,
            model=model,
            label=label,
            xs=[x for x, _ in sorted(points)],
            ys=[y for _, y in sorted(points)],
        )
        for (series, model, label), points in rows.items()
        if len(points) > 1
    ]


JUDGING = Judging("figure", "figures", Figure, judge_figures)
