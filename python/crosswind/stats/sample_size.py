"""Repetitions needed to show an effect, or for an interval of a given width.

All numbers rest on the repetitions' spread: the standard deviation of their own values (for pairs: of the differences).
A spread estimated from few repetitions is itself uncertain, and so is the number derived from it: with the estimate in
place of the spread, a power of 80 % is 61 to 77 % after 3 to 20 repetitions. So the power is averaged over the
possible spreads, given its degrees of freedom; `spread_limits` gives the range.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from crosswind.stats.estimate import check_level

MOST = 1_000_000
"""Upper bound in searches for repetitions."""

FEWEST = 3
"""Minimum repetitions for any interval: Student's t for two is 12.7."""


_NODES = (np.arange(32) + 0.5) / 32
"""Probabilities for averaging a power over the spread's distribution."""


def repetitions_needed(
    spread: float,
    distance: float,
    *,
    alpha: float = 0.05,
    sides: int = 2,
    power: float = 0.8,
    freedom: float | None = None,
) -> int | None:
    """Pairs of repetitions for a paired t-test to show an effect at this distance from the tested one.

    Args:
        spread: standard deviation of the pairs' differences; for two equal unpaired sets, the root
            of their variances' sum: the result then errs by one or two on the safe side.
        distance: between the true effect and the tested one (0, or a margin), in the unit of `spread`.
        alpha: the test's, over its `sides`. power: probability of showing the effect.
        freedom: the spread's degrees of freedom; None: it is known.
    Returns: the fewest, FEWEST at least; None above MOST, and for a zero distance.
    Raises:  ValueError for a spread or distance below 0, and for probabilities outside (0, 1).
    Source:  Student's noncentral t; Cohen, Statistical Power Analysis for the Behavioral Sciences (1988), section 2.
    """
    check_level(power)
    tail = 1 - check_level(1 - alpha) if sides == 1 else (1 - check_level(1 - alpha)) / 2
    _check_spread(spread, distance)
    if distance == 0:
        return None
    if spread == 0:
        return FEWEST

    return fewest(lambda pairs: is_shown(pairs, spread, distance, tail=tail, power=power, freedom=freedom))


def is_shown(
    units: int, spread: float, distance: float, *, tail: float, power: float = 0.8, freedom: float | None = None
) -> bool:
    """Whether so many repetitions, or pairs, show their side of a place with probability `power`.

    Args: distance: from the place. tail: the test's, one-sided. freedom: as for `repetitions_needed`.
    """
    if distance <= 0 or spread == 0:
        return distance > 0
    # The spread over its estimate is distributed as the root of the freedom over chi-squared.
    larger = np.ones(1) if freedom is None else np.sqrt(freedom / special.chdtri(freedom, 1 - _NODES))
    away = distance / spread * math.sqrt(units) / larger
    critical = float(special.stdtrit(units - 1, 1 - tail))
    # Far beyond the critical value the noncentral t has no digits left, and the power is 1.
    missed = np.where(away > critical + 10, 0.0, special.nctdtr(units - 1, np.minimum(away, critical + 10), critical))
    return float(missed.mean()) <= 1 - power


def repetitions_for_width(
    spread: float, half_width: float, *, tail: float = 0.025, unseen: Callable[[int], float] = lambda _: 0.0
) -> int | None:
    """Repetitions for an interval by Student's t with at most this half-width, at the spread known so far.

    Args:   spread: standard deviation of the repetitions' values. half_width: in its unit. tail: beyond either end.
            unseen: addition to half the width for so many repetitions; never grows with them.
    Returns: the fewest, FEWEST at least; None above MOST, and for a zero half-width.
    Raises:  ValueError for a spread or half-width below 0.
    """
    _check_spread(spread, half_width)
    if half_width == 0:
        return None
    return fewest(lambda n: float(special.stdtrit(n - 1, 1 - tail)) * spread <= (half_width - unseen(n)) * math.sqrt(n))


def spread_limits(spread: float, repetitions: int, *, level: float = 0.8) -> tuple[float, float]:
    """A standard deviation's interval, from normal repetitions.

    Raises: ValueError below two repetitions.
    Source: the sum of squares' chi-squared distribution.
    """
    if repetitions < 2:
        raise ValueError("a spread needs two repetitions")
    freedom, tail = repetitions - 1, (1 - check_level(level)) / 2
    # chdtri takes the probability above.
    above, below = (float(special.chdtri(freedom, p)) for p in (tail, 1 - tail))
    return spread * math.sqrt(freedom / above), spread * math.sqrt(freedom / below)


def fewest(is_enough: Callable[[int], bool]) -> int | None:
    """The smallest sufficient number from FEWEST on, by doubling and bisection: more never suffice less.

    Returns: None above MOST.
    """
    if is_enough(FEWEST):
        return FEWEST
    low, high = FEWEST, 2 * FEWEST
    while not is_enough(high):
        if high >= MOST:
            return None
        low, high = high, min(2 * high, MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _check_spread(spread: float, distance: float) -> None:
    if not (spread >= 0 and distance >= 0 and math.isfinite(spread + distance)):
        raise ValueError(f"a spread of {spread} and a distance of {distance} are no sizes")


FOR_POWER = 1 + 0.8416 / 1.9600
"""Factor on a bound's distance for an interval to exclude it in 80 % of studies, instead of half."""


def more_to_decide(value: float, end: float | None, bound: float, size: int) -> int | None:
    """Further units to show a number's side of a bound, probably, if it is the observed one.

    An interval narrows with the square root of its units; with this many it excludes the bound in 80 % of studies.

    Args: end: the 95 % interval's, on the bound's side; None without one. size: present units.
    Returns: 1 at least; None above MOST, and if undecidable.
    """
    distance = abs(value - bound)
    if end is None or distance == 0:
        return None
    needed = size * (FOR_POWER * abs(value - end) / distance) ** 2
    return None if needed >= MOST else max(1, math.ceil(needed) - size)
