"""Figures that a study asks for: estimates over the levels of a factor, models and published figures beside them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crosswind.analysis.axes import Axis, axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.metrics import METRICS
from crosswind.analysis.predictions import predictions
from crosswind.analysis.result import (
    Cell,
    Figure,
    FigureCurve,
    FigurePoint,
    FigurePublished,
    Interval,
    PublishedComparison,
)
from crosswind.record import RunRecord


def figures_of(
    record: RunRecord, data: Sequence[CellData], cells: Sequence[Cell], published: Sequence[PublishedComparison]
) -> list[Figure]:
    """The figures of a run. One in which x does not vary, as in a quick variant, is left out.

    Args: cells: the result's, whose estimates are drawn. published: the result's, shown at their cells.
    """
    made = (_figure(entry, data, {cell.cell: cell for cell in cells}, published) for entry in record.figures)
    return [figure for figure in made if len({point.x for point in figure.points}) > 1]


def _figure(
    entry: Mapping[str, Any],
    data: Sequence[CellData],
    cells: Mapping[int, Cell],
    published: Iterable[PublishedComparison],
) -> Figure:
    metric, x = str(entry["metric"]), str(entry["x"])
    series = entry.get("series")
    wanted = set(entry["cells"])
    own = [one for one in data if one.cell in wanted]
    drawn = [one for one in own if metric in cells[one.cell].estimates]
    axis = axis_of(x, drawn)
    along = _Along(axis, _names(series, x, drawn, axis))
    unit = METRICS[metric].unit
    beside: dict[int, list[FigurePublished]] = {}
    for one in published:
        if one.cell is not None and one.metric == metric and one.unit == unit:
            beside.setdefault(one.cell, []).append(
                FigurePublished(source=one.source, value=one.theirs, ci=one.theirs_ci)
            )
    points = [_point(cells[one.cell], metric, x, along, beside.get(one.cell, [])) for one in drawn]
    scale: Literal["linear", "log"] = "log" if entry.get("scale") == "log" else "linear"
    return Figure(
        title=str(entry["title"]),
        metric=metric,
        unit=unit,
        x=x,
        x_title=axis.title,
        x_unit=axis.unit,
        series=series,
        scale=scale,
        note=entry.get("note") or None,
        points=points,
        curves=_curves(list(entry.get("models") or []), metric, drawn, cells, along),
        absent=[one.cell for one in own if metric not in cells[one.cell].estimates],
    )


@dataclass(frozen=True)
class _Along:
    """Where cells stand in a drawing: along which axis, and in which series, by cell index."""

    axis: Axis
    names: Mapping[int, str | None]


def _point(cell: Cell, metric: str, x: str, along: _Along, published: list[FigurePublished]) -> FigurePoint:
    found = cell.estimates[metric]
    estimate, statistic = estimate_of(found.mean, found.median)
    return FigurePoint(
        cell=cell.cell,
        series=along.names[cell.cell],
        x=along.axis.places[cell.cell],
        x_text=cell.levels.get(x, f"{along.axis.places[cell.cell]:g}"),
        statistic=statistic,
        estimate=estimate,
        observed=(found.smallest, found.largest),
        published=published,
    )


def estimate_of(mean: Interval, median: Interval) -> tuple[Interval, str]:
    """What is drawn of a metric: the mean, else the median, else the mean's refusal."""
    return (median, "median") if mean.value is None and median.value is not None else (mean, "mean")


def _names(series: str | None, x: str, cells: Sequence[CellData], axis: Axis) -> dict[int, str | None]:
    """Each cell's series: its level, and where two cells would share a place, the other levels that tell them apart."""
    names = {one.cell: one.levels.get(series) if series else None for one in cells}
    crowded = Counter((names[one.cell], axis.places[one.cell]) for one in cells)
    if any(count > 1 for count in crowded.values()):
        levels = {key: {one.levels.get(key) for one in cells} for one in cells for key in one.levels}
        others = [key for key, found in levels.items() if key not in (series, x) and len(found) > 1]
        for one in cells:
            told = [names[one.cell], *(one.levels.get(key) for key in others)]
            names[one.cell] = " · ".join(filter(None, told)) or None
    return names


def _curves(
    models: list[str], metric: str, drawn: Sequence[CellData], cells: Mapping[int, Cell], along: _Along
) -> list[FigureCurve]:
    rows: dict[tuple[str | None, str, str], list[tuple[float, float]]] = {}
    for one in drawn:
        for made in predictions(models, cells[one.cell], one):
            if made.metric == metric and made.value is not None:
                curve = rows.setdefault((along.names[one.cell], made.model, made.title), [])
                curve.append((along.axis.places[one.cell], made.value))
    return [
        FigureCurve(series=series, model=model, label=label, xs=[x for x, _ in ordered], ys=[y for _, y in ordered])
        for (series, model, label), found in rows.items()
        for ordered in [sorted(found)]
        if len(ordered) > 1
    ]
