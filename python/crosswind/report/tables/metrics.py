"""The estimates of each metric, a row for each cell."""

import re
from collections.abc import Sequence
from dataclasses import replace

from crosswind.analysis.result import CellResult, MetricEstimates, Result
from crosswind.metrics import METRICS, STATISTICS, Place, Statistic, phases_of
from crosswind.report.tables.table import CellNames, Shown, Table, grouped, invalid_rows, numbers
from crosswind.report.text.format import NOTHING, count, interval, levels, observed, scale_of
from crosswind.stats import EXACT

_CONNECTION = "connect"


def metric_tables(result: Result) -> dict[str, Table]:
    """The table of every metric that any cell has, by the metric's name, unless it shares one with other metrics.

    Details are folded away, but for what the study asks for, and for connections where they are all that was measured.
    """
    present = {name for cell in result.cells for name in cell.estimates}
    own = [name for name in METRICS if name in present and METRICS[name].place in (Place.MAIN, Place.DETAIL)]
    asked = {figure.metric for figure in result.figures} | {claim.metric for claim in result.equivalences}
    connection = {_CONNECTION, *(phase.name for phase in phases_of(_CONNECTION))}
    if _CONNECTION in own and connection.issuperset(own):
        asked |= connection
    folded = {name for name in own if METRICS[name].place is Place.DETAIL and name not in asked}
    tables = {name: metric_table(name, result) for name in own}
    return {name: replace(table, shown=Shown.FOLDED) if name in folded else table for name, table in tables.items()}


def metric_table(name: str, result: Result) -> Table:
    """Every statistic of one metric, each with its interval, in one unit, for each cell that has it.

    A statistic that no cell supports has no column; a footnote says why. The narrow form has the central ones alone.
    """
    cells = [cell for cell in result.cells if name in cell.estimates]
    estimates = [cell.estimates[name] for cell in cells]
    wanted = [
        statistic for statistic in STATISTICS.values() if not METRICS[name].is_share or statistic.quantile is None
    ]
    shown = [statistic for statistic in wanted if any(_has(found, statistic) for found in estimates)]
    central = [statistic for statistic in shown if statistic.is_central]
    divisor, unit = scale_of([_middle(found) for found in estimates], estimates[0].unit)
    without_mean = any(found.mean.value is None for found in estimates)
    naming = CellNames.of(cells)
    rows, narrow = [], []
    for cell, found in zip(cells, estimates, strict=True):
        n, lost = count(found.median.n), count(cell.lost)
        seen = [_observed(found, divisor)] if without_mean else []
        rows.append([*naming.row(cell), n, lost, *_estimates(found, shown, divisor), *seen])
        narrow.append([levels(cell.levels), n, *_estimates(found, central, divisor), *seen])
    extra = ["observed"] if without_mean else []
    title = f"{METRICS[name].title}, {unit}"
    marked, notes = invalid_rows(cells), _footnotes(cells, estimates, wanted)
    small = Table(title, [*naming.joined, *numbers("n", *_headings(central), *extra)], narrow, marked, notes)
    columns = [*naming.columns, *numbers("n", "lost", *_headings(shown), *extra)]
    return Table(title, columns, rows, marked, notes, small, METRICS[name].help)


def method_name(method: str) -> str:
    """A method's name without the length of its blocks or its effective samples, so that cells share a footnote."""
    if method == EXACT:
        return "exact: nothing is left to chance in the cell, so that every repetition would be the same"
    parts = re.sub(r" \(blocks of \d+\)|, \d+ (?=effective)", lambda cut: ", " if "," in cut[0] else "", method)
    return " and ".join(dict.fromkeys(parts.split(" and ")))


def _footnotes(
    cells: Sequence[CellResult], estimates: Sequence[MetricEstimates], wanted: Sequence[Statistic]
) -> list[str]:
    """Methods in use, each once, and for every absent number its reason, each once with the cells it concerns."""
    found = [
        (cell, statistic.name, metric.statistic(statistic.name))
        for cell, metric in zip(cells, estimates, strict=True)
        for statistic in wanted
    ]
    used = grouped((method_name(part.method), name) for _, name, part in found if part.value is not None)
    absent = [
        (f"{name}: {re.sub(r', there are [0-9]+$', '', part.reason)}", levels(cell.levels))
        for cell, name, part in found
        if part.value is None and part.reason
    ]
    notes = [f"{', '.join(statistics)}: {method}" for method, statistics in used.items()]
    for why, concerned in grouped(absent).items():
        notes.append(f"{why} ({concerned[0] if len(concerned) == 1 else f'{len(concerned)} cells'})")
    return notes


def _has(estimates: MetricEstimates, statistic: Statistic) -> bool:
    return estimates.statistic(statistic.name).value is not None


def _estimates(estimates: MetricEstimates, statistics: Sequence[Statistic], divisor: float) -> list[str]:
    return [interval(estimates.statistic(statistic.name), divisor) for statistic in statistics]


def _observed(estimates: MetricEstimates, divisor: float) -> str:
    if estimates.mean.value is not None:
        return NOTHING
    return observed((estimates.smallest, estimates.largest), divisor)


def _headings(statistics: Sequence[Statistic]) -> list[str]:
    return [f"{statistic.name} [95 %]" for statistic in statistics]


def _middle(estimates: MetricEstimates) -> float:
    known = (estimates.median.value, estimates.mean.value)
    return next((value for value in known if value is not None), estimates.smallest)
