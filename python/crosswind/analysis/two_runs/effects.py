"""A statistic of a metric in both runs, compared as levels within a run are.

Two differences: repetitions without a partner are left out, and every failed exchange counts as slower than all others
to a quantile, not only a timeout: a run must not look fast by refusing its slow exchanges.
"""

from dataclasses import dataclass, replace

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import Compared, compared, compared_statistic
from crosswind.analysis.two_runs.matching import Pair
from crosswind.analysis.two_runs.result import Change
from crosswind.analysis.units import failures_of
from crosswind.catalog.metrics import LOST, Metric
from crosswind.decisions.families import LEVEL
from crosswind.stats.differences import Side, independent_at_best, pairs_of, statistic_of
from crosswind.stats.effect import ComparedStatistic, Effect, claim_estimate
from crosswind.stats.estimate import EXACT, TooFewSamples, refused
from crosswind.stats.quantile import quantile_of
from crosswind.text.quantities import RATE


@dataclass(frozen=True, eq=False)
class MeasuredPair:
    """A statistic in a pair of cells; for paired ones in their common repetitions.

    Attributes: values: the statistic's, in the metric's unit. difference: B less A, which always has an effect. ratio:
        B / A; without an effect for shares, and for numbers not above 0. left: each one's repetitions without a
        partner. pooled: a quantile over all exchanges.
    """

    a: Side
    b: Side
    values: tuple[float, float]
    difference: Compared
    ratio: Compared
    paired: bool
    left: tuple[int, int]
    pooled: tuple[float | None, float | None]

    @property
    def shown(self) -> Compared:
        """The ratio, else the difference: whichever has an interval of its statistic, and is not about most."""
        if self.ratio.effect is None or is_short(self.ratio):
            return self.difference
        return self.difference if self.ratio.of_most and not self.difference.of_most else self.ratio


def is_short(made: Compared) -> bool:
    """Whether nothing judges an effect: no interval by design, and too few pairs for signs."""
    is_supported = made.effect is None or made.effect.shortage is None or made.is_constant
    return not is_supported and made.estimate.low is None


def change_of(made: Compared) -> Change:
    """An effect with its interval, if any; a ratio as a ratio."""
    return Change.of(made.estimate, of_most=made.estimate.is_sign_test, constant=made.is_constant)


def claimed_change(made: Compared, effect: Effect) -> Change:
    """An effect with its claim limits; without them, as `change_of`."""
    if effect.how == EXACT or not effect.is_bounded:
        return change_of(made)
    return Change.of(replace(claim_estimate(effect, level=LEVEL), reason=None), constant=made.is_constant)


def no_change(reason: str) -> Change:
    """Why there is no effect."""
    return Change.of(refused(reason, n=0, level=LEVEL))


def measure_pair(pair: Pair, metric: Metric, name: str) -> MeasuredPair:
    """A statistic in both cells; paired if one run has every repetition, with its seed, of the other.

    Raises: TooFewSamples for a cell without it.
    """
    statistic = compared_statistic(name)
    a, b = (_side(cell, metric) for cell in (pair.a, pair.b))
    common = None if a.exact or b.exact else pairs_of(a.units, b.units)
    left, pooled = (0, 0), (_pooled(a, statistic), _pooled(b, statistic))
    if common is not None:
        left = a.units.count - len(common), b.units.count - len(common)
        a, b = (replace(side, units=side.units.chosen(common)) for side in (a, b))
    difference = compared(a, b, name, level=LEVEL)
    if difference.effect is None:
        raise TooFewSamples(difference.reason)
    if metric.is_share:
        # Equal shares in every repetition have an interval too, and no ratio.
        difference = replace(difference, effect=independent_at_best(difference.effect, a, b))
        ratio = Compared(None, "a ratio needs two numbers above 0", difference.n, LEVEL)
    else:
        ratio = compared(a, b, name, is_ratio=True, level=LEVEL)
    values = (
        statistic_of(a.units, statistic, exact=a.exact).value,
        statistic_of(b.units, statistic, exact=b.exact).value,
    )
    return MeasuredPair(a, b, values, difference, ratio, common is not None, left, pooled)


def _pooled(side: Side, statistic: ComparedStatistic) -> float | None:
    """A quantile over a cell's exchanges; None for other statistics, and for a failed one."""
    return None if isinstance(statistic, str) else quantile_of(side.units, statistic)


def _side(cell: CellData, metric: Metric) -> Side:
    """A cell's metric. Raises: TooFewSamples without it."""
    side = cell.side(metric.name)
    failed = {} if metric is LOST else failures_of(cell, metric)
    if metric.unit is RATE or not any(failed.values()):
        return side
    held = np.array([failed.get(repetition, 0) for repetition, _ in side.units.keys], dtype=np.int64)
    return replace(side, units=replace(side.units, censored=held))
