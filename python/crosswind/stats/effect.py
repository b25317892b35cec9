"""An effect: how far two cells lie apart, as a difference or a ratio, with its interval and its test.

A positive difference means that `other` is larger than `reference`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special

from crosswind.stats.design import LIGHT, Design, supports_claim
from crosswind.stats.estimate import EXACT, Array, Estimate, exactly, without_interval
from crosswind.stats.linearised import UNBOUNDED, Linearised, limits, method_of
from crosswind.stats.permutation import MAX_PERMUTED, is_tied, permutation_p, sign_flip_p

WELCH = "Welch's t over repetitions"
PAIRED = "paired by repetition"
CONSTANT = "against an exact number"

ComparedStatistic = float | Literal["mean", "trimmed"]
"""What is compared: "mean" (of flags: a share), "trimmed", or a quantile in (0, 1)."""

ROUNDING = 1e-12
"""Of the size of what is compared: what rounding leaves of numbers that are the same."""


@dataclass(frozen=True)
class Effect:
    """A difference, or the logarithm of a ratio.

    Attributes:
        value: of the effect. parts: as of `Linearised`, of the pairs, or of the random side beside an exact one; of two
            unpaired cells the contributions of both, one after the other. error, freedom: of its standard error.
        n: values of both cells. units: repetitions of the smaller one. design: of both. how: PAIRED, WELCH, CONSTANT or
            EXACT. is_ratio: whether `value` is a logarithm. shortage: why there is no interval, else None; needed:
            repetitions of each that would do, where that is known.
        sides: of two unpaired cells what is permuted. own: of pairs, the statistic of each repetition of both cells.
    """

    value: float
    linear: Linearised | None
    error: float
    freedom: float
    n: int
    units: int
    design: Design
    how: str
    is_ratio: bool
    shortage: str | None = None
    needed: int | None = None
    sides: tuple[Array, Array] | None = field(default=None, repr=False)
    own: Callable[[], tuple[Array, Array]] | None = field(default=None, repr=False)

    @cached_property
    def pairs(self) -> tuple[Array, Array] | None:
        """The statistic in each repetition of the reference and of the other cell; None of unpaired cells."""
        return None if self.own is None else self.own()

    @cached_property
    def of_pairs(self) -> Array | None:
        """The effect in each pair, a ratio as a ratio; None of unpaired cells, and of ratios of what is not above 0."""
        if self.pairs is None:
            return None
        reference, other = self.pairs
        if not self.is_ratio:
            return np.asarray(other - reference)
        return None if reference.min() <= 0 or other.min() < 0 else np.asarray(other / reference)

    @property
    def is_claimable(self) -> bool:
        """Whether a claim about the statistic itself can be made."""
        return self.shortage is None and supports_claim(self.design, self.units)

    @property
    def spread(self) -> float:
        """Standard deviation of the effect of a pair, or what stands for it in two independent sets."""
        return self.error * math.sqrt(self.units)

    @cached_property
    def p(self) -> float | None:
        """Two-sided p-value of no difference at all; None where the design supports no claim about the statistic."""
        if self.how == EXACT or not self.is_claimable:
            return None
        if self.sides is not None and sum(side.size for side in self.sides) <= MAX_PERMUTED:
            return permutation_p(*self.sides)
        return min(1.0, 2 * self.student_p(abs(self.value), above=self.value > 0))

    def limits(self, level: float) -> tuple[float, float]:
        """The two-sided interval of the effect itself."""
        if self.linear is not None:
            return limits(self.linear, self.design, level)
        half = float(special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def p_at_most(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or less: small where it is clearly above."""
        return self._beyond(self.value - place, above=True)

    def p_at_least(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or more: small where it is clearly below."""
        return self._beyond(place - self.value, above=False)

    def _beyond(self, over: float, *, above: bool) -> float:
        if self.error == 0:
            return 0.5 if self.how != EXACT else float(over <= 0)
        t, p = over / self.error, self.student_p(over, above=above)
        if self.linear is None or self.design.tail is LIGHT.tail:
            return p
        # The larger of the two p-values belongs to the wider of the two limits.
        drawn = self.linear.resampled_t
        beyond = int(np.sum(drawn >= t) if above else np.sum(drawn <= -t))
        return max(p, (beyond + 1) / (drawn.size + 1))

    def student_p(self, over: float, *, above: bool) -> float:
        """One-sided p-value by Student's t; of pairs that have a few values again and again the larger of it and of a
        sign-flip test's.

        Student's t takes what spreads for normal: of two values, each in half of the pairs, it finds far more than its
        level. Args: over: how far the effect lies beyond a place, on the side that is claimed.
        """
        p = float(special.stdtr(self.freedom, -over / self.error))
        if self.linear is None:
            return p
        distances = over + (self.linear.parts if above else -self.linear.parts)
        return max(p, sign_flip_p(distances)) if is_tied(distances) else p

    def has_ties(self, place: float) -> bool:
        """Whether a sign-flip test judges on which side of a place the effect lies."""
        return self.linear is not None and is_tied(self.value - place + self.linear.parts)


def estimate_of(effect: Effect, *, unit: str, level: float) -> Estimate:
    """An effect with its interval, or without one where the design does not support it; a ratio as a ratio."""
    shown: Callable[[float], float] = (lambda x: math.exp(min(x, 700.0))) if effect.is_ratio else (lambda x: x)
    value = shown(effect.value)
    if effect.how == EXACT:
        return exactly(value, n=effect.n, level=level, unit=unit)
    if effect.shortage is not None:
        return without_interval(value, effect.shortage, n=effect.n, level=level, unit=unit, units=effect.units)
    ends = effect.limits(level)
    low, high = (shown(end) if math.isfinite(end) else None for end in ends)
    method = effect.how if effect.how == WELCH else f"{method_of(effect.design)}, {effect.how}"
    why = None if low is not None and high is not None else UNBOUNDED
    return Estimate(value, low, high, effect.n, level, method, unit, why, effect.units)


def is_constant(effect: Effect, *, size: float) -> bool:
    """Whether an effect is the same in every one of at least two repetitions, but for rounding.

    Args: size: of the two numbers that are compared, in the effect's unit; 1 for a ratio.
    """
    if effect.how not in (PAIRED, CONSTANT) or effect.linear is None or effect.units < 2:
        return False
    return float(np.abs(effect.linear.parts).max()) <= ROUNDING * abs(size)
