"""Rank effects between the repetitions' means: Hodges and Lehmann's shift and Cliff's delta.

They locate most repetitions and hardly follow a few slow ones, unlike a difference of means.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import special

from crosswind.stats.arrays import Array
from crosswind.stats.design import DELTA_UNITS
from crosswind.stats.estimate import Interval, TooFewSamples, check_level

SIGNED_RANK = "Hodges-Lehmann, paired by repetition (Wilcoxon signed ranks)"
RANK_SUM = "Hodges-Lehmann over repetitions (Mann-Whitney ranks)"
DELTA = "Cliff's delta over repetitions (Newcombe 2006)"

_EXACT_UNITS = 60  # up to so many pairs the signed ranks are counted; beyond, they are taken as normal
_EXACT_PAIRS = 400  # up to 20 x 20 units the rank sums are counted
_SORTED = 40_000  # up to so many differences are sorted; ranks of more are found by bisection


def paired_shift(differences: Array, *, n: int, level: float = 0.95) -> Interval:
    """Median of the averages of every two differences of pairs, with the interval that inverts the signed-rank test.

    Args:   differences: shape (pairs,). n: values behind them.
    Raises: TooFewSamples with too few pairs to exclude anything at `level` (below 6 at 95 %).
    Source: Hollander & Wolfe, Nonparametric Statistical Methods, sections 3.2-3.3.
    """
    ordered = np.sort(np.asarray(differences, dtype=np.float64))
    size = ordered.size
    cut = _signed_rank_cut(size, (1.0 - check_level(level)) / 2.0)
    if cut < 1:
        needed = math.ceil(1 - math.log2(1 - level))
        raise TooFewSamples(f"a shift needs {needed} pairs of repetitions, there are {size}", needed=needed)
    count = size * (size + 1) // 2
    below, above, low, high = _walsh(ordered, ((count + 1) // 2, count // 2 + 1, cut, count + 1 - cut))
    return Interval((below + above) / 2, low, high, n, level, SIGNED_RANK, None, size)


def unpaired_shift(reference: Array, other: Array, *, n: int, level: float = 0.95) -> Interval:
    """Median of all differences other - reference, with the interval that inverts the Mann-Whitney test.

    Args:   reference, other: one number for each repetition. n: values behind them.
    Raises: TooFewSamples with too few repetitions to exclude anything at `level` (below 4 and 4 at 95 %).
    Source: Hollander & Wolfe, Nonparametric Statistical Methods, sections 4.2-4.3.
    """
    a, b = (np.sort(np.asarray(given, dtype=np.float64)) for given in (reference, other))
    pairs = a.size * b.size
    cut = _rank_sum_cut(a.size, b.size, (1.0 - check_level(level)) / 2.0)
    if cut < 1:
        raise TooFewSamples(
            f"a shift needs about 4 repetitions of each cell, there are {a.size} and {b.size}", needed=4
        )
    below, above, low, high = _differences(a, b, ((pairs + 1) // 2, pairs // 2 + 1, cut, pairs + 1 - cut))
    return Interval((below + above) / 2, low, high, n, level, RANK_SUM, None, min(a.size, b.size))


def cliffs_delta(reference: Array, other: Array, *, n: int, level: float = 0.95) -> Interval:
    """P(other > reference) - P(other < reference) of a repetition of each, in [-1, 1]: 0 when neither tends to be
    larger.

    Repetitions are assumed independent: for paired ones the interval covers more than `level`.

    Args:   reference, other: one number for each repetition. n: values behind them.
    Raises: TooFewSamples below five repetitions in either.
    Source: Cliff, Psychological Bulletin 114 (1993); interval by Newcombe, Statistics in Medicine 25 (2006), method 5:
        it does not shrink to nothing for sets without an overlap.
    """
    a, b = (np.sort(np.asarray(given, dtype=np.float64)) for given in (reference, other))
    if min(a.size, b.size) < DELTA_UNITS:
        raise TooFewSamples(
            f"Cliff's delta needs {DELTA_UNITS} repetitions of each cell, there are {a.size} and {b.size}",
            needed=DELTA_UNITS,
        )
    wins = int((np.searchsorted(a, b, "left") + np.searchsorted(a, b, "right")).sum())
    theta = wins / (2 * a.size * b.size)
    z = float(special.ndtri((1 + check_level(level)) / 2))
    low, high = (2 * _theta_limit(theta, a.size, b.size, z, end) - 1 for end in (0.0, 1.0))
    value = 2 * theta - 1
    return Interval(value, min(low, value), max(high, value), n, level, DELTA, None, min(a.size, b.size))


def _theta_limit(theta: float, n: int, m: int, z: float, end: float) -> float:
    """Between `theta` and an end, the furthest probability at most z standard errors of its own away."""
    size = (n + m) / 2

    def is_within(place: float) -> bool:
        spread = 2 * size - 1 - (3 * size - 3) / ((2 - place) * (1 + place))
        return (place - theta) ** 2 <= z * z * place * (1 - place) * spread / (n * m)

    inside, outside = theta, end
    if inside == outside or is_within(outside):
        return outside
    # At 0 and 1 the standard error is 0; just beside theta = 0 or 1 it is not.
    inside += (outside - inside) * 1e-9
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
    return inside


@functools.cache
def _signed_rank_cut(size: int, tail: float) -> int:
    """Largest k with P(W < k) <= tail: the k-th smallest and k-th largest average enclose the shift."""
    if size <= _EXACT_UNITS:
        counts = np.zeros(size * (size + 1) // 2 + 1)
        counts[0] = 1.0
        for rank in range(1, size + 1):
            counts[rank:] = counts[rank:] + counts[: counts.size - rank]
        return int(np.searchsorted(np.cumsum(counts) / 2.0**size, tail, side="right"))
    middle, spread = size * (size + 1) / 4, math.sqrt(size * (size + 1) * (2 * size + 1) / 24)
    return int(middle + float(special.ndtri(tail)) * spread)


@functools.cache
def _rank_sum_cut(n: int, m: int, tail: float) -> int:
    """Largest k with P(U < k) <= tail: the k-th smallest and k-th largest difference enclose the shift."""
    if n * m == 0:
        return 0
    if n * m <= _EXACT_PAIRS:
        below = np.cumsum(_rank_counts(n, m)) / math.comb(n + m, n)
        return int(np.searchsorted(below, tail, side="right"))
    return int(n * m / 2 + float(special.ndtri(tail)) * math.sqrt(n * m * (n + m + 1) / 12))


def _rank_counts(n: int, m: int) -> Array:
    """Orders of n + m values with Mann-Whitney statistic u, shape (n*m + 1,): Gaussian binomial coefficients."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, n + 1):
        for u in range(m + i, n * m + 1)[::-1]:
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return counts


def _walsh(ordered: Array, ranks: tuple[int, ...]) -> list[float]:
    """The averages of every two values, each with itself too, at these ranks (1-based)."""
    size = ordered.size
    if size * size <= _SORTED:
        first, second = np.triu_indices(size)
        averages = np.sort((ordered[first] + ordered[second]) / 2)
        return [float(averages[rank - 1]) for rank in ranks]

    def at_most(place: float) -> int:
        with_others = int(np.searchsorted(ordered, 2 * place - ordered, side="right").sum())
        return (with_others + int(np.searchsorted(ordered, place, side="right"))) // 2

    return [_bisected(at_most, float(ordered[0]), float(ordered[-1]), rank) for rank in ranks]


def _differences(a: Array, b: Array, ranks: tuple[int, ...]) -> list[float]:
    """The differences b[j] - a[i] at these ranks (1-based)."""
    if a.size * b.size <= _SORTED:
        differences = np.sort((b[:, None] - a[None, :]).ravel())
        return [float(differences[rank - 1]) for rank in ranks]

    def at_most(place: float) -> int:
        return int(np.searchsorted(b, a + place, side="right").sum())

    ends = float(b[0] - a[-1]), float(b[-1] - a[0])
    return [_nearest(a, b, _bisected(at_most, *ends, rank)) for rank in ranks]


def _nearest(a: Array, b: Array, place: float) -> float:
    """The difference b[j] - a[i] nearest to a place; a rounding bisection may end beside it."""
    after = np.searchsorted(b, a + place, side="left")
    near = np.concatenate([b[np.clip(after - step, 0, b.size - 1)] - a for step in (0, 1)])
    return float(near[np.argmin(np.abs(near - place))])


def _bisected(at_most: Callable[[float], int], low: float, high: float, rank: int) -> float:
    """The smallest number not exceeded by at least `rank` of some numbers, to the last digits."""
    if at_most(low) >= rank:
        return low
    while True:
        middle = low + (high - low) / 2
        if middle in (low, high):
            return high
        low, high = (low, middle) if at_most(middle) >= rank else (middle, high)
