"""A statistic of a metric in both runs, and how far they lie apart: as levels within a run are compared.

Repetitions with the same number and the same seed met the same losses in both runs and form pairs. One thing differs
from a comparison within a run. Every exchange that failed counts as slower than all others to a quantile, not only what
timed out: a run that refuses its slow exchanges must not look fast.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic
from crosswind.analysis.two_runs.matching import Pair
from crosswind.analysis.two_runs.result import Change
from crosswind.analysis.units import failures_of
from crosswind.catalog.metrics import LOST, SHARE_STATISTIC, Metric
from crosswind.stats.differences import Side, difference, independent_at_best, pairs_of, ratio, statistic_of
from crosswind.stats.effect import ComparedStatistic, Effect, claim_estimate, is_constant
from crosswind.stats.estimate import EXACT, MOST, Interval, TooFewSamples
from crosswind.stats.quantile import quantile_of
from crosswind.stats.significance import effect_estimate, is_sign_test, size_of, without_rounding
from crosswind.text.quantities import RATE

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class MeasuredPair:
    """A statistic of a metric in a pair of cells; of paired ones in the repetitions that both have.

    Attributes: left: repetitions of each that have no partner. pooled: of a quantile that of all exchanges of each.
    """

    metric: Metric
    statistic: ComparedStatistic
    a: Side
    b: Side
    paired: bool
    left: tuple[int, int] = (0, 0)
    pooled: tuple[float | None, float | None] = (None, None)

    @property
    def values(self) -> tuple[float, float]:
        """The statistic in both runs, in the metric's unit."""
        values = (statistic_of(side.units, self.statistic, exact=side.exact).value for side in (self.a, self.b))
        return next(values), next(values)

    @cached_property
    def difference(self) -> Effect:
        """B less A, in the metric's unit."""
        made = difference(self.a, self.b, self.statistic)
        # Shares that are the same in every repetition have an interval too.
        return independent_at_best(made, self.a, self.b) if self.metric.is_share else made

    @cached_property
    def ratio(self) -> Effect | None:
        """ln(B / A); None for shares, and where a number is not above 0."""
        if self.metric.is_share or min(self.values) <= 0:
            return None
        return ratio(self.a, self.b, self.statistic)

    @property
    def shown(self) -> Effect:
        """The ratio, or where that does not exist or has no interval of its statistic, the difference; and where that
        has none either, the ratio in most repetitions."""
        if self.ratio is None or self.is_short(self.ratio):
            return self.difference
        if self.is_sign_test(self.ratio) and not self.is_sign_test(self.difference):
            return self.difference
        return self.ratio

    def size(self, effect: Effect) -> float:
        """How large the numbers are that an effect compares: what is far smaller is rounding."""
        return 1.0 if effect.is_ratio else size_of(self.a, self.b)

    def is_short(self, effect: Effect) -> bool:
        """Whether nothing judges an effect: the design supports no interval, and the pairs are too few for signs."""
        return effect.shortage is not None and not self.is_constant(effect) and self.estimate(effect, LEVEL).low is None

    def is_sign_test(self, effect: Effect) -> bool:
        """Whether what judges an effect is about most repetitions."""
        return is_sign_test(effect, size=self.size(effect))

    def is_constant(self, effect: Effect) -> bool:
        """Whether an effect is the same in every repetition."""
        return is_constant(effect, size=self.size(effect))

    def change(self, effect: Effect | None, level: float) -> Change:
        """An effect with its interval, if there is one; of a ratio the ratio itself."""
        if effect is None:
            return no_change("a ratio needs two numbers above 0", level)
        return self._change(effect, self.estimate(effect, level))

    def claimed(self, effect: Effect, level: float) -> Change:
        """An effect with its claim limits; without them, as `change` has it."""
        if effect.how == EXACT or not effect.is_bounded:
            return self.change(effect, level)
        effect = without_rounding(effect, size=self.size(effect))
        made = claim_estimate(effect, level=level)
        return self._change(effect, replace(made, reason=None))

    def _change(self, effect: Effect, made: Interval) -> Change:
        return Change(
            value=made.value,
            low=made.low,
            high=made.high,
            level=made.level,
            reason=made.reason,
            of_most=made.method == MOST,
            constant=self.is_constant(effect),
        )

    def estimate(self, effect: Effect, level: float) -> Interval:
        """An effect with its interval, and by which method."""
        return effect_estimate(effect, size=self.size(effect), level=level)


def measure_pair(pair: Pair, metric: Metric, statistic: str) -> MeasuredPair:
    """A statistic in both cells of a pair; paired where one run has every repetition, with its seed, of the other.

    Raises: TooFewSamples where one of the cells does not have it.
    """
    compared: ComparedStatistic = "mean" if statistic == SHARE_STATISTIC else compared_statistic(statistic)
    a, b = (_side(cell, metric) for cell in (pair.a, pair.b))
    common = None if a.exact or b.exact else pairs_of(a.units, b.units)
    left, pooled = (0, 0), (_pooled(a, compared), _pooled(b, compared))
    if common is not None:
        left = a.units.count - len(common), b.units.count - len(common)
        a, b = (replace(side, units=side.units.chosen(common)) for side in (a, b))
    measured = MeasuredPair(metric, compared, a, b, common is not None, left, pooled)
    _ = measured.difference
    return measured


def _pooled(side: Side, statistic: ComparedStatistic) -> float | None:
    """A quantile of all exchanges of a cell; None of other statistics, and where it is one that failed."""
    return None if isinstance(statistic, str) else quantile_of(side.units, statistic)


def no_change(reason: str, level: float) -> Change:
    """Why there is no effect."""
    return Change(value=None, low=None, high=None, level=level, reason=reason)


def _side(cell: CellData, metric: Metric) -> Side:
    """A metric of a cell. Raises: TooFewSamples where it has none."""
    if metric is LOST:
        return cell.side(metric.name)
    if metric.name not in cell.samples:
        raise TooFewSamples(cell.why_absent(metric.name))
    side, failed = cell.side(metric.name), failures_of(cell, metric)
    if metric.unit is RATE or not any(failed.values()):
        return side
    held = np.array([failed.get(repetition, 0) for repetition, _ in side.units.keys], dtype=np.int64)
    return replace(side, units=replace(side.units, censored=held))
