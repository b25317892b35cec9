"""The difference of two shares: that of two means, but never surer than that of independent exchanges.

Rare events may come in few repetitions only. Where these are missing by chance, repetitions spread too little, and the
interval of their mean difference covers too rarely, or there is none. docs/statistics.md has the coverage.
"""

import math
from dataclasses import replace

from crosswind.stats.design import MIN_UNITS
from crosswind.stats.effect import PAIRED, Effect, Side, difference, pairs_of
from crosswind.stats.estimate import EXACT
from crosswind.stats.units import Units


def share_difference(reference: Side, other: Side) -> Effect:
    """other - reference, of values that are 0 or 1. Raises: TooFewSamples where one has no value."""
    effect = difference(reference, other)
    if effect.how == EXACT or effect.units < MIN_UNITS:
        return effect
    sides = [reference, other]
    pairs = pairs_of(reference.units, other.units)
    if effect.how == PAIRED and pairs is not None:
        sides = [replace(side, units=side.units.chosen(pairs)) for side in sides]
    least = math.hypot(*(0.0 if side.exact else _independent_error(side.units) for side in sides))
    if effect.error >= least:
        return effect
    return replace(effect, linear=None, error=least, shortage=None, needed=None)


def _independent_error(units: Units) -> float:
    """The standard error of a share of independent exchanges, with one more of either kind.

    Source: Agresti & Caffo, The American Statistician 54 (2000).
    """
    share = (float(units.values.sum()) + 1) / (units.n + 2)
    return math.sqrt(share * (1 - share) / (units.n + 2))
