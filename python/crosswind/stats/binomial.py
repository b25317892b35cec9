"""Intervals for a proportion, such as the fraction of exchanges that were lost, or were answered late."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from crosswind.stats.bootstrap import design_effect
from crosswind.stats.estimate import EXACT, Estimate, TooFewSamples, check_level, exactly

METHOD = "Clopper-Pearson (exact binomial)"


def clopper_pearson(successes: int, n: int, *, level: float = 0.95, unit: str = "1") -> Estimate:
    """Exact binomial interval: never covers less than `level`, at the price of being wide.

    Args:    successes: how many of n. n: trials, taken as independent.
    Returns: Estimate of the proportion, a fraction of 1.
    Raises:  TooFewSamples when n is 0; ValueError unless 0 <= successes <= n.
    Source:  Clopper & Pearson, Biometrika 26 (1934).
    """
    _check(successes, n)
    low, high = _exact(successes, n, (1.0 - check_level(level)) / 2.0)
    return Estimate(successes / n, low, high, n, level, METHOD, unit)


def wilson(successes: int, n: int, *, level: float = 0.95, unit: str = "1") -> Estimate:
    """Wilson's score interval: covers `level` on average, narrower than Clopper-Pearson.

    Args, Returns, Raises: as `clopper_pearson`.
    Source:  Wilson, JASA 22 (1927).
    """
    _check(successes, n)
    z = float(stats.norm.ppf((1.0 + check_level(level)) / 2.0))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else min(share, centre - half)
    high = 1.0 if successes == n else max(share, centre + half)
    return Estimate(share, low, high, n, level, "Wilson score", unit)


@dataclass(frozen=True)
class Share:
    """How many of `n` exchanges did something, and how many independent ones those are worth.

    Attributes: value: the share, a fraction. n: exchanges. worth: n / `design_effect`, not above n. exact: whether
        the share comes out the same every time.
    """

    value: float
    n: int
    worth: float
    exact: bool = False

    @property
    def method(self) -> str:
        """How its limits are made."""
        if self.exact:
            return EXACT
        return METHOD if self.worth == self.n else f"Clopper-Pearson (binomial, {self.worth:.0f} effective samples)"

    def limits(self, tail: float) -> tuple[float, float]:
        """Exact limits, each missed with a probability of at most `tail`."""
        if self.exact:
            return self.value, self.value
        return _exact(self.value * self.worth, self.worth, tail)


def share_of(flags: npt.ArrayLike, clusters: npt.ArrayLike | None = None) -> Share:
    """The share of ones among zeros and ones.

    Args:    flags: shape (n,), each 0 or 1. clusters: shape (n,), the connection of each, as of `quantile_interval`.
    Raises:  TooFewSamples when there are none.
    Source:  effective sample size: Korn & Graubard, Survey Methodology 24 (1998).
    """
    given = np.asarray(flags, dtype=np.float64).ravel()
    _check(int(given.sum()), given.size)
    return Share(float(given.mean()), given.size, given.size / design_effect(given, clusters))


def share_interval(share: Share, *, level: float = 0.95) -> Estimate:
    """A share with its exact interval, or without one where the share itself is exact."""
    if share.exact:
        return exactly(share.value, n=share.n, level=level, unit="1")
    low, high = share.limits((1.0 - check_level(level)) / 2.0)
    return Estimate(share.value, low, high, share.n, level, share.method, "1")


def difference_limits(reference: Share, other: Share, tail: float) -> tuple[float, float]:
    """Limits of other - reference, each missed with a probability of about `tail`, rather less.

    Exact limits of either share squared and added, so that they hold where a share is 0 or 1 and nothing spreads.

    Source: Newcombe, Statistics in Medicine 17 (1998), method 10, with Clopper and Pearson's limits for Wilson's.
    """
    (low_a, high_a), (low_b, high_b) = reference.limits(tail), other.limits(tail)
    shift = other.value - reference.value
    below = math.hypot(other.value - low_b, high_a - reference.value)
    above = math.hypot(high_b - other.value, reference.value - low_a)
    return shift - below, shift + above


def _exact(successes: float, n: float, tail: float) -> tuple[float, float]:
    """Of whole numbers or effective ones: the beta distribution's quantiles do not mind."""
    low = 0.0 if successes <= 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes >= n else float(special.betaincinv(successes + 1, n - successes, 1.0 - tail))
    return low, high


def _check(successes: int, n: int) -> None:
    if n == 0:
        raise TooFewSamples("not enough samples: a proportion needs at least 1, there are 0", needed=1)
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
