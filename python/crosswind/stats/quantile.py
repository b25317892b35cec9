"""Exact intervals for quantiles, from order statistics.

The number of samples below the q-quantile is Binomial(n, q) whatever the distribution, so two order statistics
enclose the quantile with a probability that needs no assumption but independence (docs/decisions/0002-intervals.md).
"""

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy import stats

from crosswind.stats.bootstrap import design_effect
from crosswind.stats.estimate import Estimate, TooFewSamples, check_level

METHOD = "order statistics (exact binomial)"


def quantile_size(q: float, *, level: float = 0.95) -> int:
    """Fewest samples for which a two-sided interval of the q-quantile exists.

    Args:    q: in (0, 1). level: confidence level.
    Returns: smallest n with q^n and (1-q)^n at most (1-level)/2: 6 for the median, 368 for p99 at 95 %.
    Raises:  ValueError when q or level is outside (0, 1).
    """
    _check_q(q)
    tail = (1.0 - check_level(level)) / 2.0
    return math.ceil(math.log(tail) / math.log(max(q, 1.0 - q)))


@functools.cache
def quantile_ranks(n: int, q: float, *, level: float = 0.95) -> tuple[int, int]:
    """Ranks (1-based) of the order statistics that enclose the q-quantile.

    Each side misses with probability at most (1-level)/2.

    Returns: (low, high) with 1 <= low < high <= n; n=1000 gives 469-532 (p50), 936-964 (p95), 983-997 (p99).
    Raises:  TooFewSamples below `quantile_size`.
    Source:  David & Nagaraja, Order Statistics, 2003, section 7.1.
    """
    needed = quantile_size(q, level=level)
    if n < needed:
        raise TooFewSamples(
            f"not enough samples: {_name(q)} at {level:.0%} needs {needed}, there are {n}", needed=needed
        )
    tail = (1.0 - level) / 2.0
    below = stats.binom(n, q)
    return int(below.ppf(tail)), int(below.ppf(1.0 - tail)) + 1


def quantile_interval(
    samples: npt.ArrayLike, q: float, clusters: npt.ArrayLike | None = None, *, unit: str, level: float = 0.95
) -> Estimate:
    """The q-quantile with its exact interval.

    Args:    samples: shape (n,), in `unit`; what was lost is absent, never NaN or 0. q: in (0, 1).
             clusters: shape (n,), the connection of each. Where neighbours on it are alike, the ranks are those of as
             many independent samples as these are worth, n / `design_effect`, and the method says how many.
    Returns: Estimate whose value is the linearly interpolated sample quantile (Hyndman & Fan type 7).
    Raises:  TooFewSamples below `quantile_size`; ValueError when q or level is outside (0, 1).
    Source:  effective sample size: Korn & Graubard, Analysis of Health Surveys, 1999, section 2.5.
    """
    given = np.asarray(samples, dtype=np.float64).ravel()
    quantile_ranks(given.size, q, level=level)
    value = float(np.quantile(given, q))
    effect = design_effect(given <= value, clusters)
    n, worth = given.size, math.floor(given.size / effect + 1e-9)
    if worth < quantile_size(q, level=level):
        needed = math.ceil(quantile_size(q, level=level) * effect)
        raise TooFewSamples(
            f"not enough samples: neighbours are alike, so {_name(q)} needs about {needed}, there are {n}",
            needed=needed,
        )
    low, high = quantile_ranks(worth, q, level=level)
    low, high = (low - 1) * n // worth + 1, -(-high * n // worth)
    method = METHOD if worth == n else f"order statistics (binomial, {worth} effective samples)"
    values = np.sort(given)
    return Estimate(value, float(values[low - 1]), float(values[high - 1]), n, level, method, unit)


def median_interval(samples: npt.ArrayLike, *, unit: str, level: float = 0.95) -> Estimate:
    """The median with its exact interval; needs 6 samples at 95 %. See `quantile_interval`."""
    return quantile_interval(samples, 0.5, unit=unit, level=level)


def _check_q(q: float) -> None:
    if not 0.0 < q < 1.0:
        raise ValueError(f"quantile {q} is not between 0 and 1")


def _name(q: float) -> str:
    return "the median" if q == 0.5 else f"p{100 * q:g}"
