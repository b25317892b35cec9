"""A cell's estimates: every statistic for each metric, or why the repetitions do not support it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic
from crosswind.analysis.result import MetricEstimates
from crosswind.catalog.metrics import LOST, METRICS, STATISTICS, Metric, Per, Statistic, metric_named
from crosswind.decisions.judge import OfInterval
from crosswind.decisions.statement import Range
from crosswind.stats.chance import ONE_SIDED
from crosswind.stats.design import Tail
from crosswind.stats.diagnostics import diagnostics_of
from crosswind.stats.differences import own_values, statistic_of
from crosswind.stats.effect import Effect, claim_estimate, of_one
from crosswind.stats.estimate import Interval, TooFewSamples, estimated, exactly, refused
from crosswind.stats.majority import median_estimate
from crosswind.stats.mean import mean_interval, trimmed_mean_interval
from crosswind.stats.quantile import quantile_interval, quantile_of
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share, share_interval
from crosswind.text.quantities import SHARE, TIME

_STALL_NS = 1e9
_STALL_MEDIANS = 10


def estimates_of(data: CellData, *, level: float) -> dict[str, MetricEstimates]:
    """Estimates for every metric with samples."""
    return {name: _of_metric(data, METRICS[name], level) for name in data.samples}


def estimate_of_cell(data: CellData, name: str, statistic: str, *, level: float) -> Interval:
    """One statistic in a cell, or why there is none. Args: name: a metric's, or the share lost."""
    if name == LOST.name:
        absent = refused("there is no exchange", n=0, level=level)
        return absent if data.lost is None else share_interval(data.lost, level=level)
    if name not in data.samples:
        metric = metric_named(name)
        assert metric is not None  # The study was checked.
        return refused(data.why_absent(name), n=0, level=level)
    return one_estimate(data, METRICS[name], STATISTICS[statistic], level=level)


@dataclass(frozen=True)
class BoundedNumber:
    """A cell's statistic, judged against a bound. Attributes: name: the metric's."""

    data: CellData
    name: str
    statistic: str

    @cached_property
    def effect(self) -> Effect | None:
        """The statistic with its unseen events; None for exact numbers, shares, and statistics without a finite third
        moment.
        """
        if self.data.is_exact or self.name not in self.data.samples or METRICS[self.name].is_share:
            return None
        side, statistic = self.data.side(self.name), compared_statistic(self.statistic)
        try:
            linear = statistic_of(side.units, statistic, exact=side.exact)
        except TooFewSamples:
            return None
        effect = of_one(linear, side.design, side.chance(statistic))
        return effect if effect.design.tail in (Tail.LIGHT, Tail.SKEWED) else None

    def within(self, wanted: Range) -> OfInterval:
        """The number for the judge. A quantile's own intervals decide its needed repetitions."""
        return OfInterval(self.at, wanted, self.effect if self._quantile is None else None, self.of_most)

    def at(self, level: float) -> Interval:
        """The statistic with limits allowing for unseen events."""
        made, effect = self._estimate(level), self.effect
        if made.is_exact:
            return made
        if effect is None or self._quantile is not None:
            return self._with_claim_limits(made, level)
        if effect.is_bounded:
            metric = METRICS[self.name]
            return within_nature(claim_estimate(effect, level=level), metric)
        # The lower limit of a wait holds whatever the waits are that were not drawn.
        low = None if made.is_whole else self._with_claim_limits(made, level).low
        return replace(made, low=low, high=None, reason=made.reason or self._median(level).reason)

    @property
    def of_most(self) -> Callable[[float], Interval] | None:
        """The repetitions' median at a level: it can show a broken bound with too few touched repetitions for the
        statistic; else None.
        """
        if self.effect is None or self.effect.is_claimable:
            return None
        made = self._estimate(0.95)
        has_own_limits = made.is_exact or (made.is_whole and self._quantile is not None)
        return None if has_own_limits else self._median

    def _estimate(self, level: float) -> Interval:
        return estimate_of_cell(self.data, self.name, self.statistic, level=level)

    @property
    def _quantile(self) -> float | None:
        return STATISTICS[self.statistic].quantile

    def _with_claim_limits(self, made: Interval, level: float) -> Interval:
        """An estimate with limits for a claim: each errs in at most half (1 - level)."""
        metric = metric_named(self.name)
        tail = (1 - level) / 2
        # Order statistics assume nothing about the distribution.
        is_single = self.name in self.data.samples and self.data.samples[self.name].is_single
        if metric is not None and self.data.design(metric).is_lopsided and not (self._quantile and is_single):
            tail *= ONE_SIDED
        elif made.is_whole:
            return made
        limits = self._estimate(1 - 2 * tail if made.is_whole else 1 - tail)
        return replace(made, low=limits.low, high=limits.high)

    def _median(self, level: float) -> Interval:
        units = self.data.samples[self.name]
        values = own_values(units, compared_statistic(self.statistic))
        return median_estimate(values, n=units.n, level=level)


def one_estimate(data: CellData, metric: Metric, statistic: Statistic, *, level: float) -> Interval:
    """One statistic for a metric with samples, or why the repetitions do not support it."""
    units = data.samples[metric.name]
    return estimated(
        lambda: _estimate(data, metric, units, statistic, level), n=units.n, level=level, units=units.count
    )


def _of_metric(data: CellData, metric: Metric, level: float) -> MetricEstimates:
    units = data.samples[metric.name]
    failed = sum(data.outcomes.values()) - data.outcomes.get("ok", 0)
    return MetricEstimates.of(
        metric.unit,
        (float(units.values.min()), float(units.values.max())),
        {statistic.name: one_estimate(data, metric, statistic, level=level) for statistic in STATISTICS.values()},
        failed=failed if metric.per is Per.EXCHANGE else 0,
        stalled=_stalled(units) if metric.unit is TIME and metric.per is Per.EXCHANGE else 0,
        diagnostics=None if data.is_exact else diagnostics_of(units),
    )


def _stalled(units: Repetitions) -> int:
    """Repetitions with a value of at least a second and ten medians. Args: units: in ns."""
    limit = max(_STALL_NS, _STALL_MEDIANS * float(np.median(units.values)))
    return int(np.unique(units.member[units.values >= limit]).size)


def _estimate(data: CellData, metric: Metric, units: Repetitions, statistic: Statistic, level: float) -> Interval:
    """Raises: TooFewSamples."""
    if metric.is_share and not statistic.is_mean:
        return refused("a share has a mean alone", n=units.n, level=level, units=units.count)
    if few := statistic.shortage(units.n):
        return refused(few, n=units.n, level=level, units=units.count)
    if data.is_exact:
        return exactly(_exact_value(units, statistic), n=units.n, level=level)
    if statistic.quantile is not None:
        return quantile_interval(units, statistic.quantile, level=level, least=data.least_of(metric))
    if statistic.is_trimmed:
        trimmed = trimmed_mean_interval(units, design=data.design(metric), level=level)
        return within_nature(trimmed, metric)
    return _mean(data, metric, units, level)


def _mean(data: CellData, metric: Metric, units: Repetitions, level: float) -> Interval:
    """Raises: TooFewSamples."""
    if metric.is_share:
        return share_interval(Share.of_units(units, least=data.least_of(metric)), level=level)
    mean = mean_interval(units, design=data.design(metric), level=level)
    return within_nature(mean, metric)


def within_nature(made: Interval, metric: Metric) -> Interval:
    """An estimate with possible limits only: Student's t does not know about times ending at 0.

    The truth is possible, so the interval encloses it as often as before. A lone lower limit without information is
    left out.
    """
    if made.low is None or (metric.is_difference and metric.unit is not SHARE):
        return made
    high = made.high if made.high is None or metric.unit is not SHARE else min(1.0, made.high)
    return replace(made, low=None if high is None and made.low <= 0 else max(0.0, made.low), high=high)


def _exact_value(units: Repetitions, statistic: Statistic) -> float:
    """Raises: TooFewSamples for a timed-out exchange."""
    if statistic.quantile is None:
        return statistic_of(units, "trimmed" if statistic.is_trimmed else "mean").value
    value = quantile_of(units, statistic.quantile)
    if value is None:
        raise TooFewSamples("it is an exchange that timed out")
    return value
