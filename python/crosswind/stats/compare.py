"""Comparison of two sets of samples: how large is the difference, and how sure is that.

Every function compares `other` with `reference`: a positive difference means that `other` is larger. An effect size
comes with its interval; a p-value only ever beside it. An interval that holds "no effect" shows no difference; it does
not show that there is none, for which there is `crosswind.stats.equivalence`.
"""

import functools
import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import stats

from crosswind.stats.bootstrap import Resampled
from crosswind.stats.estimate import EXACT, Array, Estimate, TooFewSamples, check_level, exactly
from crosswind.stats.mean import studentise, studentised_limits

_EXACT_PAIRS = 400  # up to 20 x 20 samples the distribution of ranks is counted; beyond, it is taken as normal
_SORTED_PAIRS = 40_000  # up to so many are sorted; ranks of more are found by bisection
_COUNTED_BEYOND = 10  # resamples beyond the observed t from which on their share is the p-value
_TAIL = 250  # largest resampled t that the tail is fitted to
_EXPONENTIAL = 1e-6  # shapes below are those of an exponential tail
_MIN_P = 1e-9  # beyond, a tail fitted to 250 resamples says nothing


@dataclass(frozen=True)
class Comparison:
    """An effect with its interval, and the two-sided p-value of no effect.

    `p` is None where none was computed, and where the effect is exact, for then nothing is left to test.
    """

    estimate: Estimate
    p: float | None


@dataclass(frozen=True)
class Effect:
    """How far two means lie apart, as a difference or as the logarithm of a ratio, and what else it could have been.

    Attributes:
        value, error: the effect and its standard error. n: samples of both. fewest: of the smaller set.
        tail_units: as of `Resampled`, the smaller. freedom: of Welch and Satterthwaite. method: how limits are made.
        t: resampled (effect - value) / error; empty where Student's t has to serve.

    Of two exact means it is exact; beside one it has the limits of the other alone.
    """

    value: float
    error: float
    n: int
    fewest: int
    tail_units: float
    freedom: float
    method: str
    t: Array = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether it comes out the same every time."""
        return self.method == EXACT

    def limits(self, level: float) -> tuple[float, float]:
        """The interval of this level. Raises: TooFewSamples as `mean_interval`."""
        if self.t.size:
            return studentised_limits(
                self.value, self.error, self.t, level=level, tail_units=self.tail_units, n=self.fewest
            )
        half = float(stats.t.ppf((1 + check_level(level)) / 2, self.freedom)) * self.error
        return self.value - half, self.value + half

    def p_at_most(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or less: small where it is clearly above."""
        return self._beyond(place, above=True)

    def p_at_least(self, place: float) -> float:
        """One-sided p-value of the effect being `place` or more: small where it is clearly below."""
        return self._beyond(place, above=False)

    def _beyond(self, place: float, *, above: bool) -> float:
        over = self.value - place if above else place - self.value
        if self.error == 0:
            return 0.0 if over > 0 else 1.0
        if not self.t.size:
            return float(stats.t.sf(over / self.error, self.freedom))
        return _bootstrap_p(over / self.error, self.t if above else -self.t)


def difference(reference: Resampled, other: Resampled) -> Effect:
    """other - reference."""
    return _effect(
        reference, other, *(_Shift(of.mean, of.error, of.means - of.mean, of.errors) for of in (reference, other))
    )


def log_ratio(reference: Resampled, other: Resampled) -> Effect:
    """ln(other / reference), by the delta method. Raises: TooFewSamples when a mean is not above 0."""
    if reference.mean <= 0 or other.mean <= 0:
        raise TooFewSamples("a ratio needs two means above 0")
    return _effect(reference, other, _log_shift(reference), _log_shift(other))


def as_ratio(effect: Effect, level: float) -> Estimate:
    """The ratio whose logarithm this effect is. Raises: TooFewSamples as `mean_interval`."""
    if effect.is_exact:
        return exactly(math.exp(effect.value), n=effect.n, level=level, unit="1")
    low, high = effect.limits(level)
    value, low, high = (math.exp(min(part, 700.0)) for part in (effect.value, low, high))
    return Estimate(value, low, high, effect.n, level, f"{effect.method}, of the logarithm", "1")


def as_difference(effect: Effect, level: float, unit: str) -> Estimate:
    """The difference that this effect is. Raises: TooFewSamples as `mean_interval`."""
    if effect.is_exact:
        return exactly(effect.value, n=effect.n, level=level, unit=unit)
    low, high = effect.limits(level)
    return Estimate(effect.value, low, high, effect.n, level, effect.method, unit)


def difference_of_means(reference: Resampled, other: Resampled, *, unit: str, level: float = 0.95) -> Comparison:
    """other - reference, in `unit`, by studentised bootstrap, or Welch's t where either has no resamples.

    Raises: TooFewSamples as `mean_interval`.
    """
    effect = difference(reference, other)
    return Comparison(as_difference(effect, level, unit), _two_sided(effect))


def ratio_of_means(reference: Resampled, other: Resampled, *, level: float = 0.95) -> Comparison:
    """other / reference, by the same methods on the logarithm (delta method), so that 2x and 1/2x weigh alike.

    Raises: TooFewSamples as `mean_interval`, or when a mean is not above 0.
    """
    effect = log_ratio(reference, other)
    return Comparison(as_ratio(effect, level), _two_sided(effect))


def hodges_lehmann(
    reference: npt.ArrayLike, other: npt.ArrayLike, *, unit: str, level: float = 0.95, tested: bool = True
) -> Comparison:
    """Median of all pairwise differences other - reference, with the interval that inverts the Mann-Whitney test.

    Takes O((n+m) log) time and no n*m memory. Samples are taken as independent. Under loss it follows the many samples
    without a loss and hardly the few slow ones: read it beside a difference of means.

    Args:   tested: whether to compute the p-value too.
    Raises: TooFewSamples when n and m cannot exclude anything at `level` (below 4 and 4 at 95 %).
    Source: Hollander & Wolfe, Nonparametric Statistical Methods, sections 4.2-4.3.
    """
    a = np.sort(np.asarray(reference, dtype=np.float64).ravel())
    b = np.sort(np.asarray(other, dtype=np.float64).ravel())
    tail = (1.0 - check_level(level)) / 2.0
    pairs = a.size * b.size
    cut = _rank_cut(a.size, b.size, tail)
    if cut < 1:
        raise TooFewSamples(
            f"not enough samples: a shift at {level:.0%} needs about 4 in each set, there are {a.size} and {b.size}",
            needed=4,
        )
    below, above, low, high = _pairs(a, b, ((pairs + 1) // 2, pairs // 2 + 1, cut, pairs + 1 - cut))
    middle = (below + above) / 2
    p = float(stats.mannwhitneyu(b, a, alternative="two-sided").pvalue) if tested else None
    method = "Hodges-Lehmann (Mann-Whitney ranks)"
    return Comparison(Estimate(middle, low, high, a.size + b.size, level, method, unit), p)


def cliffs_delta(reference: npt.ArrayLike, other: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """P(other > reference) - P(other < reference), in [-1, 1]: 0 when neither tends to be larger.

    Samples are taken as independent.
    Raises: TooFewSamples below 2 and 2.
    Source: Cliff, Psychological Bulletin 114 (1993); interval of Feng & Cliff, J. Mod. Appl. Stat. Meth. 3 (2004).
    """
    a = np.sort(np.asarray(reference, dtype=np.float64).ravel())
    b = np.sort(np.asarray(other, dtype=np.float64).ravel())
    n, m = a.size, b.size
    if min(n, m) < 2:
        raise TooFewSamples(f"not enough samples: needs 2 in each set, there are {n} and {m}", needed=2)
    wins = np.searchsorted(a, b, "left") + np.searchsorted(a, b, "right") - n
    over_b = wins / n
    over_a = -(np.searchsorted(b, a, "left") + np.searchsorted(b, a, "right") - m) / m
    delta = int(wins.sum()) / (n * m)
    ties = (np.searchsorted(a, b, "right") - np.searchsorted(a, b, "left")).sum() / (n * m)
    between = ((n * m) * (1.0 - ties) - n * m * delta**2) / (n * m)
    variance = ((m - 1) * float(over_a.var(ddof=1)) + (n - 1) * float(over_b.var(ddof=1)) + max(between, 0.0)) / (n * m)
    z = float(stats.norm.ppf((1 + check_level(level)) / 2))
    spread = z * math.sqrt(variance * ((1 - delta**2) ** 2 + z**2 * variance))
    scale = 1 - delta**2 + z**2 * variance
    low, high = ((delta - delta**3 + sign * spread) / scale if scale > 0 else delta for sign in (-1, 1))
    low, high = max(-1.0, min(low, delta)), min(1.0, max(high, delta))
    return Estimate(delta, float(low), float(high), n + m, level, "Cliff's delta (Feng & Cliff)", "1")


@dataclass(frozen=True)
class _Shift:
    """A mean, or its logarithm, with its error; and of each resample, how far it lies from that and its error."""

    value: float
    error: float
    shifts: Array
    errors: Array


def _log_shift(of: Resampled) -> _Shift:
    positive = np.maximum(of.means, np.finfo(np.float64).tiny)
    value = math.log(of.mean)
    return _Shift(value, of.error / of.mean, np.log(positive) - value, of.errors / positive)


def _effect(reference: Resampled, other: Resampled, a: _Shift, b: _Shift) -> Effect:
    t, method = np.empty(0), "Welch's t"
    if reference.is_bootstrap and other.is_bootstrap and reference.means.size == other.means.size:
        # Rolled by one, because two sets resampled from the same seed would otherwise move together.
        t = studentise(np.roll(b.shifts, 1) - a.shifts, np.hypot(np.roll(b.errors, 1), a.errors))
        method = other.method if reference.method == other.method else f"{reference.method} and {other.method}"
    random = [of for of in (reference, other) if not of.is_exact]
    if len(random) < 2:
        method = random[0].method if random else EXACT
    return Effect(
        value=b.value - a.value,
        error=math.hypot(a.error, b.error),
        n=reference.n + other.n,
        fewest=min((of.n for of in random), default=0),
        tail_units=min(reference.tail_units, other.tail_units),
        freedom=_welch(reference, other),
        method=method,
        t=t,
    )


def _two_sided(effect: Effect) -> float | None:
    if effect.is_exact:
        return None
    return min(1.0, 2 * min(effect.p_at_most(0.0), effect.p_at_least(0.0)))


def _bootstrap_p(observed: float, t: Array) -> float:
    """Share of resampled t at or beyond the observed one, never 0 (Davison & Hinkley, eq. 4.11).

    That share cannot fall below 1/5000, which is too large for Holm's method to show any of a few hundred comparisons.
    So where few lie beyond, the tail of t is continued.
    """
    beyond = int(np.sum(t >= observed))
    counted = min(1.0, (beyond + 1) / (t.size + 1))
    return counted if beyond >= _COUNTED_BEYOND else min(counted, _tail_beyond(t, observed))


def _tail_beyond(t: Array, observed: float) -> float:
    """P(t >= observed) by a generalised Pareto tail through the largest t; 1 where that cannot be fitted.

    Its shape is never taken below 0, which is an exponential tail: a tail that ends would make p-values 0.

    Source: Knijnenburg et al., Bioinformatics 25 (2009); moments of Hosking & Wallis, Technometrics 29 (1987).
    """
    tail = min(_TAIL, t.size // 4)
    ordered = np.partition(t, t.size - tail - 1)[-tail - 1 :]
    threshold = float(ordered.min())
    over = ordered[ordered > threshold] - threshold
    if over.size < 2 or not np.isfinite(over).all() or observed <= threshold:
        return 1.0
    mean, variance = float(over.mean()), float(over.var())
    shape = max(0.0, (1 - mean**2 / variance) / 2) if variance > 0 else 0.0
    scale = mean * (1 - shape)
    far = (observed - threshold) / scale
    share = math.exp(-far) if shape < _EXPONENTIAL else (1 + shape * far) ** (-1 / shape)
    return max(over.size / t.size * share, _MIN_P)


def _welch(a: Resampled, b: Resampled) -> float:
    """Degrees of freedom of Welch and Satterthwaite."""
    parts = a.error**2, b.error**2
    below = parts[0] ** 2 / (a.units - 1) + parts[1] ** 2 / (b.units - 1)
    return sum(parts) ** 2 / below if below > 0 else float(a.units + b.units - 2)


@functools.cache
def _rank_cut(n: int, m: int, tail: float) -> int:
    """Largest k with P(U < k) <= tail: the k-th smallest and k-th largest difference enclose the shift."""
    if n * m == 0:
        return 0
    if n * m <= _EXACT_PAIRS:
        below = np.cumsum(_rank_counts(n, m)) / math.comb(n + m, n)
        return int(np.searchsorted(below, tail, side="right"))
    spread = math.sqrt(n * m * (n + m + 1) / 12)
    return int(n * m / 2 - float(stats.norm.isf(tail)) * spread)


def _rank_counts(n: int, m: int) -> Array:
    """Orders of n + m samples with Mann-Whitney statistic u, shape (n*m + 1,): Gaussian binomial coefficients."""
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, n + 1):
        for u in range(m + i, n * m + 1)[::-1]:
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return counts


def _pairs(a: Array, b: Array, ranks: tuple[int, ...]) -> list[float]:
    """The differences b[j] - a[i] of these ranks (1-based)."""
    if a.size * b.size > _SORTED_PAIRS:
        return [_pair(a, b, rank) for rank in ranks]
    differences = np.sort((b[:, None] - a[None, :]).ravel())
    return [float(differences[rank - 1]) for rank in ranks]


def _pair(a: Array, b: Array, rank: int) -> float:
    """The rank-th smallest (1-based) of all b[j] - a[i], by bisection on its value."""
    low, high = float(b[0] - a[-1]), float(b[-1] - a[0])
    while True:
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        if int(np.searchsorted(b, a + middle, side="right").sum()) >= rank:
            high = middle
        else:
            low = middle
    # a + middle rounds, so the bisection ends beside a difference: take the difference itself.
    after = np.searchsorted(b, a + high, side="left")
    near = np.concatenate([b[np.clip(after - step, 0, b.size - 1)] - a for step in (0, 1)])
    return float(near[np.argmin(np.abs(near - high))])
