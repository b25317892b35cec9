"""A statistic's value and each repetition's contribution to its error; intervals and tests for it.

In a ratio such as a mean over all messages, repetition u contributes d_u = U (s_u - m n_u) / N, with U repetitions of
n_u messages with values adding up to s_u. The standard error is that of the mean over d_u. The difference between two
statistics over the same repetitions has the differences of their contributions; this makes a comparison paired.

Source: Cochran, Sampling Techniques (1977), section 6.3; Davison & Hinkley 1997, sections 2.4 and 2.7.
"""

import functools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.design import Design, Tail
from crosswind.stats.estimate import check_level
from crosswind.stats.repetitions import Repetitions

RESAMPLES = 1999
MAX_RESAMPLED = 1000
"""Maximum units for resampling; with more, Student's t is as good."""

LEAST_SPREAD = 0.01
"""A share of the standard error: resamples below it show none. If a few repetitions alone hold the spread, as a lost
SYN among 200 connections, a resample without them has next to none, and its t may be any number.
"""

NO_SPREAD = "the repetitions do not differ at all, so nothing shows the uncertainty"
UNBOUNDED = "too few repetitions differ from the others to bound it: resamples without them do not spread"

STUDENT = "Student's t over repetitions"
WIDER = "Student's t and studentised bootstrap over repetitions, the wider limit at each end"


@dataclass(frozen=True)
class Linearised:
    """A statistic. value: in its unit. parts: shape (units,), each repetition's contribution; their mean is 0.

    n: values behind it. left_out: repetitions uninformative about its error, as trimmed ones.
    """

    value: float
    parts: Array = field(repr=False)
    n: int
    left_out: int = 0

    @property
    def units(self) -> int:
        """The number of repetitions behind it."""
        return self.parts.size

    @functools.cached_property
    def error(self) -> float:
        """The standard error; 0 for a single unit, as it shows none."""
        units = self.parts.size
        if units < 2:
            return 0.0
        squares = float(self.parts @ self.parts)
        # Rounding errors in equal contributions are not a spread.
        scale = max(abs(self.value), 1e-300)
        error = float(np.sqrt(squares / (units * (units - 1))))
        return error if error > 1e-14 * scale else 0.0

    @functools.cached_property
    def resampled_t(self) -> Array:
        """(statistic - value) / error over resamples, shape (RESAMPLES,), unlimited where a resample hardly spreads.

        The same number of units gives the same resamples.
        """
        parts = self.parts / (np.abs(self.parts).max() or 1.0)
        units = parts.size
        shift, square = (_weights(units) @ np.stack([parts, parts**2], axis=1) / units).T
        error = np.sqrt(np.maximum(square - shift**2, 0.0) / (units - 1))
        known = error > LEAST_SPREAD * np.sqrt(np.mean(parts**2) / (units - 1))
        unlimited = np.where(shift == 0, 0.0, np.copysign(np.inf, shift))
        return np.asarray(np.divide(shift, error, out=unlimited, where=known))

    @property
    def freedom(self) -> int:
        """The error's degrees of freedom."""
        return max(self.parts.size - self.left_out - 1, 1)


def mean_of(units: Repetitions) -> Linearised:
    """The mean over all values, a ratio of sums over the repetitions. Raises: TooFewSamples without a value."""
    centre, n = units.centre, units.values.size
    used = units.sizes > 0
    sums, sizes = units.sums[used], units.sizes[used]
    shift = float(sums.sum()) / n
    return Linearised(centre + shift, (sums - shift * sizes) * (sums.size / n), n)


def widened_percentiles(best: Array, resampled: Array, units: int, level: float) -> tuple[Array, Array]:
    """The percentiles of resampled values along the first axis, extended to include the best ones. Few units'
    percentiles are too close; their distances are widened by the ratio of Student's t to the normal.

    Args: best: shape (...). resampled: shape (n, ...). units: number resampled; below 2 nothing is widened.
    """
    tail = (1 + check_level(level)) / 2
    wider = student(level, units - 1) / float(special.ndtri(tail)) if units > 1 else 1.0
    low, high = np.quantile(resampled, (1 - tail, tail), axis=0)
    return best + wider * np.minimum(low - best, 0.0), best + wider * np.maximum(high - best, 0.0)


def student(level: float, freedom: float) -> float:
    """Student's t for a two-sided interval at this level."""
    return float(special.stdtrit(freedom, (1 + check_level(level)) / 2))


def limits(of: Linearised, design: Design, level: float) -> tuple[float, float]:
    """The two-sided interval. An end may be infinite, if resamples do not bound it.

    Student's t; in a design other than light, at each end the wider limit of its own and the studentised bootstrap's:
    the first suits symmetric differences, the second skewed values.
    """
    half = student(level, of.freedom) * of.error
    low, high = of.value - half, of.value + half
    if design.tail is Tail.LIGHT or not 1 < of.units <= MAX_RESAMPLED or of.error == 0:
        return low, high
    tail = (1 - level) / 2
    below, above = (float(t) for t in np.quantile(of.resampled_t, [tail, 1 - tail], method="inverted_cdf"))
    return min(low, of.value - above * of.error), max(high, of.value - below * of.error)


def lower_limit(of: Linearised, level: float) -> float:
    """A one-sided lower limit. Where the upper tail is the heavy one, it covers at least `level`."""
    return of.value - float(special.stdtrit(of.freedom, level)) * of.error


def method_of(design: Design) -> str:
    """How `limits` are made in a design."""
    return STUDENT if design.tail is Tail.LIGHT else WIDER


@functools.lru_cache(maxsize=4)
def _weights(units: int) -> npt.NDArray[np.float64]:
    """How often each unit is in each resample, shape (RESAMPLES, units)."""
    drawn = np.random.default_rng(units).integers(0, units, size=(RESAMPLES, units))
    drawn += units * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * units).reshape(RESAMPLES, units).astype(np.float64)
