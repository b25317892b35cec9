"""The estimates of a cell: every statistic of each metric, or why the repetitions do not support it."""

from collections.abc import Callable
from dataclasses import asdict, replace

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic
from crosswind.analysis.result import Diagnostics, Interval, MetricEstimates
from crosswind.metrics import LOST, METRICS, STATISTICS, Metric, Per, Statistic, metric_named
from crosswind.quantities import SHARE
from crosswind.stats import (
    Estimate,
    Repetitions,
    Share,
    Tail,
    TooFewSamples,
    exactly,
    mean_interval,
    quantile_interval,
    quantile_of,
    refused,
    share_interval,
    trimmed_mean_interval,
)
from crosswind.stats.diagnostics import diagnostics_of
from crosswind.stats.differences import own_values, statistic_of
from crosswind.stats.effect import ComparedStatistic, Effect, claim_estimate, of_one
from crosswind.stats.majority import median_estimate


def estimates_of(data: CellData, *, level: float) -> dict[str, MetricEstimates]:
    """The estimates of every metric that a cell has samples of."""
    return {name: _of_metric(data, METRICS[name], level) for name in data.samples}


def estimate_of_cell(data: CellData, name: str, statistic: str, *, level: float) -> Interval:
    """One statistic of one metric of a cell, or why there is none. Args: name: of the metric, or of the share lost."""
    if name == LOST.name:
        absent = refused("there is no exchange", n=0, level=level, unit=LOST.unit.name)
        return Interval.of(absent if data.lost is None else share_interval(data.lost, level=level))
    if name not in data.samples:
        metric = metric_named(name)
        assert metric is not None  # The study was checked.
        return Interval.of(refused(data.why_absent(name), n=0, level=level, unit=metric.unit.name))
    return one_estimate(data, METRICS[name], STATISTICS[statistic], level=level)


def deciding_estimate(data: CellData, name: str, statistic: str, *, level: float) -> Interval:
    """A statistic of a cell as bounds are decided by: with limits that allow for what chance may do that no repetition
    has shown.
    """
    made = estimate_of_cell(data, name, statistic, level=level)
    effect = None if _is_decided_by_itself(made, statistic) else effect_behind(data, name, statistic)
    if effect is None:
        return made
    if not effect.is_bounded:
        most = estimate_of_most(data, name, statistic, level=level)
        # Of a wait the lower limit alone holds, however long the waits are that were not drawn.
        one_sided = estimate_of_cell(data, name, statistic, level=(1 + level) / 2)
        low = None if made.is_whole else one_sided.low
        return made.model_copy(update={"low": low, "high": None, "reason": made.reason or most.reason})
    metric = METRICS[name]
    return Interval.of(within_nature(claim_estimate(effect, unit=metric.unit.name, level=level), metric))


def most_of(data: CellData, name: str, statistic: str) -> Callable[[float], Interval] | None:
    """The median of the repetitions' own numbers at a level, which may show that a bound is broken where chance has
    touched too few of them for the statistic to show it; else None.
    """
    effect = effect_behind(data, name, statistic)
    made = estimate_of_cell(data, name, statistic, level=0.95)
    if effect is None or effect.is_claimable or _is_decided_by_itself(made, statistic):
        return None
    return lambda level: estimate_of_most(data, name, statistic, level=level)


def estimate_of_most(data: CellData, name: str, statistic: str, *, level: float) -> Interval:
    """The median of the repetitions' own numbers. Raises: TooFewSamples where they have none."""
    units = data.samples[name]
    values = own_values(units, compared_statistic(statistic))
    return Interval.of(median_estimate(values, n=units.n, unit=METRICS[name].unit.name, level=level))


def _is_decided_by_itself(made: Interval, statistic: str) -> bool:
    """Whether an estimate is exact, or a quantile of all exchanges with an interval of its own."""
    return made.is_exact or (made.is_whole and STATISTICS[statistic].quantile is not None)


def effect_behind(data: CellData, name: str, statistic: str) -> Effect | None:
    """What tells how many repetitions decide a bound of a statistic; None where its own interval does."""
    if data.is_exact or name not in data.samples or METRICS[name].is_share:
        return None
    try:
        effect = effect_of_cell(data, METRICS[name], compared_statistic(statistic))
    except TooFewSamples:
        return None
    return effect if effect.design.tail in (Tail.LIGHT, Tail.SKEWED) else None


def effect_of_cell(data: CellData, metric: Metric, statistic: ComparedStatistic) -> Effect:
    """A statistic of a cell that claims are made of. Raises: TooFewSamples."""
    side = data.side(metric.name)
    return of_one(statistic_of(side.units, statistic, exact=side.exact), side.design, side.chance(statistic))


def one_estimate(data: CellData, metric: Metric, statistic: Statistic, *, level: float) -> Interval:
    """One statistic of a metric that a cell has samples of, or why the repetitions do not support it."""
    units = data.samples[metric.name]
    try:
        made = _estimate(data, metric, units, statistic, level)
    except TooFewSamples as error:
        made = refused(error.message, n=units.n, level=level, unit=metric.unit.name, units=units.count)
    return Interval.of(made)


def _of_metric(data: CellData, metric: Metric, level: float) -> MetricEstimates:
    units = data.samples[metric.name]
    failed = sum(data.outcomes.values()) - data.outcomes.get("ok", 0)
    return MetricEstimates.of(
        metric.unit,
        (float(units.values.min()), float(units.values.max())),
        {statistic.name: one_estimate(data, metric, statistic, level=level) for statistic in STATISTICS.values()},
        failed=failed if metric.per is Per.EXCHANGE else 0,
        diagnostics=None if data.is_exact else Diagnostics(**asdict(diagnostics_of(units))),
    )


def _estimate(data: CellData, metric: Metric, units: Repetitions, statistic: Statistic, level: float) -> Estimate:
    """Raises: TooFewSamples."""
    unit = metric.unit.name
    if metric.is_share and not statistic.is_mean:
        return refused("a share has a mean alone", n=units.n, level=level, unit=unit, units=units.count)
    if data.is_exact:
        return exactly(_exact_value(units, statistic), n=units.n, level=level, unit=unit)
    if statistic.quantile is not None:
        return quantile_interval(units, statistic.quantile, unit=unit, level=level, least=data.least_of(metric))
    if statistic.is_trimmed:
        trimmed = trimmed_mean_interval(units, unit=unit, design=data.design(metric), level=level)
        return within_nature(trimmed, metric)
    return _mean(data, metric, units, level)


def _mean(data: CellData, metric: Metric, units: Repetitions, level: float) -> Estimate:
    """Raises: TooFewSamples."""
    if metric.is_share:
        return share_interval(Share.of_units(units, least=data.least_of(metric)), level=level)
    mean = mean_interval(units, unit=metric.unit.name, design=data.design(metric), level=level)
    return within_nature(mean, metric)


def within_nature(made: Estimate, metric: Metric) -> Estimate:
    """An estimate whose limits are numbers that the metric can have: Student's t does not know that a time ends at 0.

    The truth is one of these numbers, so that the interval encloses it as often as before. A lower limit alone that
    says nothing is left out.
    """
    if made.low is None or (metric.is_difference and metric.unit is not SHARE):
        return made
    high = made.high if made.high is None or metric.unit is not SHARE else min(1.0, made.high)
    return replace(made, low=None if high is None and made.low <= 0 else max(0.0, made.low), high=high)


def _exact_value(units: Repetitions, statistic: Statistic) -> float:
    """Raises: TooFewSamples where it is an exchange that timed out."""
    if statistic.quantile is None:
        return statistic_of(units, "trimmed" if statistic.is_trimmed else "mean").value
    value = quantile_of(units, statistic.quantile)
    if value is None:
        raise TooFewSamples("it is an exchange that timed out")
    return value
