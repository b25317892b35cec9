"""Units: each repetition's worth, a row for each of its numbers.

    samples of some repetitions -> units -> precisions, repetitions that these take, overviews, changes of large runs

Repetitions are independent, their contents are not: every decision between runs, or during one, rests on units. Failed
exchanges have no value; for a quantile they are worse than any value.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.catalog.metrics import LOST, METRICS, STATISTICS, Metric, Per
from crosswind.catalog.tables import SAMPLES
from crosswind.cell.record import OF_REPETITION, CellRun
from crosswind.stats.arrays import Array
from crosswind.stats.estimate import TooFewSamples

VALUES_BEYOND = 5
"""Values expected beyond a repetition's own quantile."""

NO_VALUE = "no exchange of a repetition has a value"

UNITS = pl.Schema({
    "metric": pl.Enum(list(METRICS)),
    "cell": pl.UInt32(),
    "repetition": pl.UInt32(),
    "n": pl.Int64(),
    "statistic": pl.Enum(["mean", "median", "smallest", "largest"]),
    "value": pl.Float64(),
})  # fmt: skip
"""A unit frame's columns: `value` is a `statistic` over a repetition's `n` values for a `metric`."""

_OWN = list(OF_REPETITION)


class Unit(NamedTuple):
    """A statistic in one repetition. Attributes: reason: for a missing value, else None."""

    repetition: int
    value: float | None
    reason: str | None


def units_of(data: CellData, metric: Metric, statistic: str) -> Iterator[Unit]:
    """A cell's units: one for each repetition with a result."""
    values, failed = _values(data, metric.name), failures_of(data, metric)
    for run in data.runs:
        if run.failure is None:
            yield _unit(run.repetition, values[run.repetition], failed.get(run.repetition, 0), metric, statistic)


def failures_of(data: CellData, metric: Metric) -> dict[int, int]:
    """Each repetition's failed exchanges, if they concern the metric.

    A kept connection has one set-up and any number of messages: their failures do not concern it.
    """
    if metric is not LOST and (metric.per is not Per.EXCHANGE or data.settings.kind not in metric.compared_in):
        return {}
    return {run.repetition: int((run.samples["outcome"] != "ok").sum()) for run in data.runs}


def values_needed(quantile: float) -> int:
    """Exchanges needed for a repetition's own quantile."""
    return round(VALUES_BEYOND / min(quantile, 1 - quantile))


def units_of_samples(metric: Metric, rows: pl.DataFrame) -> pl.DataFrame:
    """Units for a metric told by samples alone. Args: rows: any repetitions'. Returns: UNITS columns."""
    value = pl.sql_expr(metric.formula).cast(pl.Float64).alias("value")
    if metric.per is Per.REPETITION:
        values = rows.group_by(_OWN, maintain_order=True).agg(value)
    else:
        values = rows.select(*_OWN, value)
    of_value = pl.col("value")
    units = (
        values.filter(of_value.is_finite())
        .group_by(_OWN, maintain_order=True)
        .agg(
            n=pl.len().cast(pl.Int64),
            mean=of_value.mean(),
            median=of_value.median(),
            smallest=of_value.min(),
            largest=of_value.max(),
        )
        .unpivot(index=[*_OWN, "n"], variable_name="statistic")
    )
    return units.select(pl.lit(metric.name).alias("metric"), pl.all()).cast(UNITS)


def metrics_of_samples(cells: Sequence[CellRun]) -> Iterator[tuple[Metric, list[int] | None]]:
    """Level-comparison metrics told by samples alone, each with its cells; None: all."""
    groups: dict[str, tuple[Mapping[str, Any], list[int]]] = {}
    for cell in cells:
        workload = cell.parameters.get("workload") or {}
        groups.setdefault(json.dumps(workload), (workload, []))[1].append(cell.cell)
    by_workload = list(groups.values())
    for metric in METRICS.values():
        if not (metric.compared_in and is_of_samples(metric)):
            continue
        applicable = [
            number
            for workload, numbers in by_workload
            if workload.get("kind") in metric.compared_in and metric.applies(workload)
            for number in numbers
        ]
        if applicable:
            yield metric, None if len(applicable) == len(cells) else applicable


def is_of_samples(metric: Metric) -> bool:
    """Whether samples alone, with `setup_ns`, tell a metric."""
    is_of_them = metric.per in (Per.EXCHANGE, Per.REPETITION)
    return is_of_them and {*SAMPLES.schema, "setup_ns"}.issuperset(pl.sql_expr(metric.formula).meta.root_names())


def _unit(repetition: int, values: Array, failed: int, metric: Metric, statistic: str) -> Unit:
    quantile = STATISTICS[statistic].quantile
    if quantile is None:
        value = float(values.mean()) if values.size else None
    else:
        worst = np.full(failed, -np.inf if metric.more_is_better else np.inf)
        try:
            value = _quantile(np.sort(np.concatenate([values, worst])), quantile, statistic)
        except TooFewSamples as error:
            return Unit(repetition, None, error.message)
    return Unit(repetition, value, NO_VALUE if value is None else None)


def _values(data: CellData, metric: str) -> dict[int, Array]:
    """A metric's values by repetition."""
    samples = data.samples.get(metric)
    known = {} if samples is None else dict(zip(samples.keys, samples.of_units(), strict=True))
    by_repetition = {repetition: values for (repetition, _), (values, _) in known.items()}
    return {run.repetition: by_repetition.get(run.repetition, np.empty(0)) for run in data.runs}


def _quantile(ordered: Array, quantile: float, statistic: str) -> float | None:
    n, needed = ordered.size, values_needed(quantile)
    if not n:
        return None
    if n < needed:
        raise TooFewSamples(f"for its {statistic}, a repetition needs {needed} exchanges, one has {n}")
    rank = (n - 1) * quantile
    ends = ordered[[int(rank), min(int(rank) + 1, n - 1)]]
    if not np.isfinite(ends).all():
        raise TooFewSamples(f"the {statistic} of repetitions is an exchange that failed")
    return float(ends[0] + (rank - int(rank)) * (ends[1] - ends[0]))
