"""Whether two sets of samples are equivalent: no further apart than a margin that was declared beforehand.

"No difference shown" is the outcome of too few samples as well. With two one-sided tests it is equivalence that has to
be shown: both "further below than the margin" and "further above" must be rejected at alpha, which is the same as an
interval of level 1 - 2 alpha within the margin. That the effect lies beyond the margin is tested likewise.

Source: Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from crosswind.stats.binomial import Share, difference_limits
from crosswind.stats.bootstrap import Resampled
from crosswind.stats.compare import Effect, as_difference, as_ratio, difference, log_ratio
from crosswind.stats.estimate import EXACT, Estimate, exactly

ALPHA = 0.05
_MIN_P = 1e-9  # as of a bootstrap's tail
_BISECTIONS = 40


@dataclass(frozen=True)
class EquivalenceTest:
    """An effect beside a margin.

    Attributes:
        estimate: with its interval of level 1 - 2 alpha. low, high: the margin around no effect, in its unit.
        p: of the effect being beyond the margin, the larger of the two tests': small shows equivalence.
        p_beyond: of the effect being within it, two-sided: small shows a difference larger than the margin.
            Of an exact effect both are 0 or 1.
    """

    estimate: Estimate
    low: float
    high: float
    p: float
    p_beyond: float

    @property
    def equivalent(self) -> bool:
        """Whether the interval lies within the margin. False is "not shown", not "different"."""
        e = self.estimate
        if e.method == EXACT:
            return e.value is not None and self.low < e.value < self.high
        return e.low is not None and e.high is not None and self.low < e.low and e.high < self.high


def margin_of_ratio(margin: float) -> tuple[float, float]:
    """The ratios within a relative margin: 0.25 is from 1/1.25 to 1.25, whichever of the two is the reference."""
    return 1 / (1 + margin), 1 + margin


def tost(reference: Resampled, other: Resampled, *, margin: float, unit: str, alpha: float = ALPHA) -> EquivalenceTest:
    """Is other - reference within ±margin?

    Args:   margin: the smallest difference of means that would matter, in `unit`, above 0.
    Raises: TooFewSamples as `mean_interval`; ValueError unless margin is above 0.
    """
    _check(margin)
    effect = difference(reference, other)
    estimate = as_difference(effect, 1 - 2 * alpha, unit)
    return EquivalenceTest(estimate, -margin, margin, *_p_values(effect, -margin, margin))


def tost_ratio(reference: Resampled, other: Resampled, *, margin: float, alpha: float = ALPHA) -> EquivalenceTest:
    """Is other / reference within `margin_of_ratio(margin)`?

    Args:   margin: the smallest relative difference of means that would matter, above 0: 0.25 for 25 %.
    Raises: TooFewSamples as `mean_interval`, or when a mean is not above 0; ValueError unless margin is above 0.
    """
    _check(margin)
    effect = log_ratio(reference, other)
    low, high = margin_of_ratio(margin)
    return EquivalenceTest(
        as_ratio(effect, 1 - 2 * alpha), low, high, *_p_values(effect, math.log(low), math.log(high))
    )


def tost_shares(reference: Share, other: Share, *, margin: float, alpha: float = ALPHA) -> EquivalenceTest:
    """Is other - reference within ±margin, of two shares? p-values are those at which the limits meet the margin.

    Args:   margin: the smallest difference that would matter, a fraction: 0.04 for 4 percentage points.
    Raises: ValueError unless margin is above 0.
    """
    _check(margin)
    low, high = difference_limits(reference, other, alpha)
    n, value = reference.n + other.n, other.value - reference.value
    methods = dict.fromkeys(part.method for part in (reference, other) if not part.exact)
    if not methods:
        within = -margin < value < margin
        estimate = exactly(value, n=n, level=1 - 2 * alpha, unit="1")
        return EquivalenceTest(estimate, -margin, margin, float(not within), float(within))
    method = f"square-and-add of {' and '.join(methods)}"

    def limits(tail: float) -> tuple[float, float]:
        return difference_limits(reference, other, tail)

    above_lower, below_upper = (
        _least(lambda tail: limits(tail)[0] > -margin),
        _least(lambda tail: limits(tail)[1] < margin),
    )
    beyond = min(_least(lambda tail: limits(tail)[0] > margin), _least(lambda tail: limits(tail)[1] < -margin))
    estimate = Estimate(value, low, high, n, 1 - 2 * alpha, method, "1")
    return EquivalenceTest(estimate, -margin, margin, max(above_lower, below_upper), min(1.0, 2 * beyond))


def _p_values(effect: Effect, low: float, high: float) -> tuple[float, float]:
    within = max(effect.p_at_most(low), effect.p_at_least(high))
    return within, min(1.0, 2 * min(effect.p_at_most(high), effect.p_at_least(low)))


def _least(holds: Callable[[float], bool]) -> float:
    """The smallest one-sided level at which something holds that holds at all larger ones; 1 beyond a half."""
    if not holds(0.5):
        return 1.0
    if holds(_MIN_P):
        return _MIN_P
    below, above = math.log(_MIN_P), math.log(0.5)
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        below, above = (below, middle) if holds(math.exp(middle)) else (middle, above)
    return math.exp(above)


def _check(margin: float) -> None:
    if not margin > 0:
        raise ValueError("an equivalence margin is above 0")
