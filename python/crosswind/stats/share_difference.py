"""A difference of two shares, which is never surer than that of independent exchanges.

Rare events may come in few repetitions only. Where these are missing by chance, repetitions spread too little, and the
interval of their mean difference covers too rarely, or there is none. docs/statistics-reference.md has the coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from crosswind.stats.design import MIN_UNITS
from crosswind.stats.effect import Effect
from crosswind.stats.estimate import EXACT
from crosswind.stats.units import Units


def no_surer_than_independent(effect: Effect, random: Sequence[Units]) -> Effect:
    """A difference of shares with the larger of its own standard error and that of independent exchanges.

    Args: random: the values, 0 or 1, of those of both cells that are not exact.
    """
    if effect.how == EXACT or effect.units < MIN_UNITS:
        return effect
    least = math.hypot(*(_independent_error(units) for units in random))
    if effect.error >= least:
        return effect
    # Its test is that of the interval: a permutation would know how repetitions differ alone.
    return replace(effect, linear=None, sides=None, error=least, shortage=None, needed=None)


def _independent_error(units: Units) -> float:
    """The standard error of a share of independent exchanges, with one more of either kind.

    Source: Agresti & Caffo, The American Statistician 54 (2000).
    """
    share = (float(units.values.sum()) + 1) / (units.n + 2)
    return math.sqrt(share * (1 - share) / (units.n + 2))
