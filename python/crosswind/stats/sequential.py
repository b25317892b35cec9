"""An interval that stays valid although it is looked at again and again, until it is narrow enough.

A run that goes on until its interval is narrow stops where the repetitions happen to spread little, and the usual
interval then misses too often. The remedy is that of group-sequential trials: the error of 5 % is spent over the looks
(Lan and DeMets, Biometrika 70, 1983), at the rate a ln(1 + (e - 1) t) that keeps the critical value nearly the same at
every look, as Pocock's does; t is the share of the most repetitions that there may be. The interval of each look is a
repeated confidence interval (Jennison and Turnbull, Group Sequential Methods with Applications to Clinical Trials,
2000, chapters 7 and 9): all of them together cover with 95 %, so any reason to stop is allowed, the interval's width
too, and looks may be left out. The critical values are those of a normal mean; with a spread that is estimated,
Student's t with the same tail stands for each (section 4.4 there).

Of what is above 0 by its nature, as a time, the limits are those of the logarithm of the mean (its standard error is
that of the mean, divided by the mean). Repetitions of such are skewed to the right, a run stops early where large ones
are missing by chance, and the truth then lies above: limits on the logarithm reach further there.
docs/statistics-reference.md has the coverage of both.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.estimate import TooFewSamples, check_level
from crosswind.stats.sample_size import FEWEST

_LONGEST = 500.0
"""Of the exponent of a limit, beyond which numbers end."""

METHOD = "repeated confidence interval, Pocock-like spending (Lan & DeMets 1983), Student's t over repetitions"

_NODES = 240
"""Of the quadrature between the boundaries; with twice as many, the critical values change by less than 1e-9."""


@dataclass(frozen=True)
class RepeatedInterval:
    """The mean of some repetitions at a look. value, low, high: in their unit. spread: their standard deviation."""

    value: float
    low: float
    high: float
    units: int
    spread: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def widened(self, less: float, more: float, *, is_positive: bool = False) -> "RepeatedInterval":
        """With limits that reach further: by what chance may do that no repetition has shown."""
        low = self.low - less
        return replace(self, low=max(0.0, low) if is_positive else low, high=self.high + more)


def tails(looks: Sequence[int], *, level: float = 0.95) -> tuple[float, ...]:
    """The probability beyond either limit of the interval at each look.

    Args:    looks: how many repetitions there are at each look, ascending; the last one is the most that there may be.
    Returns: one-sided tails, (1 - level) / 2 for a single look.
    Raises:  ValueError for looks that are not ascending.
    """
    return _tails(tuple(looks), check_level(level))


def repeated_interval(
    values: Array, look: int, looks: Sequence[int], *, is_positive: bool = False, level: float = 0.95
) -> RepeatedInterval:
    """The interval of a mean at a look, valid together with those of all other looks.

    Args:   values: one number for each repetition, shape (units,). look: which one this is, an index into `looks`.
            is_positive: whether they are above 0 by their nature, so that the limits are those of the logarithm.
    Raises: TooFewSamples below three repetitions.
    """
    units = values.size
    if units < FEWEST:
        raise TooFewSamples(f"an interval needs {FEWEST} repetitions with a value, there are {units}")
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    half = width_factor(units, look, looks, level=level) * spread
    low, high = _limits(mean, half, is_positive=is_positive)
    return RepeatedInterval(mean, low, high, units, spread)


def _limits(mean: float, half: float, *, is_positive: bool) -> tuple[float, float]:
    """Limits of a mean whose error is worth `half`. A mean of 0, as of bytes that were never sent, has no logarithm."""
    if not is_positive or mean <= 0:
        return mean - half, mean + half
    factor = math.exp(min(half / mean, _LONGEST))
    return mean / factor, mean * factor


def width_factor(units: int, look: int, looks: Sequence[int], *, level: float = 0.95) -> float:
    """Half the width of the interval at a look, in standard deviations of a repetition."""
    tail = tails(looks, level=level)[look]
    return float(special.stdtrit(units - 1, 1 - tail)) / math.sqrt(units)


def repetitions_alike(looks: Sequence[int], *, level: float = 0.95) -> int | None:
    """The first look at which repetitions that are all the same say so of most: a sign test with the tail of that look.

    They show no spread, so that the interval of a mean would have no width. None where there are too few looks.
    """
    return next(
        (units for units, tail in zip(looks, tails(looks, level=level), strict=True) if 0.5**units <= tail), None
    )


def look_at_which(
    spread: float,
    half_width: float,
    looks: Sequence[int],
    *,
    mean: float,
    is_positive: bool = False,
    unseen: Callable[[int], float] = lambda _: 0.0,
) -> int | None:
    """The first look at which the interval is this narrow, if repetitions spread so; None where it never is.

    Args: mean, is_positive: as `repeated_interval` has them. unseen: what so many repetitions leave to be added to half
        the width.
    """
    for number, units in enumerate(looks):
        if units >= FEWEST:
            low, high = _limits(mean, width_factor(units, number, looks) * spread, is_positive=is_positive)
            if (high - low) / 2 + unseen(units) <= half_width:
                return number
    return None


@functools.lru_cache(maxsize=256)
def _tails(looks: tuple[int, ...], level: float) -> tuple[float, ...]:
    if not looks or looks[0] < 1 or any(after <= before for before, after in itertools.pairwise(looks)):
        raise ValueError(f"{looks} are no looks")
    alpha = 1 - level
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    tails: list[float] = []
    spent, before = 0.0, 0
    sums, density = np.zeros(1), np.ones(1)  # of the sum of repetitions, among the paths that crossed no boundary
    for units in looks:
        spend = alpha * math.log1p((math.e - 1) * units / looks[-1]) - spent
        step = math.sqrt(units - before)
        critical = _critical(sums, density, step, math.sqrt(units), spend)
        tails.append(float(special.ndtr(-critical)))
        edge = critical * math.sqrt(units)
        places = edge * nodes
        kernel = np.exp(-0.5 * ((places[:, None] - sums[None, :]) / step) ** 2) / (step * math.sqrt(2 * math.pi))
        sums, density = places, (kernel @ density) * weights * edge
        spent, before = spent + spend, units
    return tuple(tails)


def _critical(sums: Array, density: Array, step: float, scale: float, spend: float) -> float:
    """The critical value beyond which a share `spend` of all paths goes at this look, on both sides together."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        beyond = 2 * float(density @ special.ndtr((sums - middle * scale) / step))
        low, high = (middle, high) if beyond > spend else (low, middle)
    return high
