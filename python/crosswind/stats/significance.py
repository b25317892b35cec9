"""The side of a place an effect lies on, with a p-value for each: the one rule behind every decision.

A question such as "is it less?" has its own place: no effect, or the smallest effect worth noting. Both answers are
claims about this place, and each has to be shown.

A claim true also under no effect is a claim of absence: not worse, the same, within. It is about the statistic, with
limits allowing for unseen events (crosswind.stats.chance). A claim of more or less is about the statistic as well, if
repetitions bound the effect of chance on it. If they do not, or the effect is the same in every pair, it is about most
repetitions, by a sign test of the pairs (crosswind.stats.majority), and claims nothing about a mean.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.stats.arrays import Array
from crosswind.stats.effect import ROUNDING, Effect, estimate_of
from crosswind.stats.estimate import EXACT, Interval
from crosswind.stats.majority import median_estimate, repetitions_in_a_row, sign_p


@dataclass(frozen=True)
class Significance:
    """One-sided p-values: each is small where its claim is shown.

    Attributes: above, below: the effect is above a place, below it. not_below, not_above: it is there or above, there
        or below. at: it is just there. of_most: whether the claims are about most repetitions. not_less, not_more: as
        not_below and not_above; for claims about most repetitions also if most effects are on the other side of none.
    """

    above: float
    below: float
    not_below: float
    not_above: float
    at: float
    of_most: bool = False
    not_less: float | None = None
    not_more: float | None = None


def significance(effect: Effect, place: float) -> Significance | None:
    """The side of a place an effect lies on; None where the design supports no claim."""
    if effect.how == EXACT:
        over = _without_rounding(np.array([effect.value - place]), effect.size)
        return _beyond(over, lambda holds: float(not holds.all()), of_most=False)
    above, below = 1.0, 1.0
    if effect.is_bounded:
        above, below = effect.p_at_most(place), effect.p_at_least(place)
    if not is_sign_test(effect):
        return Significance(above, below, not_below=above, not_above=below, at=1.0) if effect.is_bounded else None
    pairs = _over(effect, place)
    if pairs is None:
        return None
    signs = _beyond(pairs, lambda holds: sign_p(int(holds.sum()), holds.size), of_most=True)
    if effect.is_constant and effect.has_nothing_unseen:
        return signs
    other_side = _over(effect, 0.0)
    assert other_side is not None
    more, less = (sign_p(int(holds.sum()), holds.size) for holds in (other_side > 0, other_side < 0))
    # Only the statistic's limits show claims true under no effect.
    return Significance(
        above=signs.above if place >= 0 else above,
        below=signs.below if place <= 0 else below,
        not_below=above if place < 0 else signs.above if place == 0 else signs.not_below,
        not_above=below if place > 0 else signs.below if place == 0 else signs.not_above,
        at=1.0,
        of_most=True,
        not_less=more if place < 0 else signs.not_below if place > 0 else signs.above,
        not_more=less if place > 0 else signs.not_above if place < 0 else signs.below,
    )


def is_sign_test(effect: Effect) -> bool:
    """Whether claims about more and less concern most repetitions: by design, or for lack of spread."""
    if effect.how == EXACT:
        return False
    is_paired = effect.own is not None and effect.units > 1
    return effect.is_constant or (is_paired and not effect.is_claimable)


def _beyond(over: Array, p: Callable[[npt.NDArray[np.bool_]], float], *, of_most: bool) -> Significance:
    """Args: over: distances from a place. p: a claim's p-value, from the distances in its favour."""
    sides = p(over > 0), p(over < 0), p(over >= 0), p(over <= 0)
    return Significance(*sides, at=p(np.equal(over, 0)), of_most=of_most)


def _over(effect: Effect, place: float) -> Array | None:
    """Each pair's effect minus a place; only the sign counts."""
    if effect.is_constant:
        return _without_rounding(np.full(effect.units, effect.value - place), effect.size)
    if effect.pairs is None:
        return None
    reference, other = effect.pairs
    if not effect.is_ratio:
        return _without_rounding(other - reference - place, effect.size)
    # A ratio to a number not above 0 is on no side.
    least = math.exp(place) * reference
    over = np.where(reference > 0, other - least, math.nan)
    return np.where(np.abs(over) <= ROUNDING * np.abs(least), 0.0, over)


def _without_rounding(over: Array, size: float) -> Array:
    return np.where(np.abs(over) <= ROUNDING * abs(size), 0.0, over)


def counts_of(effect: Effect) -> tuple[int, int]:
    """Counts of negative and positive pairs; none for unpaired cells."""
    over = _over(effect, 0.0)
    return (0, 0) if over is None else (int((over < 0).sum()), int((over > 0).sum()))


def agreeing_at(effect: Effect, place: float) -> int:
    """Pairs beyond a place, on the side away from no effect, where a sign test can show them."""
    over = _over(effect, place)
    if over is None:
        return 0
    if effect.is_constant:
        return effect.units
    return int(max((over > 0).sum() if place >= 0 else 0, (over < 0).sum() if place <= 0 else 0))


def effect_estimate(effect: Effect, *, level: float) -> Interval:
    """An effect with its interval; of what claims about most repetitions are made of, the median of the pairs.

    With too few pairs for any claim, the statistic's effect alone.
    """
    if not is_sign_test(effect):
        return estimate_of(effect, level=level)
    if effect.is_constant:
        pairs = np.full(effect.units, math.exp(effect.value) if effect.is_ratio else effect.value)
        return median_estimate(pairs, n=effect.n, level=level)
    if effect.of_pairs is None:
        return estimate_of(effect, level=level)
    made = median_estimate(effect.of_pairs, n=effect.n, level=level)
    return made if made.low is not None else estimate_of(effect, level=level)


def two_sided_p(effect: Effect) -> float | None:
    """The p-value of no difference: in the statistic, or in most repetitions without a supported interval.

    Returns: None if untestable: too few pairs for a sign test at 95 %, or a zero effect in every repetition.
    """
    if not is_sign_test(effect):
        return effect.p
    sides = significance(effect, 0.0)
    is_none = effect.value == 0 and effect.is_constant
    if sides is None or effect.units < repetitions_in_a_row(0.025) or is_none:
        return None
    return min(1.0, 2 * min(sides.above, sides.below))
