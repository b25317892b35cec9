"""On which side of a place an effect lies, with a p-value of each.

A question such as "is it less?" has a place of its own: no effect, or the smallest one that matters. Both answers are
claims about that place, and each has to be shown.

Where the effect is the same in every repetition, nothing spreads and a mean cannot be tested. What n repetitions
without an exception show is that most repetitions are like them: if half of them were not, n in a row would have a
chance of 0.5^n (the sign test; Arbuthnot 1710). `share_limit` says how many may be different.
"""

import math
from dataclasses import dataclass, replace

from crosswind.stats.design import MIN_UNITS
from crosswind.stats.differences import Side
from crosswind.stats.effect import CONSTANT, ROUNDING, Effect, estimate_of, is_constant
from crosswind.stats.estimate import EXACT, Estimate, check_level, without_interval

EVERY_TIME = "the same in every repetition: sign test, of most repetitions"
"""The method of an estimate that does not vary though it could."""
_TOO_FEW = 0.05
"""The p-value above which repetitions that are all the same are too few to say anything of most."""


@dataclass(frozen=True)
class Beyond:
    """P-values, one-sided. above: of the effect being at a place or below it, small where it is clearly above; below:
    likewise. at: of it being anywhere but at the place, small where it is just there every time."""

    above: float
    below: float
    at: float = 1.0


def beyond(effect: Effect, place: float, *, size: float) -> Beyond | None:
    """On which side of a place an effect lies, by the distributions of its interval; None where there is none.

    Args: size: of the two numbers that are compared, in the effect's unit; 1 for a ratio.
    """
    if effect.how == EXACT or is_constant(effect, size=size):
        wrong, over = (0.0 if effect.how == EXACT else 0.5**effect.units), effect.value - place
        if abs(over) <= ROUNDING * abs(size):
            return Beyond(1.0, 1.0, wrong)
        return Beyond(wrong, 1.0) if over > 0 else Beyond(1.0, wrong)
    return Beyond(effect.p_at_most(place), effect.p_at_least(place)) if effect.shortage is None else None


def beyond_nothing(effect: Effect, *, is_other_exact: bool) -> Beyond | None:
    """On which side of 0 a difference lies, of which there are too few repetitions for an interval; None below three.

    Two equal cells of one block may change places, so that the difference of a pair is symmetric, whatever the tail. An
    exact number does not change places with anything: beside it, a wait is only shown to be the longer one, for which
    Student's t rather misses what there is. A single wait of any length has a t of 1.

    Args: effect: a difference, and not a ratio, whose t is not bounded so. is_other_exact: beside an exact number,
        whether that is the one that is compared with the reference.
    """
    if effect.units < MIN_UNITS or effect.error == 0:
        return None
    above, below = effect.student_p(effect.value, above=True), effect.student_p(-effect.value, above=False)
    if effect.how != CONSTANT:
        return Beyond(above, below)
    if not effect.design.is_wait:
        return None
    return Beyond(1.0, below) if is_other_exact else Beyond(above, 1.0)


def size_of(reference: Side, other: Side) -> float:
    """The largest of the numbers of two sides, beside which rounding is nothing."""
    return max(side.units.largest for side in (reference, other))


def every_time(effect: Effect, *, unit: str, level: float) -> Estimate:
    """An effect that is the same in every repetition, as an estimate of what it is in most of them.

    Its limits are the number itself, as soon as there are repetitions enough: 2 * 0.5^n at most 1 - level.
    """
    value = math.exp(effect.value) if effect.is_ratio else effect.value
    needed = math.ceil(math.log2(2 / (1 - check_level(level))))
    if effect.units >= needed:
        return Estimate(value, value, value, effect.n, level, EVERY_TIME, unit, units=effect.units)
    reason = (
        f"it is the same in all {effect.units} repetitions; that it is in most takes {needed}: "
        f"{needed - effect.units} more"
    )
    spread = (value, value)
    return without_interval(value, reason, n=effect.n, level=level, unit=unit, units=effect.units, spread=spread)


def effect_estimate(effect: Effect, *, size: float, unit: str, level: float) -> Estimate:
    """An effect with its interval; where it is the same in every repetition, as `every_time` makes it."""
    if is_constant(effect, size=size):
        return every_time(without_rounding(effect, size=size), unit=unit, level=level)
    return estimate_of(effect, unit=unit, level=level)


def two_sided_p(effect: Effect, *, size: float) -> float | None:
    """The p-value of no difference at all, of an effect that is the same in every repetition by a sign test of these.

    Args:    as `beyond`.
    Returns: None where it cannot be tested, where the repetitions are too few for `every_time` at 95 %, and where an
             effect that is the same in every repetition is none at all.
    """
    if not is_constant(effect, size=size):
        return effect.p
    sides = beyond(without_rounding(effect, size=size), 0.0, size=size)
    p = 1.0 if sides is None else 2 * min(sides.above, sides.below)
    return p if p <= _TOO_FEW else None


def without_rounding(effect: Effect, *, size: float) -> Effect:
    """An effect that is the same every time, and none at all but for rounding, as none. Args: as `beyond`."""
    every_time = effect.how == EXACT or is_constant(effect, size=size)
    return replace(effect, value=0.0) if every_time and abs(effect.value) <= ROUNDING * abs(size) else effect


def repetitions_in_a_row(p: float) -> int:
    """The repetitions without an exception of which a one-sided sign test has this p-value or less."""
    return math.ceil(-math.log2(p))


def share_limit(units: int, *, level: float = 0.95) -> float:
    """The largest share of repetitions that may be different, where none of some was (exact binomial, one-sided)."""
    return float(1 - (1 - check_level(level)) ** (1 / units))
