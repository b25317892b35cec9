"""An effect between two cells, as a difference or a ratio, with its interval and its test.

A positive difference means a larger `other` than `reference`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.chance import ALL_SEEN, ONE_SIDED, Chance, ChanceOfTwo, expected_allowance
from crosswind.stats.design import MIN_UNITS, Design, Tail
from crosswind.stats.estimate import EXACT, Interval, exactly, without_interval
from crosswind.stats.linearised import MAX_RESAMPLED, UNBOUNDED, Linearised, limits, method_of
from crosswind.stats.permutation import MAX_PERMUTED, is_tied, permutation_p, sign_flip_p
from crosswind.stats.sample_size import fewest, is_shown

WELCH = "Welch's t over repetitions"
PAIRED = "paired by repetition"
CONSTANT = "against an exact number"
CLAIM = "limits over repetitions, with what chance may do that none has shown"
"""The method for claim limits."""

ComparedStatistic = float | Literal["mean", "trimmed"]
"""The compared statistic: "mean" (for flags: a share), "trimmed", or a quantile in (0, 1)."""

_LEAST_P = 1e-9
_HALVINGS = 40
"""Steps to find a p-value as a limit's level."""

ROUNDING = 1e-12
"""Relative to the compared numbers: rounding errors between equal ones."""


@dataclass(frozen=True)
class Effect:
    """A difference, or the logarithm of a ratio.

    Attributes:
        value: the effect's. parts: as in `Linearised`, from the pairs, or from the random side beside an exact one; for
            two unpaired cells both cells' contributions, one after the other. error, freedom: its standard error's.
        n: values in both cells. units: the smaller one's repetitions. design: both cells'. how: PAIRED, WELCH, CONSTANT
            or EXACT. is_ratio: whether `value` is a logarithm. shortage: why there is no interval, else None; needed:
            sufficient repetitions of each, if known.
        chance: its unseen events.
        sides: for two unpaired cells the permuted values. own: for pairs, both cells' statistics by repetition.
        size: the compared numbers', the scale for rounding; 1 for a ratio.
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
    chance: ChanceOfTwo = field(default=ALL_SEEN, repr=False)
    sides: tuple[Array, Array] | None = field(default=None, repr=False)
    own: Callable[[], tuple[Array, Array]] | None = field(default=None, repr=False)
    size: float = 1.0

    @cached_property
    def is_constant(self) -> bool:
        """Whether it is the same in every one of at least two repetitions, but for rounding."""
        if self.how not in (PAIRED, CONSTANT) or self.linear is None or self.units < 2:
            return False
        return float(np.abs(self.linear.parts).max()) <= ROUNDING * abs(self.size)

    @property
    def without_rounding(self) -> "Effect":
        """0 for an effect equal every time within rounding."""
        every_time = self.how == EXACT or self.is_constant
        return replace(self, value=0.0) if every_time and abs(self.value) <= ROUNDING * abs(self.size) else self

    @cached_property
    def pairs(self) -> tuple[Array, Array] | None:
        """The reference's and the other cell's statistic in each repetition; None for unpaired cells."""
        return None if self.own is None else self.own()

    @cached_property
    def of_pairs(self) -> Array | None:
        """Each pair's effect, a ratio as a ratio; None for unpaired cells, and for ratios to numbers not above 0."""
        if self.pairs is None:
            return None
        reference, other = self.pairs
        if not self.is_ratio:
            return np.asarray(other - reference)
        return None if reference.min() <= 0 or other.min() < 0 else np.asarray(other / reference)

    @property
    def is_claimable(self) -> bool:
        """Whether the statistic's limits support every claim, without an allowance."""
        return self.error > 0 and self.shortage is None and self.is_bounded and self.has_nothing_unseen

    @property
    def has_nothing_unseen(self) -> bool:
        """Whether neither limit has an allowance for unseen events."""
        return self.chance.allowance(self.units, 0.5) == (0.0, 0.0)

    @property
    def is_bounded(self) -> bool:
        """Whether its limits, with their allowances, support a claim of absence."""
        if self.design.tail in (Tail.HEAVY, Tail.INFINITE) or not self.chance.is_known(self.units):
            return False
        is_short = self.shortage is not None and self.has_nothing_unseen
        return self.how == EXACT or (self.units >= MIN_UNITS and not (self.how == WELCH and is_short))

    @property
    def spread(self) -> float:
        """Standard deviation of a pair's effect, or its equivalent for two independent sets."""
        return self.error * math.sqrt(self.units)

    @cached_property
    def p(self) -> float | None:
        """Two-sided p-value of no difference at all; None where the design supports no claim about it."""
        if self.how == EXACT or not self.is_claimable:
            return None
        if self.sides is not None and sum(side.size for side in self.sides) <= MAX_PERMUTED:
            return permutation_p(*self.sides)
        return min(1.0, 2 * self.student_p(abs(self.value), above=self.value > 0))

    def limits(self, level: float) -> tuple[float, float]:
        """The effect's own two-sided interval."""
        if self.linear is not None:
            return limits(self.linear, self.design, level)
        half = float(special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def p_at_most(self, place: float) -> float:
        """One-sided p-value for at most `place`: small if the effect is clearly above."""
        return self._p(self.value - place, above=True)

    def p_at_least(self, place: float) -> float:
        """One-sided p-value for at least `place`: small if the effect is clearly below."""
        return self._p(place - self.value, above=False)

    def _p(self, over: float, *, above: bool) -> float:
        """The level of the limit at distance `over`, allowance included. Args: as `_beyond`."""
        if not self._has_allowance(upper=not above):
            return self._beyond(over, above=above)
        low, high = math.log(_LEAST_P), math.log(0.5)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            allowed = self.chance.allowance(self.units, math.exp(middle))[0 if above else 1]
            is_shown = self._beyond(over - allowed, above=above) <= math.exp(middle)
            low, high = (low, middle) if is_shown else (middle, high)
        return math.exp(high) if high < math.log(0.5) else 1.0

    def repetitions_to_show(self, place: float, *, above: bool, alpha: float) -> int | None:
        """Repetitions, or pairs, needed to show an effect above or below a place with 80 % power.

        Args: above: the side of the place. alpha: one-sided.
        Returns: None for an effect on the other side, and above MOST.
        """
        distance, tail = self.value - place if above else place - self.value, self._tail(alpha)

        def is_enough(repetitions: int) -> bool:
            allowed = expected_allowance(self.chance, self.units, repetitions, alpha)[0 if above else 1]
            return is_shown(repetitions, self.spread, distance - allowed, tail=tail, freedom=self.freedom)

        return fewest(is_enough) if distance > 0 and self.units > 1 else None

    def claim_limit(self, alpha: float, *, upper: bool) -> float:
        """A claim's one-sided limit, allowance included."""
        tail = self._tail(alpha)
        half = float(special.stdtrit(self.freedom, 1 - tail)) * self.error
        low, high = self.value - half, self.value + half
        if self.error > 0 and self.linear is not None and not self._has_allowance(upper=upper):
            low, high = limits(self.linear, self.design, 1 - 2 * tail)
        less, more = self.chance.allowance(self.units, alpha)
        return high + more if upper else low - less

    def _tail(self, alpha: float) -> float:
        """The tail probability behind a limit at a level."""
        return alpha * ONE_SIDED if self.design.is_lopsided else alpha

    def _has_allowance(self, *, upper: bool) -> bool:
        """Whether a limit has an allowance for unseen events."""
        return self.chance.allowance(self.units, 0.5)[upper] > 0

    def _beyond(self, over: float, *, above: bool) -> float:
        if self.error == 0:
            return float(over <= 0)
        t, p = over / self.error, self.student_p(over, above=above)
        if not self.design.is_lopsided:
            return p
        # With few touched repetitions, many resamples have none: the allowance covers these.
        is_resampled = self.design.tail is not Tail.LIGHT and not self._has_allowance(upper=not above)
        if self.linear is not None and is_resampled and self.units <= MAX_RESAMPLED:
            # The larger p-value belongs to the wider limit.
            drawn = self.linear.resampled_t
            beyond = int(np.sum(drawn >= t) if above else np.sum(drawn <= -t))
            p = max(p, (beyond + 1) / (drawn.size + 1))
        return min(1.0, p / ONE_SIDED)

    def student_p(self, over: float, *, above: bool) -> float:
        """One-sided p-value by Student's t; for pairs with a few repeated values the larger one of it and a sign-flip
        test's.

        Student's t assumes normality: with two values, each in half of the pairs, it exceeds its level by far.
        Args: over: the effect's distance beyond a place, on the claimed side.
        """
        p = float(special.stdtr(self.freedom, -over / self.error))
        if self.linear is None:
            return p
        distances = over + (self.linear.parts if above else -self.linear.parts)
        return max(p, sign_flip_p(distances)) if is_tied(distances) else p

    def has_ties(self, place: float) -> bool:
        """Whether a sign-flip test judges the effect's side of a place."""
        return self.linear is not None and is_tied(self.value - place + self.linear.parts)


def of_one(linear: Linearised, design: Design, chance: Chance) -> Effect:
    """A single cell's statistic."""
    of_chance = ChanceOfTwo(other=chance)
    return Effect(
        linear.value, linear, linear.error, linear.freedom, linear.n, linear.units, design, CONSTANT, is_ratio=False,
        chance=of_chance,
    )  # fmt: skip


def claim_estimate(effect: Effect, *, level: float) -> Interval:
    """A bounded effect with its claim limits; a ratio as a ratio. An infinite limit is None."""
    ends = (effect.claim_limit((1 - level) / 2, upper=upper) for upper in (False, True)) if effect.is_bounded else ()
    low, high = (_shown(effect, end) for end in ends or (-math.inf, math.inf))
    value = _on_own_scale(effect, effect.value)
    return Interval(value, low, high, effect.n, level, CLAIM, effect.shortage, effect.units)


def estimate_of(effect: Effect, *, level: float) -> Interval:
    """An effect with its interval, or without one where the design does not support it; a ratio as a ratio."""
    value = _on_own_scale(effect, effect.value)
    if effect.how == EXACT:
        return exactly(value, n=effect.n, level=level)
    if effect.shortage is not None:
        return without_interval(value, effect.shortage, n=effect.n, level=level, units=effect.units)
    low, high = (_shown(effect, end) for end in effect.limits(level))
    method = effect.how if effect.how == WELCH else f"{method_of(effect.design)}, {effect.how}"
    why = None if low is not None and high is not None else UNBOUNDED
    return Interval(value, low, high, effect.n, level, method, why, effect.units)


def _on_own_scale(effect: Effect, number: float) -> float:
    return math.exp(min(number, 700.0)) if effect.is_ratio else number


def _shown(effect: Effect, end: float) -> float | None:
    return _on_own_scale(effect, end) if math.isfinite(end) else None
