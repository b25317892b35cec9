"""The mean of the repetitions' own quantiles, which is what comparisons by a quantile compare."""

import math

from crosswind.stats.design import Design, repetition_quantile_shortage
from crosswind.stats.differences import statistic_of
from crosswind.stats.estimate import Estimate, without_interval
from crosswind.stats.linearised import NO_SPREAD, limits, method_of
from crosswind.stats.units import Units


def repetition_quantile_interval(units: Units, q: float, *, unit: str, design: Design, level: float = 0.95) -> Estimate:
    """The mean of the q-quantiles of the repetitions, with an interval over these.

    Returns: an Estimate without an interval where the design does not support one, or no repetition differs.
    Raises:  TooFewSamples where a repetition has too few values for a quantile of its own.
    """
    found = statistic_of(units, q)
    short = repetition_quantile_shortage(design, q, found.units, of="cell")
    if short is not None or found.error == 0:
        own = found.value + found.parts
        spread = (float(own.min()), float(own.max())) if own.size > 1 else None
        why = NO_SPREAD if short is None else short.message
        return without_interval(found.value, why, n=found.n, level=level, unit=unit, units=found.units, spread=spread)
    low, high = (end if math.isfinite(end) else None for end in limits(found, design, level))
    unbounded = None if low is not None and high is not None else "the resamples do not bound it"
    return Estimate(found.value, low, high, found.n, level, method_of(design), unit, unbounded, found.units)
