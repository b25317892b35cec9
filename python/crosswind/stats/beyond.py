"""On which side of a place an effect lies, with a p-value of each: the one rule by which everything is decided.

A question such as "is it less?" has a place of its own: no effect, or the smallest one that matters. Both answers are
claims about that place, and each has to be shown.

A claim that no effect at all would bear out too is a claim of absence: not worse, the same, within. It is about the
statistic, and its limits allow for what chance may do that no repetition has shown (crosswind.stats.chance). A claim of
more or less is about the statistic as well where repetitions bound what chance does to it. Where they do not, or where
the effect is the same in every pair, it is about what most repetitions do, by the sign test of the pairs
(crosswind.stats.majority): nothing is claimed of a mean then.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from crosswind.stats.arrays import Array
from crosswind.stats.differences import Side
from crosswind.stats.effect import ROUNDING, Effect, estimate_of, is_constant
from crosswind.stats.estimate import EXACT, Interval
from crosswind.stats.majority import median_estimate, repetitions_in_a_row, sign_p


@dataclass(frozen=True)
class Beyond:
    """P-values, one-sided: each is small where its claim is shown.

    Attributes: above, below: the effect is above a place, below it. not_below, not_above: it is there or above, there
        or below. at: it is just there. of_most: whether the claims are about most repetitions. not_less, not_more: as
        not_below and not_above; where the claims are about most repetitions also because the effect of most of them is
        on the other side of none.
    """

    above: float
    below: float
    not_below: float
    not_above: float
    at: float
    of_most: bool = False
    not_less: float | None = None
    not_more: float | None = None


def beyond(effect: Effect, place: float, *, size: float) -> Beyond | None:
    """On which side of a place an effect lies; None where the design supports no claim.

    Args: size: of the two numbers that are compared, in the effect's unit; 1 for a ratio.
    """
    if effect.how == EXACT:
        over = _without_rounding(np.array([effect.value - place]), size)
        return _beyond(over, lambda holds: float(not holds.all()), of_most=False)
    above, below = 1.0, 1.0
    if effect.is_bounded:
        effect = without_rounding(effect, size=size)
        above, below = effect.p_at_most(place), effect.p_at_least(place)
    if not is_of_most(effect, size=size):
        return Beyond(above, below, not_below=above, not_above=below, at=1.0) if effect.is_bounded else None
    pairs = _over(effect, place, size=size)
    if pairs is None:
        return None
    signs = _beyond(pairs, lambda holds: sign_p(int(holds.sum()), holds.size), of_most=True)
    if is_constant(effect, size=size) and effect.has_nothing_unseen:
        return signs
    other_side = _over(effect, 0.0, size=size)
    assert other_side is not None
    more, less = (sign_p(int(holds.sum()), holds.size) for holds in (other_side > 0, other_side < 0))
    # What no effect would bear out too is shown by the limits of the statistic alone.
    return Beyond(
        above=signs.above if place >= 0 else above,
        below=signs.below if place <= 0 else below,
        not_below=above if place < 0 else signs.above if place == 0 else signs.not_below,
        not_above=below if place > 0 else signs.below if place == 0 else signs.not_above,
        at=1.0,
        of_most=True,
        not_less=more if place < 0 else signs.not_below if place > 0 else signs.above,
        not_more=less if place > 0 else signs.not_above if place < 0 else signs.below,
    )


def is_of_most(effect: Effect, *, size: float) -> bool:
    """Whether claims of more and less are about most repetitions: by their design, or because nothing spreads."""
    if effect.how == EXACT:
        return False
    is_paired = effect.own is not None and effect.units > 1
    return is_constant(effect, size=size) or (is_paired and not effect.is_claimable)


def _beyond(over: Array, p: Callable[[npt.NDArray[np.bool_]], float], *, of_most: bool) -> Beyond:
    """Args: over: distances from a place. p: the p-value of a claim, from which of them bear it out."""
    sides = p(over > 0), p(over < 0), p(over >= 0), p(over <= 0)
    return Beyond(*sides, at=p(np.equal(over, 0)), of_most=of_most)


def _over(effect: Effect, place: float, *, size: float) -> Array | None:
    """By how much the effect of each pair lies above a place; the sign alone counts."""
    if is_constant(effect, size=size):
        return _without_rounding(np.full(effect.units, effect.value - place), size)
    if effect.pairs is None:
        return None
    reference, other = effect.pairs
    if not effect.is_ratio:
        return _without_rounding(other - reference - place, size)
    # A ratio to what is not above 0 is on no side.
    least = math.exp(place) * reference
    over = np.where(reference > 0, other - least, math.nan)
    return np.where(np.abs(over) <= ROUNDING * np.abs(least), 0.0, over)


def _without_rounding(over: Array, size: float) -> Array:
    return np.where(np.abs(over) <= ROUNDING * abs(size), 0.0, over)


def counts_of(effect: Effect, *, size: float) -> tuple[int, int]:
    """In how many pairs the effect is below no effect, and above it; none of unpaired cells."""
    over = _over(effect, 0.0, size=size)
    return (0, 0) if over is None else (int((over < 0).sum()), int((over > 0).sum()))


def agreeing_at(effect: Effect, place: float, *, size: float) -> int:
    """Pairs beyond a place, on the side away from no effect, where a sign test can show them."""
    over = _over(effect, place, size=size)
    if over is None:
        return 0
    if is_constant(effect, size=size):
        return effect.units
    return int(max((over > 0).sum() if place >= 0 else 0, (over < 0).sum() if place <= 0 else 0))


def size_of(reference: Side, other: Side) -> float:
    """The largest of the numbers of two sides, beside which rounding is nothing."""
    return max(side.units.largest for side in (reference, other))


def effect_estimate(effect: Effect, *, size: float, level: float) -> Interval:
    """An effect with its interval; of what claims about most repetitions are made of, the median of the pairs.

    Of so few pairs that no claim can be made, the effect of the statistic alone.
    """
    if not is_of_most(effect, size=size):
        return estimate_of(effect, level=level)
    if is_constant(effect, size=size):
        value = without_rounding(effect, size=size).value
        pairs = np.full(effect.units, math.exp(value) if effect.is_ratio else value)
        return median_estimate(pairs, n=effect.n, level=level)
    if effect.of_pairs is None:
        return estimate_of(effect, level=level)
    made = median_estimate(effect.of_pairs, n=effect.n, level=level)
    return made if made.low is not None else estimate_of(effect, level=level)


def two_sided_p(effect: Effect, *, size: float) -> float | None:
    """The p-value of no difference: of the statistic, or where its design supports no interval, in most repetitions.

    Args:    as `beyond`.
    Returns: None where it cannot be tested, where the pairs are too few for a sign test at 95 %, and where an effect
             that is the same in every repetition is none at all.
    """
    if not is_of_most(effect, size=size):
        return effect.p
    effect = without_rounding(effect, size=size)
    sides = beyond(effect, 0.0, size=size)
    is_none = effect.value == 0 and is_constant(effect, size=size)
    if sides is None or effect.units < repetitions_in_a_row(0.025) or is_none:
        return None
    return min(1.0, 2 * min(sides.above, sides.below))


def without_rounding(effect: Effect, *, size: float) -> Effect:
    """An effect that is the same every time, and none at all but for rounding, as none. Args: as `beyond`."""
    every_time = effect.how == EXACT or is_constant(effect, size=size)
    return replace(effect, value=0.0) if every_time and abs(effect.value) <= ROUNDING * abs(size) else effect
