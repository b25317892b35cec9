"""One number for each repetition of a cell: the mean, a quantile or a share of a metric.

What is decided between runs, or while a run goes on, rests on these: repetitions are the independent units. Exchanges
that failed have no value; to a quantile they count as worse than any that has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.catalog.metrics import LOST, STATISTICS, Metric, Per
from crosswind.cell.record import CellRun
from crosswind.stats.estimate import Array, TooFewSamples

VALUES_BEYOND = 5
"""Of a quantile that is taken of each repetition: values to be expected beyond it in each."""

Key = tuple[int, int | None]
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, eq=False)
class Summaries:
    """A statistic of each repetition of a cell.

    Attributes:
        keys: repetition and seed of each, in order. values: float64, shape (repetitions,), in the metric's unit.
        n: exchanges behind them. failed: those of them without a value.
        exact: whether they come out the same every time.
    """

    keys: tuple[Key, ...]
    values: Array
    n: int
    failed: int
    exact: bool

    def chosen(self, keys: Sequence[Key]) -> "Summaries":
        """Those of some repetitions, in the order of `keys`."""
        places = [self.keys.index(key) for key in keys]
        return Summaries(tuple(keys), self.values[places], self.n, self.failed, self.exact)


def summaries_of(data: CellData, metric: Metric, statistic: str) -> Summaries:
    """A statistic of every repetition of a cell that has values.

    Raises: TooFewSamples where the cell has none, or a repetition too few for the quantile.
    """
    by_repetition = _values(data, metric.name)
    summaries = [_summary(run, by_repetition[run.repetition], data, metric, statistic) for run in data.runs]
    known = [(key, value, n, failed) for key, value, n, failed in summaries if value is not None]
    if not known:
        raise TooFewSamples("no repetition has a value")
    return Summaries(
        keys=tuple(key for key, *_ in known),
        values=np.array([value for _, value, *_ in known]),
        n=sum(n for *_, n, _ in summaries),
        failed=sum(failed for *_, failed in summaries),
        exact=data.is_exact,
    )


def value_or_reason_of_each(data: CellData, metric: Metric, statistic: str) -> dict[int, float | str]:
    """A statistic of each repetition of a cell that has a result, by its number, or why it has none."""
    by_repetition = _values(data, metric.name)
    values: dict[int, float | str] = {}
    for run in data.runs:
        if run.failure is not None:
            continue
        try:
            _, value, *_ = _summary(run, by_repetition[run.repetition], data, metric, statistic)
            values[run.repetition] = "no exchange of a repetition has a value" if value is None else value
        except TooFewSamples as error:
            values[run.repetition] = error.message
    return values


def values_needed(quantile: float) -> int:
    """Exchanges that a repetition needs for a quantile of its own."""
    return round(VALUES_BEYOND / min(quantile, 1 - quantile))


def _summary(
    run: CellRun, values: Array, data: CellData, metric: Metric, statistic: str
) -> tuple[Key, float | None, int, int]:
    """Key, value, exchanges and failed exchanges of a repetition."""
    key = run.repetition, run.parameters.get("seed")
    failed = int((run.samples["outcome"] != "ok").sum())
    if metric is LOST:
        n = run.samples.height
        return key, failed / n if n else None, n, failed
    # A kept connection has one set-up and any number of messages: their failures say nothing about it.
    counts_failures = metric.per is Per.EXCHANGE and data.settings.kind in metric.compared_in
    missing = failed if counts_failures else 0
    quantile = STATISTICS[statistic].quantile if statistic in STATISTICS else None
    if quantile is None:
        return key, float(values.mean()) if values.size else None, values.size + missing, missing
    worst = -np.inf if metric.more_is_better else np.inf
    return key, _quantile(values, missing, worst, quantile, statistic), values.size + missing, missing


def _values(data: CellData, metric: str) -> dict[int, Array]:
    """The values of a metric by repetition."""
    samples = data.samples.get(metric)
    if samples is None:
        return {run.repetition: np.empty(0) for run in data.runs}
    values, repetitions = samples.values, samples.repetitions  # in ascending order of repetitions
    starts, ends = (np.searchsorted(repetitions, [run.repetition for run in data.runs], side) for side in _SIDES)
    return {run.repetition: values[start:end] for run, start, end in zip(data.runs, starts, ends, strict=True)}


def _quantile(values: Array, failed: int, worst: float, quantile: float, statistic: str) -> float | None:
    n, needed = values.size + failed, values_needed(quantile)
    if not n:
        return None
    if n < needed:
        raise TooFewSamples(f"for its {statistic}, a repetition needs {needed} exchanges, one has {n}")
    ordered = np.sort(np.concatenate([values, np.full(failed, worst)]))
    rank = (n - 1) * quantile
    ends = ordered[[int(rank), min(int(rank) + 1, n - 1)]]
    if not np.isfinite(ends).all():
        raise TooFewSamples(f"the {statistic} of repetitions is an exchange that failed")
    return float(ends[0] + (rank - int(rank)) * (ends[1] - ends[0]))
