"""An interval valid under repeated looks, until it is narrow enough.

A run continued until its interval is narrow stops when the repetitions happen to spread little, and the usual interval
then misses too often. The remedy comes from group-sequential trials: the error of 5 % is spent over the looks (Lan and
DeMets, Biometrika 70, 1983), at the rate a ln(1 + (e - 1) t), with nearly the same critical value at every look, like
Pocock's; t is the share of the maximum number of repetitions. Each look's interval is a repeated confidence interval
(Jennison and Turnbull, Group Sequential Methods with Applications to Clinical Trials, 2000, chapters 7 and 9): all
together cover with 95 %, so any reason to stop is allowed, the interval's width too, and looks may be left out. The
critical values are for a normal mean; with an estimated spread, Student's t with the same tail replaces each (section
4.4 there).

For positive quantities, as times, the limits are for the logarithm of the mean (its standard error is the mean's,
divided by the mean). Their repetitions are skewed to the right, a run stops early when large ones are missing by
chance, and the truth then lies above: limits on the logarithm reach further there. docs/statistics-reference.md has
both coverages.
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
"""Maximum exponent in a limit, against overflow."""

METHOD = "repeated confidence interval, Pocock-like spending (Lan & DeMets 1983), Student's t over repetitions"

_NODES = 240
"""Quadrature nodes between the boundaries; with twice as many, the critical values change by less than 1e-9."""


@dataclass(frozen=True)
class RepeatedInterval:
    """The mean at a look. value, low, high: in its unit. spread: the repetitions' standard deviation."""

    value: float
    low: float
    high: float
    units: int
    spread: float

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    def widened(self, less: float, more: float, *, is_positive: bool = False) -> "RepeatedInterval":
        """With limits extended for unseen events."""
        low = self.low - less
        return replace(self, low=max(0.0, low) if is_positive else low, high=self.high + more)


def tails(looks: Sequence[int], *, level: float = 0.95) -> tuple[float, ...]:
    """The probability beyond either limit of each look's interval.

    Args:    looks: repetitions at each look, ascending; the last is the maximum.
    Returns: one-sided tails, (1 - level) / 2 for a single look.
    Raises:  ValueError for looks out of order.
    """
    return _tails(tuple(looks), check_level(level))


def repeated_interval(
    values: Array, look: int, looks: Sequence[int], *, is_positive: bool = False, level: float = 0.95
) -> RepeatedInterval:
    """A mean's interval at a look, valid together with all other looks'.

    Args:   values: one number for each repetition, shape (units,). look: an index into `looks`.
            is_positive: whether they are above 0 by nature: the limits are then the logarithm's.
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
    """Limits for a mean with the error `half`. A mean of 0, as for unsent bytes, has no logarithm."""
    if not is_positive or mean <= 0:
        return mean - half, mean + half
    factor = math.exp(min(half / mean, _LONGEST))
    return mean / factor, mean * factor


def width_factor(units: int, look: int, looks: Sequence[int], *, level: float = 0.95) -> float:
    """Half the interval's width at a look, in standard deviations of a repetition."""
    tail = tails(looks, level=level)[look]
    return float(special.stdtrit(units - 1, 1 - tail)) / math.sqrt(units)


def repetitions_alike(looks: Sequence[int], *, level: float = 0.95) -> int | None:
    """The first look with enough equal repetitions for a claim about most: a sign test with the look's tail.

    Without spread, a mean's interval would have no width. None with too few looks.
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
    """The first look with an interval this narrow, under this spread; None if it never is.

    Args: mean, is_positive: as for `repeated_interval`. unseen: addition to half the width for so many repetitions.
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
    sums, density = np.zeros(1), np.ones(1)  # for the sum of repetitions, among paths within all boundaries
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
    """The critical value crossed by a share `spend` of all paths at this look, both sides together."""
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        beyond = 2 * float(density @ special.ndtr((sums - middle * scale) / step))
        low, high = (middle, high) if beyond > spend else (low, middle)
    return high
