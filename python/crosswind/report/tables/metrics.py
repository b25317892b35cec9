"""Each metric's estimates, a row for each cell."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crosswind.analysis.result import CellResult, MetricEstimates, Result
from crosswind.catalog.metrics import METRICS, STATISTICS, MetricPlace, Statistic, phases_of
from crosswind.report.showing import showings
from crosswind.report.tables.reasons import merged_by_cells, merged_reasons
from crosswind.report.tables.table import OF_INTERVAL, Form, Shown, Table, cell_table, grouped, numbers
from crosswind.report.text.format import count, count_of, finest_of, interval, levels, number, scale_of_metric, sentence
from crosswind.stats.estimate import EXACT, Interval

_CONNECTION = "connect"
_FEW = ("median", "p95")
_IN_PARENTHESES = (
    "In parentheses, without an interval: its single limit, or the smallest and largest value of the repetitions."
)
_OF_ALL = (
    "A quantile is of all exchanges of a cell; where two cells are compared, it is the mean of the repetitions' own."
)
_CENSORED = "Quantiles count timed-out exchanges as longer than the timeout; the mean is over successful exchanges."


def metric_tables(result: Result) -> dict[str, Table]:
    """Each present metric's table, by the metric's name, unless it shares one.

    Metrics in questions and claims come first. Details are folded away, but for the study's own metrics, and for
    connections if nothing else was measured.
    """
    present = {name for cell in result.cells for name in cell.estimates}
    order = [*asked_metrics(result), *METRICS]
    metric_names = [
        name for name in METRICS if name in present and METRICS[name].place in (MetricPlace.MAIN, MetricPlace.DETAIL)
    ]
    metric_names.sort(key=order.index)
    asked = set(asked_metrics(result))
    connection = {_CONNECTION, *(phase.name for phase in phases_of(_CONNECTION))}
    if _CONNECTION in metric_names and connection.issuperset(metric_names):
        asked |= connection
    folded = {name for name in metric_names if METRICS[name].place is MetricPlace.DETAIL and name not in asked}
    tables = {name: metric_table(name, result) for name in metric_names}
    return {name: replace(table, shown=Shown.FOLDED) if name in folded else table for name, table in tables.items()}


def asked_metrics(result: Result) -> list[str]:
    """The study's metrics, in its order."""
    return list(dict.fromkeys(metric for metric, _ in asked_statistics(result)))


def asked_statistics(result: Result) -> list[tuple[str, str | None]]:
    """The same, each with its requested statistic, if any."""
    return [asked for showing in showings() for asked in showing.metrics(result)]


def metric_table(name: str, result: Result) -> Table:
    """One metric's statistics, each with its interval, in one unit, for each of its cells.

    A statistic unsupported in all cells has no column; a footnote says why. Narrower forms have the median and the 95th
    percentile, and at last these without their intervals.
    """
    cells = [cell for cell in result.cells if name in cell.estimates]
    estimates = [cell.estimates[name] for cell in cells]
    wanted = [statistic for statistic in STATISTICS.values() if not METRICS[name].is_share or statistic.is_mean]
    shown = [statistic for statistic in wanted if any(_has(of_cell, statistic) for of_cell in estimates)]
    divisor, unit = scale_of_metric(name, cells)
    failed = any(of_cell.failed for of_cell in estimates)
    counts = [(count(of_cell.median.n), count(cell.lost)) for cell, of_cell in zip(cells, estimates, strict=True)]
    rows = [
        [*counted, *_estimates(of_cell, shown, divisor, unit)]
        for counted, of_cell in zip(counts, estimates, strict=True)
    ]
    few = [statistic for statistic in shown if statistic.name in _FEW] or shown
    narrow: list[Form] = []
    for with_interval in (few, few[:1], []):
        lines = [
            [
                *counted,
                *(
                    statistic_text(of_cell, statistic, divisor, unit, with_interval=statistic in with_interval)
                    for statistic in few
                ),
            ]
            for counted, of_cell in zip(counts, estimates, strict=True)
        ]
        heads = [
            heading if statistic in with_interval else heading.removesuffix(OF_INTERVAL)
            for statistic, heading in zip(few, _headings(few, failed=failed), strict=True)
        ]
        narrow.append((numbers("n", "lost", *heads), lines))
    title, form = f"{METRICS[name].title}, {unit}", (numbers("n", "lost", *_headings(shown, failed=failed)), rows)
    # A statistic of a thousand values is missed only where it could be.
    explained = [statistic for statistic in wanted if statistic.least == 1 or statistic in shown]
    notes = _footnotes(cells, estimates, explained)
    return cell_table(title, cells, form, notes, narrow=narrow, help=METRICS[name].help)


def statistic_text(
    estimates: MetricEstimates, statistic: Statistic, divisor: float, unit: str, *, with_interval: bool
) -> str:
    """A statistic with its interval, if any and wanted; "over 5 000" for timed-out exchanges."""
    estimate = estimates.statistic(statistic.name)
    if with_interval and (estimate.is_whole or estimate.is_exact):
        return interval(estimate, divisor, finest=finest_of(unit))
    if estimate.value is None and estimate.low is not None:
        return f"over {number(estimate.low, divisor)}"
    return number(estimate.value, divisor, finest=finest_of(unit))


def why_no_interval(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Reasons for absent intervals, a sentence each. Args: reasons: each with its cell."""
    return [
        sentence(f"{why} ({cells[0] if len(cells) == 1 else count_of(len(cells), 'cell')})")
        for why, cells in merged_by_cells(merged_reasons(reasons))
    ]


def interval_notes(made: Sequence[tuple[Interval, str]], statistic: str = "") -> list[str]:
    """The methods in use, each once, and reasons for absent intervals.

    Args: made: estimates, each with its cells. statistic: its name, for the notes.
    """
    head = f"{statistic}: " if statistic else ""
    used = dict.fromkeys(method_name(part.method) for part, _ in made if part.is_whole or part.is_exact)
    return [
        *(sentence(f"{head}{method}") for method in used),
        *why_no_interval((part.reason, of) for part, of in made if part.reason),
    ]


def method_name(method: str) -> str:
    """A method's name; an explanation for an exact number."""
    if method == EXACT:
        return "exact: without randomness in the cell, every repetition gives the same result"
    return method


def _footnotes(
    cells: Sequence[CellResult], estimates: Sequence[MetricEstimates], wanted: Sequence[Statistic]
) -> list[str]:
    """Methods in use, each once, and the reason for every incomplete interval, once with its cells."""
    estimated = [
        (cell, statistic, metric.statistic(statistic.name))
        for cell, metric in zip(cells, estimates, strict=True)
        for statistic in wanted
    ]
    used = grouped(
        (method_name(part.method), statistic.heading)
        for _, statistic, part in estimated
        if part.is_whole or part.is_exact
    )
    short = [(part.reason, levels(cell.levels)) for cell, _, part in estimated if part.reason]
    notes = [sentence(f"{', '.join(statistics)}: {method}") for method, statistics in used.items()]
    notes += why_no_interval(short)
    if any(part.value is not None and not (part.is_whole or part.is_exact) for _, _, part in estimated):
        notes.append(_IN_PARENTHESES)
    if any(metric.failed for metric in estimates):
        notes.append(_CENSORED)
    quantiles = [part for _, statistic, part in estimated if statistic.quantile is not None and not part.is_exact]
    if len(cells) > 1 and any(part.value is not None and part.n > part.units for part in quantiles):
        notes.append(_OF_ALL)
    return notes


def _has(estimates: MetricEstimates, statistic: Statistic) -> bool:
    estimate = estimates.statistic(statistic.name)
    return estimate.value is not None or estimate.low is not None


def _estimates(estimates: MetricEstimates, statistics: Sequence[Statistic], divisor: float, unit: str) -> list[str]:
    finest = finest_of(unit)
    return [interval(estimates.statistic(statistic.name), divisor, finest=finest) for statistic in statistics]


def _headings(statistics: Sequence[Statistic], *, failed: bool) -> list[str]:
    """Args: failed: whether a mean leaves out any exchanges."""
    return [
        f"{statistic.heading}{' of successes' if failed and statistic.is_mean else ''}{OF_INTERVAL}"
        for statistic in statistics
    ]
