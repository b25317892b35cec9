"""A metric's mean and trimmed mean, with the intervals supported by repetitions."""

import math
from dataclasses import replace

import numpy as np

from crosswind.stats.arrays import Array
from crosswind.stats.design import (
    LIGHT,
    MIN_UNITS,
    NO_VARIANCE,
    Design,
    Shortage,
    Tail,
    mean_shortage,
    trimmed_mean_shortage,
)
from crosswind.stats.estimate import Interval, refused, without_interval
from crosswind.stats.linearised import NO_SPREAD, UNBOUNDED, Linearised, limits, lower_limit, mean_of, method_of
from crosswind.stats.repetitions import Repetitions

TRIMMED = 0.2
"""Share of values cut by a trimmed mean at each end."""


def mean_interval(units: Repetitions, *, design: Design = LIGHT, level: float = 0.95) -> Interval:
    """The mean of all values, with an interval over repetitions.

    Returns: Interval, without an interval where `mean_shortage` says so; of a wait in a design that is not light it
             then has a lower limit alone, from MIN_UNITS repetitions on. Without a variance it is refused.
    Raises:  TooFewSamples without a value.
    """
    mean = mean_of(units)
    if design.tail is Tail.INFINITE:
        return refused(NO_VARIANCE, n=mean.n, level=level, units=mean.units)
    short = mean_shortage(design, mean.units, mean.n)
    if short is None and mean.error > 0:
        return _with_limits(mean, limits(mean, design, level), method_of(design), level)
    return _short(mean, short, units, design, level=level)


def trimmed_mean_of(units: Repetitions, share: float = TRIMMED) -> Linearised:
    """The mean without the smallest and the largest `share` of the values.

    A value contributes by its winsorised distance from the winsorised mean (Wilcox, Introduction to Robust Estimation
    and Hypothesis Testing, section 3.3). Censored exchanges are among the largest.

    Raises: TooFewSamples without a value.
    """
    ordered, n = units.ordered, units.n
    mean_of(units)
    cut = math.floor(share * n)
    low, high = ordered[min(cut, ordered.size - 1)], ordered[min(n - cut, ordered.size) - 1]
    value = _trimmed(ordered, n, share)
    winsorised = np.clip(units.values, low, high)
    sums = np.bincount(units.member, weights=winsorised - value, minlength=units.count)
    sums += units.censored * (high - value)
    sizes = units.sizes + units.censored
    used = sizes > 0
    sums, sizes = sums[used], sizes[used]
    middle = sums.sum() / n
    parts = (sums - middle * sizes) * (sums.size / (n * (1 - 2 * share)))
    # Tukey & McLaughlin (1963): for independent values, the remaining ones give the degrees of freedom.
    return Linearised(value, parts, n, left_out=2 * cut if units.is_single else 0)


def trimmed_mean_interval(units: Repetitions, *, design: Design = LIGHT, level: float = 0.95) -> Interval:
    """The trimmed mean with an interval over repetitions. Raises: TooFewSamples without a value."""
    mean = trimmed_mean_of(units)
    beyond = int(units.censored.sum())
    if beyond > TRIMMED * units.n:
        why = "more exchanges timed out than are trimmed"
        return refused(why, n=units.n, level=level, units=mean.units)
    short = trimmed_mean_shortage(mean.units, mean.n)
    if short is not None or mean.error == 0:
        made = _short(mean, short, units, LIGHT, level=level)
        return replace(made, spread=_trimmed_spread(units))
    return _with_limits(mean, limits(mean, design, level), method_of(design), level)


def _trimmed_spread(units: Repetitions) -> tuple[float, float] | None:
    """The smallest and the largest trimmed mean over units; None with values in a single unit."""
    ends = [_trimmed(np.sort(values), values.size + held, TRIMMED) for values, held in units.of_units() if values.size]
    return (min(ends), max(ends)) if len(ends) > 1 else None


def _trimmed(ordered: Array, n: int, share: float) -> float:
    """The trimmed mean over n exchanges. Those without a value count as the largest."""
    cut = math.floor(share * n)
    end = min(n - cut, ordered.size)
    kept = ordered[cut:end]
    return float(kept.mean()) if kept.size else float(ordered[end - 1])


def _with_limits(linearised: Linearised, ends: tuple[float, float], method: str, level: float) -> Interval:
    low, high = (end if math.isfinite(end) else None for end in ends)
    why = None if low is not None and high is not None else UNBOUNDED
    return Interval(linearised.value, low, high, linearised.n, level, method, why, linearised.units)


def _short(
    linearised: Linearised, short: Shortage | None, units: Repetitions, design: Design, *, level: float
) -> Interval:
    """A mean's estimate without an interval supported by the design, or with equal repetitions."""
    message = NO_SPREAD if short is None else short.message
    if linearised.error > 0 and design.is_wait and design.tail is not Tail.LIGHT and linearised.units >= MIN_UNITS:
        low = lower_limit(linearised, level)
        method = "one-sided Student's t over repetitions"
        return Interval(linearised.value, low, None, linearised.n, level, method, message, linearised.units)
    return without_interval(
        linearised.value, message, n=linearised.n, level=level, units=linearised.units, spread=units.spread()
    )
