"""How far two cells lie apart, as a difference or a ratio, with its interval and its test.

Cells of one run share their blocks and their seeds: repetition r of both meets the same losses at about the same time.
So they are compared repetition by repetition (paired), where every repetition of the one has its match in the other;
otherwise by Welch's interval and a permutation test (unpaired).

A positive difference means that `other` is larger than `reference`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special

from crosswind.stats.design import (
    LIGHT,
    MESSAGES_BEYOND,
    MIN_UNITS,
    Design,
    Shortage,
    mean_shortage,
    quantile_name,
    repetition_quantile_shortage,
    trimmed_mean_shortage,
)
from crosswind.stats.estimate import EXACT, Array, Estimate, TooFewSamples, exactly, without_interval
from crosswind.stats.linearised import NO_SPREAD, Linearised, limits, mean_of, method_of
from crosswind.stats.mean import trimmed_mean_of
from crosswind.stats.permutation import MAX_PERMUTED, is_tied, permutation_p, sign_flip_p
from crosswind.stats.units import Key, Units

WELCH = "Welch's t over repetitions"
PAIRED = "paired by repetition"
CONSTANT = "against an exact number"

Statistic = float | Literal["mean", "trimmed"]
"""What is compared: "mean" (of flags: a share), "trimmed", or a quantile in (0, 1)."""


@dataclass(frozen=True)
class Effect:
    """A difference, or the logarithm of a ratio.

    Attributes:
        value: of the effect. parts: as of `Linearised`, of the pairs, or of the random side beside an exact one; of two
            unpaired cells the contributions of both, one after the other. error, freedom: of its standard error.
        n: values of both cells. units: repetitions of the smaller one. design: of both. how: PAIRED, WELCH, CONSTANT or
            EXACT. is_ratio: whether `value` is a logarithm. shortage: why there is no interval, else None; needed:
            repetitions of each that would do, where that is known.
        sides: of two unpaired cells what is permuted.
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

    @property
    def spread(self) -> float:
        """Standard deviation of the effect of a pair, or what stands for it in two independent sets."""
        return self.error * math.sqrt(self.units)

    @cached_property
    def p(self) -> float | None:
        """Two-sided p-value of no difference at all; None where it cannot be tested."""
        if self.how == EXACT or self.units < MIN_UNITS or self.error == 0:
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


@dataclass(frozen=True, eq=False)
class Side:
    """One of two cells that are compared. exact: whether its values come out the same every time."""

    units: Units
    design: Design = LIGHT
    exact: bool = False


def difference(reference: Side, other: Side, statistic: Statistic = "mean") -> Effect:
    """other - reference. Raises: TooFewSamples where a statistic does not exist."""
    return _effect(reference, other, statistic, is_ratio=False)


def ratio(reference: Side, other: Side, statistic: Statistic = "mean") -> Effect:
    """ln(other / reference), linearised. Raises: TooFewSamples where a statistic does not exist or is not above 0."""
    return _effect(reference, other, statistic, is_ratio=True)


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
    why = None if low is not None and high is not None else "the resamples do not bound it"
    return Estimate(value, low, high, effect.n, level, method, unit, why, effect.units)


def pairs_of(reference: Units, other: Units) -> list[Key] | None:
    """The repetitions that two cells have in common, with the same seeds; None unless one cell has no others."""
    keys = set(other.keys)
    common = [key for key in reference.keys if key in keys]
    return common if common and len(common) == min(reference.count, other.count) else None


def statistic_of(units: Units, statistic: Statistic, *, exact: bool = False) -> Linearised:
    """A statistic of a cell. Of a quantile it is the mean of those of the repetitions.

    Args:   exact: whether the values come out the same every time, so that a quantile of few of them is exact too.
    Raises: TooFewSamples where repetitions have too few values for one of their own.
    """
    if statistic == "mean":
        return mean_of(units)
    if statistic == "trimmed":
        return trimmed_mean_of(units)
    q = float(statistic)
    needed = math.ceil(round(MESSAGES_BEYOND / min(q, 1 - q), 9))
    fewest = int((units.sizes + units.censored).min()) if units.count else 0
    if fewest < needed and not exact:
        raise TooFewSamples(
            f"to compare {quantile_name(q)}, each repetition needs {needed} messages, one has {fewest}", needed=needed
        )
    own = units.quantiles(q)
    if not np.isfinite(own).all():
        raise TooFewSamples(f"{quantile_name(q)} of a repetition is an exchange that timed out")
    value = float(own.mean())
    return Linearised(value, own - value, units.n)


def _effect(reference: Side, other: Side, statistic: Statistic, *, is_ratio: bool) -> Effect:
    pairs = pairs_of(reference.units, other.units) if not (reference.exact or other.exact) else None
    a, b = reference.units, other.units
    if pairs is not None:
        a, b = a.chosen(pairs), b.chosen(pairs)
    own = [
        _on_scale(statistic_of(units, statistic, exact=side.exact), is_ratio=is_ratio)
        for units, side in ((a, reference), (b, other))
    ]
    value, n = own[1].value - own[0].value, own[0].n + own[1].n
    needs = _Needs(reference.design.joined(other.design), statistic, is_ratio)
    if pairs is not None:
        if own[0].units != own[1].units:
            raise TooFewSamples("in a repetition of one of the cells no exchange succeeded")
        return _of_one(Linearised(value, own[1].parts - own[0].parts, n), needs, PAIRED)
    random = [of for of, side in zip(own, (reference, other), strict=True) if not side.exact]
    if len(random) == 2:
        return _unpaired(own[0], own[1], needs)
    if not random:
        return Effect(value, None, 0.0, 1.0, n, 1, needs.design, EXACT, is_ratio)
    sign = 1.0 if other.exact is False else -1.0
    return _of_one(Linearised(value, sign * random[0].parts, random[0].n), needs, CONSTANT, n)


@dataclass(frozen=True)
class _Needs:
    """What is compared, in which design, and on which scale."""

    design: Design
    statistic: Statistic
    is_ratio: bool

    def shortage(self, units: int, n: int) -> Shortage | None:
        """What the interval lacks. Args: units: repetitions, or pairs of them. n: values in these."""
        if isinstance(self.statistic, str):
            few = trimmed_mean_shortage(units, n) if self.statistic == "trimmed" else None
            return mean_shortage(self.design, units, n) or few
        return repetition_quantile_shortage(
            self.design, self.statistic, units, of="ratio" if self.is_ratio else "difference"
        )


def _of_one(linear: Linearised, needs: _Needs, how: str, n: int | None = None) -> Effect:
    """An effect whose error is that of one set of contributions."""
    of_one_cell = linear.n if how == CONSTANT else linear.n // 2
    short = needs.shortage(linear.units, of_one_cell)
    shortage = None if short is None else short.message
    if short is None and linear.error == 0:
        shortage = NO_SPREAD
    return Effect(
        linear.value,
        linear,
        linear.error,
        linear.freedom,
        n or linear.n,
        linear.units,
        needs.design,
        how,
        needs.is_ratio,
        shortage,
        None if short is None else short.needed,
    )


def _unpaired(a: Linearised, b: Linearised, needs: _Needs) -> Effect:
    error, fewest = math.hypot(a.error, b.error), min(a.units, b.units)
    smaller = a if a.units <= b.units else b
    short = needs.shortage(fewest, smaller.n)
    shortage = None if short is None else short.message
    if short is None and error == 0:
        shortage = NO_SPREAD
    return Effect(
        value=b.value - a.value,
        linear=None,
        error=error,
        freedom=_welch(a, b),
        n=a.n + b.n,
        units=fewest,
        design=needs.design,
        how=WELCH,
        is_ratio=needs.is_ratio,
        shortage=shortage,
        needed=None if short is None else short.needed,
        sides=(a.value + a.parts, b.value + b.parts),
    )


def _on_scale(of: Linearised, *, is_ratio: bool) -> Linearised:
    if not is_ratio:
        return of
    if of.value <= 0:
        raise TooFewSamples("a ratio needs two numbers above 0")
    return Linearised(math.log(of.value), of.parts / of.value, of.n)


def _welch(a: Linearised, b: Linearised) -> float:
    """Degrees of freedom of Welch and Satterthwaite."""
    squares = a.error**2, b.error**2
    below = squares[0] ** 2 / a.freedom + squares[1] ** 2 / b.freedom
    return sum(squares) ** 2 / below if below > 0 else float(a.freedom + b.freedom)
