"""Claims about most repetitions: exact whatever the distribution, if a design supports no interval.

Half the repetitions lie above their median and half below. So n independent repetitions (or pairs) decide by the
sign test on the side of a place for most of them, and enclose the median by order statistics. Nothing is assumed about
their tail, and nothing is said about their mean: with a few long waits the mean may lie on the other side.

Source: Arbuthnot, Phil. Trans. 27 (1710); Thompson, Ann. Math. Stat. 7 (1936).
"""

import math

import numpy as np
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.estimate import MOST, Interval, check_level, without_interval

_MOST_REPETITIONS = 10_000


def sign_p(agreeing: int, units: int) -> float:
    """One-sided p-value for at most half the repetitions on a side, with `agreeing` of `units` there.

    A repetition on neither side counts against.
    """
    if agreeing in (0, units):
        return 0.5**agreeing
    return float(special.bdtrc(agreeing - 1, units, 0.5))


def repetitions_in_a_row(p: float) -> int:
    """The repetitions without an exception for this one-sided p-value, or less, in a sign test."""
    return math.ceil(-math.log2(p))


def repetitions_of_most(agreeing: int, units: int, *, p: float, power: float = 0.8) -> int | None:
    """Repetitions for a one-sided sign test with this p-value or less with probability `power`, if the observed
    agreeing share is the true one (by the normal distribution); None above 10,000, and if only half agree.
    """
    share = agreeing / units
    if share <= 0.5:
        return None
    fewest = repetitions_in_a_row(p)
    if share == 1:
        return fewest
    beyond_half = float(special.ndtri(1 - p)) / 2 + float(special.ndtri(power)) * math.sqrt(share * (1 - share))
    repetitions = math.ceil((beyond_half / (share - 0.5)) ** 2)
    return None if repetitions > _MOST_REPETITIONS else max(fewest, repetitions)


def median_estimate(values: Array, *, n: int, level: float) -> Interval:
    """The repetitions' median, with the exact interval inverting the sign test; without one for too few.

    Args: values: shape (repetitions,). n: values behind them.
    """
    ordered, size = np.sort(values), values.size
    middle = float((ordered[(size - 1) // 2] + ordered[size // 2]) / 2)
    tail = (1 - check_level(level)) / 2
    cut = size - _fewest_agreeing(size, tail) + 1
    if cut < 1:
        needed = repetitions_in_a_row(tail)
        reason = f"what most repetitions do takes {needed} of them, there are {size}: {needed - size} more"
        ends = (float(ordered[0]), float(ordered[-1]))
        return without_interval(middle, reason, n=n, level=level, units=size, spread=ends)
    low, high = float(ordered[cut - 1]), float(ordered[size - cut])
    spread = (float(ordered[0]), float(ordered[-1])) if low == high else None
    return Interval(middle, low, high, n, level, MOST, units=size, spread=spread)


def _fewest_agreeing(units: int, p: float) -> int:
    """The fewest agreeing repetitions with this p-value or less; above `units` without one."""
    low, high = units // 2, units + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if sign_p(middle, units) <= p else (middle + 1, high)
    return low
