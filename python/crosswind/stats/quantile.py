"""A quantile's intervals, whatever the distribution.

With one exchange in every repetition, the number of values below the q-quantile is Binomial(n, q), so order statistics
enclose it; between neighbouring ones the limits are interpolated, to cover `level` and not more.

Otherwise the share of values below the quantile is a ratio over repetitions. Its standard error between repetitions
gives an interval of shares, and the quantiles at its ends are the limits (Woodruff, JASA 47, 1952).

A timed-out exchange counts as longer than its timeout, by an unknown amount.
"""

import functools
import math

import numpy as np
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.design import (
    MIN_UNITS,
    Design,
    Shortage,
    quantile_name,
    quantile_shortage,
    repetition_quantile_shortage,
)
from crosswind.stats.differences import statistic_of
from crosswind.stats.estimate import Interval, check_level, refused, without_interval
from crosswind.stats.linearised import NO_SPREAD, UNBOUNDED, limits, method_of, student
from crosswind.stats.repetitions import Repetitions

ORDER_STATISTICS = "order statistics, interpolated (Nyblom 1992)"
WOODRUFF = "Woodruff's, by Student's t over repetitions"
LIMIT_STEPS = 3
"""Iterations in `_own_error_share`. A fourth one changes few limits."""
LOWER_LIMIT = "one-sided, binomial with the effective number of values"


def quantile_size(q: float, *, level: float = 0.95) -> int:
    """Fewest independent values for a two-sided interval of the q-quantile.

    Args:    q: in (0, 1). level: confidence level.
    Returns: smallest n with q^n and (1-q)^n at most (1-level)/2: 6 for the median, 368 for p99 at 95 %.
    Raises:  ValueError when q or level is outside (0, 1).
    """
    _check_q(q)
    tail = (1.0 - check_level(level)) / 2.0
    return math.ceil(math.log(tail) / math.log(max(q, 1.0 - q)))


def quantile_interval(units: Repetitions, q: float, *, level: float = 0.95, least: int = 0) -> Interval:
    """The q-quantile of all exchanges, with an interval over repetitions.

    Args:    q: in (0, 1). least: minimum repetitions of the interval of an upper quantile.
    Returns: Interval whose value is the linearly interpolated sample quantile (Hyndman & Fan type 7). `value` is None
             and `low` the timeout where the quantile is an exchange that timed out.
    Raises:  ValueError when q or level is outside (0, 1).
    """
    _check_q(q)
    check_level(level)
    if not units.n:
        return refused("there is no exchange", n=0, level=level)
    value = quantile_of(units, q)
    if units.is_single:
        needed = quantile_size(q, level=level)
        if units.n >= needed:
            low, high = (_at_rank(units, rank) for rank in interpolated_ranks(units.n, q, level=level))
            return _estimate(units, q, (value, low, high), ORDER_STATISTICS, level=level)
        more = needed - units.n
        short: Shortage | None = Shortage(
            f"an interval of {quantile_name(q)} needs {needed} repetitions, there are {units.n}: {more} more", needed
        )
    else:
        short = quantile_shortage(q, units.count, units.n, least if q > 0.5 else 0)
    if value is None:
        return _beyond(units, level)
    if short is None:
        low, high = (_at_share(units, share) for share in woodruff_shares(units, value, q, level))
        return _estimate(units, q, (value, low, high), WOODRUFF, level=level)
    if q > 0.5 and units.count >= MIN_UNITS:
        low = _at_share(units, _lower_share(units, _share_error(units, value), q, 1 - level))
        if low is not None:
            return Interval(value, low, None, units.n, level, LOWER_LIMIT, short.message, units.count)
    return without_interval(value, short.message, n=units.n, level=level, units=units.count, spread=_spread(units, q))


def quantile_of(units: Repetitions, q: float) -> float | None:
    """The sample quantile over all exchanges; None for a timed-out one. Raises: ValueError."""
    _check_q(q)
    return _at_rank(units, (units.n - 1) * q + 1)


@functools.cache
def interpolated_ranks(n: int, q: float, *, level: float = 0.95) -> tuple[float, float]:
    """Ranks from 1 to n, with fractions, enclosing independent values' q-quantile.

    Source: Nyblom, J. Stat. Plan. Inference 32 (1992); for the median it is Hettmansperger & Sheather's interval
            (1986).
    """
    tail = (1.0 - level) / 2.0
    return n + 1 - _upper_rank(n, 1 - q, 1 - tail), _upper_rank(n, q, 1 - tail)


def woodruff_shares(units: Repetitions, value: float, q: float, level: float) -> tuple[float, float]:
    """The limits of exchanges' shares around the q-quantile; one may be below 0 or above 1.

    The share below an upper quantile is skewed: towards the middle, the wider limit of Student's t and the exact
    binomial is taken. The error is the largest among those at the quantile and at each limit: beside a jump in the
    distribution, exchanges beyond it are clustered and those at the quantile are not.
    """
    # If every repetition happens to have the same share below it, the error is at least that of independent values.
    error = _share_error(units, value) or math.sqrt(q * (1 - q) / units.n)
    half = student(level, units.count - 1) * error
    low, high, tail = q - half, q + half, (1 - level) / 2
    if q > 0.5:
        low = min(low, _lower_share(units, error, q, tail))
    if q < 0.5:
        high = max(high, 1 - _lower_share(units, error, 1 - q, tail))
    student_t = student(level, units.count - 1)
    return _own_error_share(units, low, q, -student_t), _own_error_share(units, high, q, student_t)


def _share_error(units: Repetitions, value: float) -> float:
    """Standard error, over repetitions, of the exchanges' share up to `value`."""
    sizes = units.sizes + units.censored
    below = units.below(value)
    residual = below - below.sum() / units.n * sizes
    return float(np.sqrt(units.count / (units.count - 1) * (residual @ residual))) / units.n


def _own_error_share(units: Repetitions, share: float, q: float, student_t: float) -> float:
    """A limit of the share, with the standard error at the limit itself, scaled from the share there to q.

    Args: share: the limit with another error. student_t: negative for a lower limit.
    """
    for _ in range(LIMIT_STEPS):
        place = _at_share(units, share)
        if place is None:
            return share
        # A lower limit at an upper jump lies below the jump.
        place = place if student_t > 0 else float(np.nextafter(place, -np.inf))
        below = float(units.below(place).sum()) / units.n
        if not 0 < below < 1:
            return share
        error = _share_error(units, place) * math.sqrt(q * (1 - q) / (below * (1 - below)))
        wider = q + student_t * error
        if (wider - share) * student_t <= 0:
            return share
        share = wider
    return share


def _lower_share(units: Repetitions, error: float, q: float, tail: float) -> float:
    """A share below q except with probability `tail`: exact binomial, with an effective number of exchanges."""
    worth = min(units.n, q * (1 - q) / error**2) if error > 0 else float(units.n)
    worth *= (float(special.ndtri(1 - tail)) / student(1 - 2 * tail, units.count - 1)) ** 2
    return float(special.betaincinv(q * worth, (1 - q) * worth + 1, tail))


def _upper_rank(n: int, q: float, confidence: float) -> float:
    """The rank, with a fraction, of the q-quantile's one-sided upper limit."""
    rank = int(np.searchsorted(_binomial(n, q), confidence, side="right"))
    # rank is the largest r with P(X < r) <= confidence, for X ~ Binomial(n, q): order statistic r covers this much.
    if rank >= n:
        return float(n)
    covered, next_covered = float(_binomial(n, q)[rank - 1]), float(_binomial(n, q)[rank])
    if confidence <= covered:
        return float(rank)
    odds = rank * (1 - q) * (next_covered - confidence) / ((n - rank) * q * (confidence - covered))
    return rank + 1 / (1 + odds)


@functools.lru_cache(maxsize=64)
def _binomial(n: int, q: float) -> Array:
    """P(X <= k) for k from 0 to n - 1, with X ~ Binomial(n, q): order statistic k + 1's coverage as an upper limit."""
    return np.asarray(special.bdtr(np.arange(n, dtype=np.float64), n, q))


def _at_rank(units: Repetitions, rank: float) -> float | None:
    """The value at a rank from 1 to n, interpolated; None for a timed-out exchange."""
    ordered, last = units.ordered, _known(units)
    below = max(0, min(math.floor(rank), units.n) - 1)
    above = max(0, min(math.ceil(rank), units.n) - 1)
    if above >= last:
        return None
    return float(ordered[below] + (rank - math.floor(rank)) * (ordered[above] - ordered[below]))


def _at_share(units: Repetitions, share: float) -> float | None:
    """The quantile at a share; the smallest value below all, None above the largest."""
    place = share * units.n
    if place > units.n - 1 + 1e-9:
        return None
    return _at_rank(units, max(1.0, place + 0.5))


def _known(units: Repetitions) -> int:
    """The number of ordered values known to be below every censored exchange."""
    if units.limit is None or not units.censored.any():
        return int(units.ordered.size)
    return int(np.searchsorted(units.ordered, units.limit, side="right"))


def _estimate(
    units: Repetitions,
    q: float,
    limits: tuple[float | None, float | None, float | None],
    method: str,
    *,
    level: float,
) -> Interval:
    """Args: limits: value, low and high; None is a timed-out exchange, or lies beyond all values."""
    value, low, high = limits
    if value is None or low is None:
        return _beyond(units, level)
    reason = None
    if high is None:
        timed_out = bool(units.censored.any())
        reason = (
            "its upper limit is an exchange that timed out" if timed_out else "no value lies beyond its upper limit"
        )
    # An interval of width 0 does not tell whether all repetitions are the same.
    spread = _spread(units, q) if low == high else None
    return Interval(value, low, high, units.n, level, method, reason, units.count, spread)


def _beyond(units: Repetitions, level: float) -> Interval:
    low = units.limit if units.limit is not None else float(units.ordered[-1]) if units.values.size else None
    reason = "it is an exchange that timed out"
    return Interval(None, low, None, units.n, level, "timeouts are censored", reason, units.count)


def _spread(units: Repetitions, q: float) -> tuple[float, float] | None:
    quantiles = units.quantiles(q)
    if quantiles.size < 2 or not np.isfinite(quantiles).all():
        return None
    return float(quantiles.min()), float(quantiles.max())


def _check_q(q: float) -> None:
    if not 0.0 < q < 1.0:
        raise ValueError(f"quantile {q} is not between 0 and 1")


def repetition_quantile_interval(units: Repetitions, q: float, *, design: Design, level: float = 0.95) -> Interval:
    """The mean of the q-quantiles of the repetitions, with an interval over these.

    Returns: an Interval without an interval where the design does not support one, or no repetition differs.
    Raises:  TooFewSamples where a repetition has too few values for a quantile of its own.
    """
    mean = statistic_of(units, q)
    short = repetition_quantile_shortage(design, q, mean.units, of="cell")
    if short is not None or mean.error == 0:
        quantiles = mean.value + mean.parts
        spread = (float(quantiles.min()), float(quantiles.max())) if quantiles.size > 1 else None
        why = NO_SPREAD if short is None else short.message
        return without_interval(mean.value, why, n=mean.n, level=level, units=mean.units, spread=spread)
    low, high = (end if math.isfinite(end) else None for end in limits(mean, design, level))
    unbounded = None if low is not None and high is not None else UNBOUNDED
    return Interval(mean.value, low, high, mean.n, level, method_of(design), unbounded, mean.units)
