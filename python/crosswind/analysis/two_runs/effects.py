"""A statistic of a metric in both runs, repetition by repetition, and how far they lie apart."""

import math
from dataclasses import dataclass
from functools import cached_property

from crosswind.analysis.designs import design_of
from crosswind.analysis.summaries import Summaries, summaries_of
from crosswind.analysis.two_runs.matching import Pair
from crosswind.analysis.two_runs.result import Change
from crosswind.metrics import RATE, Metric
from crosswind.stats.design import LIGHT, Shortage, mean_shortage
from crosswind.stats.sample_size import FEWEST
from crosswind.stats.summary_effect import How, SummaryEffect, UnitValues, effect_of


@dataclass(frozen=True, eq=False)
class Measured:
    """A statistic of a metric in a pair of cells.

    paired: whether `a` and `b` have the same repetitions and seeds. shortage: what the design of the cells lacks for an
    interval, whatever was measured.
    """

    metric: Metric
    statistic: str
    a: Summaries
    b: Summaries
    paired: bool
    shortage: Shortage | None = None

    @cached_property
    def difference(self) -> SummaryEffect:
        """B less A, in the metric's unit."""
        return self._effect(is_ratio=False)

    @cached_property
    def ratio(self) -> SummaryEffect | None:
        """ln(B / A); None for shares, and where a mean is not above 0."""
        if self.metric.is_share or min(self.a.values.mean(), self.b.values.mean()) <= 0:
            return None
        return self._effect(is_ratio=True)

    def _effect(self, *, is_ratio: bool) -> SummaryEffect:
        a, b = (UnitValues(side.values, side.exact) for side in (self.a, self.b))
        least = 0.0
        if self.metric.is_share and not (a.exact and b.exact):
            least = math.hypot(*(0.0 if side.exact else _share_error(side) for side in (self.a, self.b)))
        return effect_of(a, b, paired=self.paired, is_ratio=is_ratio, least_error=least)


def measure(pair: Pair, metric: Metric, statistic: str) -> Measured:
    """A statistic in both cells of a pair; paired where one run has every repetition, with its seed, of the other.

    Raises: TooFewSamples where one of the cells does not have it.
    """
    a, b = (summaries_of(cell, metric, statistic) for cell in (pair.a, pair.b))
    theirs = set(b.keys)
    common = [key for key in a.keys if key in theirs and key[1] is not None]
    paired = not (a.exact or b.exact) and len(common) == min(len(a.keys), len(b.keys))
    if paired:
        a, b = a.chosen(common), b.chosen(common)
    return Measured(metric, statistic, a, b, paired, _shortage(pair, metric, statistic, a, b))


def _shortage(pair: Pair, metric: Metric, statistic: str, a: Summaries, b: Summaries) -> Shortage | None:
    """What the interval of a mean lacks where losses delay exchanges, as in comparisons within a run."""
    random = [(cell, of) for cell, of in ((pair.a, a), (pair.b, b)) if not of.exact]
    if statistic != "mean" or not random:
        return None
    designs = [design_of(metric, cell.settings) for cell, _ in random]
    design = designs[0].joined(designs[-1])
    units = min(len(of.keys) for _, of in random)
    each = min(of.n // max(len(of.keys), 1) for _, of in random)
    return None if design.tail is LIGHT.tail else mean_shortage(design, units, units * each)


def change_of(effect: SummaryEffect | None, level: float, shortage: Shortage | None = None) -> Change:
    """An effect with its interval, if the design does not lack what it takes; of a ratio the ratio itself."""
    if effect is None:
        return Change(value=None, low=None, high=None, level=level, reason="a ratio needs two numbers above 0")
    value = _shown(effect, effect.value)
    if effect.is_exact:
        return Change(value=value, low=None, high=None, level=level)
    if not effect.is_known or shortage is not None:
        reason = too_few(effect) if shortage is None else shortage.message
        return Change(value=value, low=None, high=None, level=level, reason=reason)
    low, high = (_shown(effect, end) for end in effect.limits(level))
    return Change(value=value, low=low, high=high, level=level)


def no_change(reason: str, level: float) -> Change:
    """Why there is no effect."""
    return Change(value=None, low=None, high=None, level=level, reason=reason)


def too_few(effect: SummaryEffect) -> str:
    """Why an effect has no interval."""
    there = "1 repetition" if effect.units == 1 else f"{effect.units} repetitions"
    common = " that both runs have" if effect.how is How.PAIRED else ""
    return f"an interval needs {FEWEST} repetitions, there {'is' if effect.units == 1 else 'are'} {there}{common}"


def larger_is_worse(metric: Metric) -> bool:
    """Whether more of it is worse: of everything but a rate."""
    return metric.unit is not RATE


def method_of(effect: SummaryEffect) -> str:
    """How an effect's interval was made."""
    return effect.how.value


def _shown(effect: SummaryEffect, value: float) -> float:
    return math.exp(min(value, 700.0)) if effect.is_ratio else value


def _share_error(side: Summaries) -> float:
    """The least standard error of a share: that of independent exchanges, with one more of either kind.

    Source: Agresti & Caffo, The American Statistician 54 (2000). Without it, none of 20 would be none for certain.
    """
    share = (float(side.values.mean()) * side.n + 1) / (side.n + 2)
    return math.sqrt(share * (1 - share) / (side.n + 2))
