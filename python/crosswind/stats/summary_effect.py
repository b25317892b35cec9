"""How far two sets of repetitions lie apart: the difference, or the ratio, of the means of one number a repetition.

Repetitions with the same number and the same seed met the same losses and form pairs; other sets are independent. A
ratio is a logarithm, linearised: of pairs, each contributes b / mean(b) - a / mean(a).

A positive effect means that the second set is larger.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from scipy import special

from crosswind.stats.estimate import Array, TooFewSamples
from crosswind.stats.sample_size import FEWEST


class How(Enum):
    """On what an effect's error rests."""

    PAIRED = "Student's t, paired by repetition"
    UNPAIRED = "Welch's t over repetitions"
    AGAINST_EXACT = "Student's t over repetitions, against an exact number"
    EXACT = "exact"
    """Nothing was left to chance in either set."""


@dataclass(frozen=True, eq=False)
class UnitValues:
    """One number for each repetition. values: shape (units,). exact: whether they come out the same every time."""

    values: Array
    exact: bool = False


@dataclass(frozen=True)
class SummaryEffect:
    """An effect. value: a difference, or the logarithm of a ratio. error, freedom: of its standard error.

    units: pairs, or repetitions of the smaller set. how: see there. is_ratio: whether `value` is a logarithm.
    """

    value: float
    error: float
    freedom: float
    units: int
    how: How
    is_ratio: bool

    @property
    def is_exact(self) -> bool:
        """Whether it would come out the same every time."""
        return self.how is How.EXACT

    @property
    def is_known(self) -> bool:
        """Whether there are repetitions enough to say how sure it is."""
        return self.is_exact or self.units >= FEWEST

    @property
    def spread(self) -> float:
        """Standard deviation of a pair's effect, or what stands for it in two independent sets."""
        return self.error * math.sqrt(self.units)

    @property
    def p(self) -> float | None:
        """Two-sided p-value of no effect; None where it cannot be tested. 0 where all pairs differ by the same."""
        if self.is_exact or not self.is_known:
            return None
        return min(1.0, 2 * min(self.p_at_most(0.0), self.p_at_least(0.0)))

    def limits(self, level: float) -> tuple[float, float]:
        """The two-sided interval."""
        half = float(special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.value - half, self.value + half

    def p_at_most(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or less: small where it is clearly above."""
        return self._beyond(self.value - place)

    def p_at_least(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or more: small where it is clearly below."""
        return self._beyond(place - self.value)

    def _beyond(self, over: float) -> float:
        if self.error == 0:
            return 0.0 if over > 0 else 1.0
        return float(special.stdtr(self.freedom, -over / self.error))


def effect_of(
    a: UnitValues, b: UnitValues, *, paired: bool, is_ratio: bool = False, least_error: float = 0.0
) -> SummaryEffect:
    """The effect from `a` to `b`.

    Args:   paired: whether values at the same place are a pair. least_error: the standard error is no less than this.
    Raises: TooFewSamples for an empty set, and for a ratio of means that are not both above 0.
    """
    if not a.values.size or not b.values.size:
        raise TooFewSamples("there is no repetition with a number")
    means = float(a.values.mean()), float(b.values.mean())
    if is_ratio and min(means) <= 0:
        raise TooFewSamples("a ratio needs two numbers above 0")
    value = math.log(means[1] / means[0]) if is_ratio else means[1] - means[0]
    scales = means if is_ratio else (1.0, 1.0)
    parts = a.values / scales[0], b.values / scales[1]
    if a.exact and b.exact:
        return SummaryEffect(value, 0.0, 1.0, 1, How.EXACT, is_ratio)
    if a.exact or b.exact:
        random = parts[0] if b.exact else parts[1]
        error, how = _error(random), How.AGAINST_EXACT
        freedom, units = max(random.size - 1.0, 1.0), random.size
    elif paired:
        differences = parts[1] - parts[0]
        error, how = _error(differences), How.PAIRED
        freedom, units = max(differences.size - 1.0, 1.0), differences.size
    else:
        errors = _error(parts[0]), _error(parts[1])
        error, how = math.hypot(*errors), How.UNPAIRED
        freedom, units = _welch(errors, (parts[0].size, parts[1].size)), min(parts[0].size, parts[1].size)
    return SummaryEffect(value, max(error, least_error), freedom, units, how, is_ratio)


def _error(values: Array) -> float:
    """Standard error of the mean; 0 for a single value, and where all that differs is rounding."""
    if values.size < 2:
        return 0.0
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    return error if error > 1e-13 * float(np.abs(values).max(initial=0.0)) else 0.0


def _welch(errors: tuple[float, float], sizes: tuple[int, int]) -> float:
    """Degrees of freedom of Welch and Satterthwaite."""
    below = sum(error**4 / max(size - 1, 1) for error, size in zip(errors, sizes, strict=True))
    return math.hypot(*errors) ** 4 / below if below > 0 else float(max(sum(sizes) - 2, 1))
