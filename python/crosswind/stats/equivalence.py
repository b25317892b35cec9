"""Whether two cells are equivalent: no further apart than a margin that was declared beforehand.

That no difference is shown is the outcome of too few repetitions as well. With two one-sided tests it is equivalence
that has to be shown: both "further below than the margin" and "further above" must be rejected at alpha, which is the
same as an interval of level 1 - 2 alpha within the margin. That the effect lies beyond the margin is tested likewise.

Where the design supports no interval, or the effect is the same in every repetition, two one-sided sign tests show on
which side of each end of the margin most repetitions are (crosswind.stats.beyond).

Source: Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from crosswind.stats.beyond import beyond, effect_estimate, size_of
from crosswind.stats.design import share_shortage
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.effect import Effect, Statistic, is_constant
from crosswind.stats.estimate import EXACT, Estimate, TooFewSamples
from crosswind.stats.share import Share, difference_limits

ALPHA = 0.05
_MIN_P = 1e-9
_BISECTIONS = 40


@dataclass(frozen=True)
class EquivalenceTest:
    """An effect beside a margin.

    Attributes:
        estimate: with its interval of level 1 - 2 alpha. low, high: the margin around no effect, in its unit.
        p: of the effect being beyond the margin, the larger of the two tests': small shows equivalence.
        p_beyond: of the effect being within it, two-sided: small shows a difference larger than the margin.
            Of an exact effect both are 0 or 1.
        of_most: whether the tests are sign tests, which are about most repetitions. is_constant: whether the effect is
            the same in every one of them though it could vary.
    """

    estimate: Estimate
    low: float
    high: float
    p: float
    p_beyond: float

    of_most: bool = False
    is_constant: bool = False

    @property
    def equivalent(self) -> bool:
        """Whether equivalence is shown at 1 - 2 alpha. False is "not shown", not "different"."""
        e = self.estimate
        if e.method == EXACT:
            return e.value is not None and self.low < e.value < self.high
        return self.p < (1 - e.level) / 2


def margin_of_ratio(margin: float) -> tuple[float, float]:
    """The ratios within a relative margin: 0.25 is from 1/1.25 to 1.25, whichever of the two is the reference."""
    return 1 / (1 + margin), 1 + margin


def tost(
    reference: Side, other: Side, *, margin: float, unit: str, statistic: Statistic = "mean", alpha: float = ALPHA
) -> EquivalenceTest:
    """Is other - reference within ±margin?

    Args:   margin: the smallest difference that would matter, in `unit`, above 0.
    Raises: TooFewSamples where neither the interval nor a sign test is supported; ValueError unless margin is above 0.
    """
    _check(margin)
    effect, size = difference(reference, other, statistic), size_of(reference, other)
    return _tested(effect, -margin, margin, unit, alpha, size=size)


def tost_ratio(
    reference: Side, other: Side, *, margin: float, statistic: Statistic = "mean", alpha: float = ALPHA
) -> EquivalenceTest:
    """Is other / reference within `margin_of_ratio(margin)`?

    Args:   margin: the smallest relative difference that would matter, above 0: 0.25 for 25 %.
    Raises: TooFewSamples where neither the interval nor a sign test is supported, or a mean is not above 0; ValueError
            unless margin is above 0.
    """
    _check(margin)
    low, high = margin_of_ratio(margin)
    return _tested(ratio(reference, other, statistic), low, high, "1", alpha, size=1.0)


def tost_shares(reference: Side, other: Side, *, margin: float, alpha: float = ALPHA) -> EquivalenceTest:
    """Is other - reference within ±margin, of two shares?

    Where repetitions differ, by them, as any mean. Where none differs from its pair, as when neither cell has an
    event, by the limits of both shares, and p is the level at which these meet the margin.

    Args:   reference, other: of values that are 0 or 1. margin: a fraction: 0.04 for 4 percentage points.
    Raises: TooFewSamples below three repetitions; ValueError unless margin is above 0.
    """
    _check(margin)
    effect = difference(replace(reference, is_share=False), replace(other, is_share=False))
    if effect.how == EXACT or effect.error > 0:
        effect = difference(replace(reference, is_share=True), replace(other, is_share=True))
        return _tested(effect, -margin, margin, "1", alpha, size=1.0)
    shares = Share.of_units(reference.units, exact=reference.exact), Share.of_units(other.units, exact=other.exact)
    short = share_shortage(min(share.units for share in shares if not share.exact))
    if short is not None:
        raise TooFewSamples(short.message, needed=short.needed)

    def limits(tail: float) -> tuple[float, float]:
        return difference_limits(*shares, tail)

    within = max(_least(lambda tail: limits(tail)[0] > -margin), _least(lambda tail: limits(tail)[1] < margin))
    beyond = min(_least(lambda tail: limits(tail)[0] > margin), _least(lambda tail: limits(tail)[1] < -margin))
    low, high = limits(alpha)
    method = "square-and-add of Clopper-Pearson limits (Newcombe 1998)"
    estimate = Estimate(effect.value, low, high, effect.n, 1 - 2 * alpha, method, "1", None, effect.units)
    return EquivalenceTest(estimate, -margin, margin, within, min(1.0, 2 * beyond))


def _tested(effect: Effect, low: float, high: float, unit: str, alpha: float, *, size: float) -> EquivalenceTest:
    """Args: size: of the numbers that are compared, beside which rounding is nothing."""
    ends = (math.log(low), math.log(high)) if effect.is_ratio else (low, high)
    above_low, above_high = (beyond(effect, end, size=size) for end in ends)
    if above_low is None or above_high is None:
        raise TooFewSamples(effect.shortage or "there are no pairs")
    estimate = effect_estimate(effect, size=size, unit=unit, level=1 - 2 * alpha)
    if above_low.of_most and estimate.low is None and not is_constant(effect, size=size):
        raise TooFewSamples(effect.shortage or "there are too few pairs")
    within = max(above_low.above, above_high.below)
    p_beyond = min(above_high.above, above_low.below)
    constant = is_constant(effect, size=size)
    return EquivalenceTest(estimate, low, high, within, min(1.0, 2 * p_beyond), above_low.of_most, constant)


def _least(holds: Callable[[float], bool]) -> float:
    """The smallest one-sided level at which something holds that holds at all larger ones; 1 beyond a half."""
    if not holds(0.4999):
        return 1.0
    if holds(_MIN_P):
        return _MIN_P
    below, above = math.log(_MIN_P), math.log(0.4999)
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(math.exp(middle)) else (middle, above)
    return math.exp(above)


def _check(margin: float) -> None:
    if not margin > 0:
        raise ValueError("an equivalence margin is above 0")
