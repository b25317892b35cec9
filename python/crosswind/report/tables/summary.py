"""A run's main numbers on one screen: its workloads' compared metrics, in the worst and the best cells."""

import math
from collections.abc import Sequence
from dataclasses import replace

from crosswind.analysis.result import CellResult, MetricEstimates, Result
from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, MetricPlace, Per
from crosswind.report.tables.cut import worst_and_best
from crosswind.report.tables.metrics import asked_metrics, asked_statistics, statistic_text
from crosswind.report.tables.table import (
    OF_INTERVAL,
    Form,
    Ranking,
    Shown,
    Table,
    cell_table,
    numbers,
    words,
)
from crosswind.report.text.format import NOTHING, count, scale_of_metric

_STATISTICS = ("median", "mean", "p95")
MOST_ROWS = 40
"""Rows in a table: more than a screen has lines."""


def summary_tables(result: Result) -> list[Table]:
    """A table for each workload's main metric: all cells, or among many the worst and the best.

    The study's questions decide the main one, in order. A table's forms are ever narrower; all have the statistic in
    the first question about the metric. `cut_to` cuts them to a screen.
    """
    measured: list[tuple[Metric, list[CellResult]]] = []
    left = list(result.cells)
    asked = asked_metrics(result)
    # The study's metrics; else a client program's own times, more informative than its duration.
    for metric in sorted(METRICS.values(), key=lambda metric: _place_in(asked, metric)):
        has_it = [cell for cell in left if metric.name in cell.estimates]
        if metric.compared_in and metric.place is MetricPlace.MAIN and has_it:
            # A cell without a success has no estimates; it stands with cells of its own kind.
            measured.append((metric, has_it))
            left = _without(left, has_it)
    if not measured:
        connect = [cell for cell in left if "connect" in cell.estimates]
        measured = [(METRICS["connect"], connect)] if connect else []
        left = _without(left, connect)
    if measured:
        metric, cells = measured[0]
        measured[0] = (metric, sorted([*cells, *left], key=lambda cell: cell.cell))
    kept = {name: statistic for name, statistic in reversed(asked_statistics(result)) if statistic in STATISTICS}
    return [_table(metric, cells, kept=kept.get(metric.name, "median")) for metric, cells in measured]


def _without(cells: Sequence[CellResult], others: Sequence[CellResult]) -> list[CellResult]:
    numbers = {cell.cell for cell in others}
    return [cell for cell in cells if cell.cell not in numbers]


def _place_in(asked: Sequence[str], metric: Metric) -> tuple[int, bool]:
    place = asked.index(metric.name) if metric.name in asked else len(asked)
    return place, metric.per is not Per.REPORTED


def _table(metric: Metric, cells: Sequence[CellResult], *, kept: str) -> Table:
    """Args: kept: the statistic of all forms; the median where no cell supports it."""
    made = [cell.estimates[metric.name].statistic(kept) for cell in cells if metric.name in cell.estimates]
    if all(estimate.value is None and estimate.low is None for estimate in made):
        kept = "median"
    ordered = sorted(range(len(cells)), key=lambda cell: _badness(metric, cells[cell], kept), reverse=True)
    chosen = cells
    if len(cells) > MOST_ROWS:
        worst, best = worst_and_best(MOST_ROWS)
        chosen = [cells[number] for number in (*ordered[:worst], *ordered[len(ordered) - best :])]
        ordered = list(range(MOST_ROWS))
    scale = scale_of_metric(metric.name, cells)
    title = f"{metric.title}, {scale[1]}"
    every = tuple(dict.fromkeys((kept, *_STATISTICS)))
    pair = (kept, "median" if kept == "p95" else "p95")
    wanted: list[tuple[Sequence[str], Sequence[str]]] = [
        (every, every), (pair, every), (pair, [kept]), ([kept], [kept]), (pair, ()),
    ]  # fmt: skip
    forms = [_form(metric, chosen, scale, *statistics) for statistics in wanted]
    table = cell_table(title, chosen, forms[0], narrow=forms, shown=Shown.TERMINAL, named_by=cells)
    return replace(table, ranking=Ranking(ordered, len(cells)))


def _badness(metric: Metric, cell: CellResult, kept: str) -> tuple[float, ...]:
    """The larger the worse: a cell without a success, then the slowest by the kept statistic, then by its tail."""
    estimates = cell.estimates.get(metric.name)
    if estimates is None or not cell.valid:
        return (math.inf,)
    values = [_value(estimates, name) for name in dict.fromkeys((kept, "p95", "mean"))]
    return tuple(-value if metric.more_is_better else value for value in values)


def _form(
    metric: Metric,
    cells: Sequence[CellResult],
    scale: tuple[float, str],
    statistics: Sequence[str],
    intervals: Sequence[str],
) -> Form:
    """Some statistics, some of them with intervals."""
    rows = []
    for cell in cells:
        estimates = cell.estimates.get(metric.name)
        texts = [
            NOTHING if estimates is None
            else statistic_text(estimates, STATISTICS[name], *scale, with_interval=name in intervals)
            for name in statistics
        ]  # fmt: skip
        n = NOTHING if estimates is None else count(estimates.median.n)
        rows.append([n, count(cell.lost), *texts, _verdict(cell)])
    with_interval = {
        name for name in intervals if any(
            estimates.statistic(name).is_whole
            for cell in cells if (estimates := cell.estimates.get(metric.name)) is not None
        )
    }  # fmt: skip
    headings = [f"{name}{OF_INTERVAL}" if name in with_interval else name for name in statistics]
    return [*numbers("n", "lost", *headings), *words("verdict")], rows


def _verdict(cell: CellResult) -> str:
    if not cell.valid:
        return "INVALID"
    return "warning" if cell.warnings else "valid"


def _value(estimates: MetricEstimates, kept: str) -> float:
    known = (estimates.statistic(kept).value, estimates.median.value, estimates.mean.value)
    return next((value for value in known if value is not None), estimates.smallest)
