"""The estimates of a cell: every statistic of each metric, or why the samples do not support it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import Interval, MetricEstimates
from crosswind.metrics import METRICS, SHARE, STATISTICS, Statistic
from crosswind.stats import (
    Estimate,
    Resampled,
    Share,
    TooFewSamples,
    exactly,
    quantile_interval,
    refused,
    share_interval,
)
from crosswind.stats.mean import interval_of


def estimates_of(data: CellData, *, level: float) -> dict[str, MetricEstimates]:
    """The estimates of every metric that a cell has samples of."""
    return {
        name: _of_share(data.shares[name], level) if METRICS[name].is_share else _of_values(data, name, level)
        for name in data.samples
    }


def estimate_or_reason(make: Callable[[], Estimate], *, n: int, level: float, method: str, unit: str) -> Estimate:
    """An estimate, or in its place the reason why there is none."""
    try:
        return make()
    except TooFewSamples as error:
        return refused(error.message, n=n, level=level, method=method, unit=unit)


def mean_of(resampled: Resampled | TooFewSamples) -> Resampled:
    """The resampled mean. Raises: TooFewSamples when it was refused."""
    if isinstance(resampled, TooFewSamples):
        raise resampled
    return resampled


def _of_values(data: CellData, name: str, level: float) -> MetricEstimates:
    values, unit = data.samples[name].values, METRICS[name].unit

    def estimate(statistic: Statistic) -> Interval:
        made = estimate_or_reason(
            lambda: _estimate(data, name, statistic, level),
            n=values.size, level=level, method=statistic.method, unit=unit.name,
        )  # fmt: skip
        return Interval.of(made)

    estimates = {statistic.name: estimate(statistic) for statistic in STATISTICS.values()}
    return MetricEstimates.of(unit, float(values.min()), float(values.max()), estimates)


def _estimate(data: CellData, name: str, statistic: Statistic, level: float) -> Estimate:
    """Raises: TooFewSamples."""
    samples, unit = data.samples[name], METRICS[name].unit
    if statistic.quantile is not None and data.is_exact:
        value = float(np.quantile(samples.values, statistic.quantile))
        return exactly(value, n=samples.values.size, level=level, unit=unit.name)
    if statistic.quantile is not None:
        return quantile_interval(samples.values, statistic.quantile, samples.clusters, unit=unit.name, level=level)
    mean = interval_of(mean_of(data.resampled[name]), unit=unit.name, level=level)
    if unit is SHARE and mean.low is not None and mean.high is not None:
        # Student's t does not know that a share ends at 0 and 1.
        return replace(mean, low=max(0.0, mean.low), high=min(1.0, mean.high))
    return mean


def _of_share(share: Share, level: float) -> MetricEstimates:
    """What is 0 or 1 has a mean, which is the share, and no quantiles."""
    none = Interval.of(refused("a share has no quantiles", n=share.n, level=level, method="none", unit=SHARE.name))
    mean = Interval.of(share_interval(share, level=level))
    estimates = {name: mean if statistic.quantile is None else none for name, statistic in STATISTICS.items()}
    return MetricEstimates.of(SHARE, float(share.value == 1), float(share.value > 0), estimates)
