"""Intervals for a share, as of lost or late exchanges.

Events in a repetition are clustered: a dead connection fails all its later exchanges. So the exact binomial interval
uses an effective number of independent trials, estimated from the repetitions' differences, and reduced by (z/t)^2
because these are known from few repetitions only (Korn & Graubard, Survey Methodology 24, 1998).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from crosswind.stats.design import share_shortage
from crosswind.stats.estimate import Interval, TooFewSamples, check_level, exactly, without_interval
from crosswind.stats.linearised import Linearised, student
from crosswind.stats.repetitions import Repetitions

METHOD = "Clopper-Pearson (exact binomial)"
EFFECTIVE = "Clopper-Pearson, of the effective number of trials over repetitions"
OF_SHARES = "square-and-add of Clopper-Pearson limits (Newcombe 1998)"
"""The method for a difference between two shares, each with limits."""


@dataclass(frozen=True, eq=False)
class Share:
    """Each repetition's trials and events.

    Attributes: hits, sizes: shape (units,). exact: whether the share comes out the same every time. least: minimum
        repetitions for an interval.
    """

    hits: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.float64]
    exact: bool = False
    least: int = 0

    @classmethod
    def of(cls, hits: npt.ArrayLike, sizes: npt.ArrayLike, *, exact: bool = False, least: int = 0) -> "Share":
        """Raises: TooFewSamples without a trial; ValueError unless 0 <= hits <= sizes."""
        events, trials = (np.asarray(given, dtype=np.float64).ravel() for given in (hits, sizes))
        if events.shape != trials.shape or np.any(events < 0) or np.any(events > trials):
            raise ValueError("a share needs 0 <= events <= trials in every repetition")
        if not trials.sum():
            raise TooFewSamples("there is no trial", needed=1)
        return cls(events[trials > 0], trials[trials > 0], exact, least)

    @classmethod
    def of_units(cls, flags: Repetitions, *, exact: bool = False, least: int = 0) -> "Share":
        """From values 0 or 1. Raises: TooFewSamples without one."""
        return cls.of(flags.below(np.inf) - flags.below(0.5), flags.sizes, exact=exact, least=least)

    @property
    def n(self) -> int:
        """Trials."""
        return round(float(self.sizes.sum()))

    @property
    def units(self) -> int:
        """Repetitions."""
        return int(self.sizes.size)

    @property
    def value(self) -> float:
        """The share, a fraction."""
        return float(self.hits.sum() / self.sizes.sum())

    @property
    def is_single(self) -> bool:
        """Whether every repetition is one trial, and so independent."""
        return self.n == self.units

    @property
    def linearised(self) -> Linearised:
        """The share as a mean over repetitions."""
        return Linearised(self.value, (self.hits - self.value * self.sizes) * (self.units / self.n), self.n)

    def worth(self, level: float) -> float:
        """The effective number of independent trials at this level; n with one trial in every repetition."""
        if self.is_single or self.units < 2:
            return float(self.n)
        error, p = self.linearised.error, self.value
        effective = min(float(self.n), p * (1 - p) / error**2) if error > 0 else float(self.n)
        return effective * (float(special.ndtri((1 + level) / 2)) / student(level, self.units - 1)) ** 2

    def limits(self, tail: float) -> tuple[float, float]:
        """Limits from independent trials; each errs with probability `tail` at most."""
        if self.exact:
            return self.value, self.value
        worth = self.worth(1 - 2 * tail)
        return exact_limits(self.value * worth, worth, tail)


def share_interval(share: Share, *, level: float = 0.95) -> Interval:
    """A share with its interval; without one below three repetitions, or where the share itself is exact."""
    if share.exact:
        return exactly(share.value, n=share.n, level=level)
    short = share_shortage(share.units, share.least)
    if short is not None:
        shares = share.hits / share.sizes
        spread = (float(shares.min()), float(shares.max())) if share.units > 1 else None
        return without_interval(share.value, short.message, n=share.n, level=level, units=share.units, spread=spread)
    low, high = share.limits((1.0 - check_level(level)) / 2.0)
    method = METHOD if share.is_single else EFFECTIVE
    return Interval(share.value, low, high, share.n, level, method, None, share.units)


def clopper_pearson(events: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """The exact binomial interval over independent trials: it never covers less than `level`.

    Raises: TooFewSamples without a trial; ValueError unless 0 <= events <= trials.
    Source: Clopper & Pearson, Biometrika 26 (1934).
    """
    if trials == 0:
        raise TooFewSamples("there is no trial", needed=1)
    if not 0 <= events <= trials:
        raise ValueError(f"{events:g} of {trials:g} is not a proportion")
    return exact_limits(events, trials, (1.0 - check_level(level)) / 2.0)


def exact_limits(events: float, trials: float, tail: float) -> tuple[float, float]:
    """Clopper-Pearson limits; events and trials may be fractional, as effective numbers."""
    low = 0.0 if events <= 0 else float(special.betaincinv(events, trials - events + 1, tail))
    high = 1.0 if events >= trials else float(special.betaincinv(events + 1, trials - events, 1.0 - tail))
    return low, high


def difference_limits(reference: Share, other: Share, tail: float) -> tuple[float, float]:
    """Limits of other - reference, each missed with probability `tail`, rather less.

    Both shares' limits squared and added: they hold without an event in any repetition, and without spread.

    Source: Newcombe, Statistics in Medicine 17 (1998), method 10, with Clopper and Pearson's limits for Wilson's.
    """
    (low_a, high_a), (low_b, high_b) = reference.limits(tail), other.limits(tail)
    shift = other.value - reference.value
    below = math.hypot(other.value - low_b, high_a - reference.value)
    above = math.hypot(high_b - other.value, reference.value - low_a)
    return shift - below, shift + above
