"""Resampling of a mean, in units that are independent of each other.

Exchanges on one connection share its retransmission timer and suffer from the losses of those before them, so a single
exchange is seldom an independent unit. `resample` chooses the unit and says which:

    clusters   whole (repetition, connection) groups, when there are at least MIN_UNITS of them
    blocks     runs of consecutive exchanges within a connection, when there are fewer
    few        fewer than MIN_INDEPENDENT exchanges, each on a connection of its own: too few to resample, Student's t

More than MAX_UNITS units are added up into MAX_UNITS batches first, so that 10^5 samples take half a second. The mean
of a batch is less skewed than a unit by the square root of the batch's size, and the mean of fewer units is more skewed
by the same factor, so the resampled t keeps its shape.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crosswind.stats.estimate import EXACT, Array, TooFewSamples

RESAMPLES = 4999
MIN_UNITS = 8
MIN_INDEPENDENT = 20
MAX_UNITS = 1000
MIN_BLOCKED = 24  # below it n^(1/3)-long blocks are fewer than MIN_UNITS

_DRAWS_OF_A_CHUNK = 2_000_000  # keeps the memory of a chunk of resamples below some 50 MB


@dataclass(frozen=True)
class Resampled:
    """A mean, its standard error, and both again for every resample.

    Attributes:
        mean, error: of the samples, in their unit. n: samples. units: independent units behind them.
        method: what was resampled. means, errors: shape (resamples,); empty when Student's t has to serve.
        tail_units: effective number of units that carry the variance, (sum d^2)^2 / sum d^4.
    """

    mean: float
    error: float
    n: int
    units: int
    method: str
    tail_units: float
    means: Array = field(repr=False)
    errors: Array = field(repr=False)

    @property
    def is_exact(self) -> bool:
        """Whether it comes out the same every time (`constant`)."""
        return self.method == EXACT

    @property
    def is_bootstrap(self) -> bool:
        """Whether there are resamples, so that no distribution need be assumed."""
        return self.means.size > 0


def resample(
    samples: npt.ArrayLike, clusters: npt.ArrayLike | None = None, *, seed: int = 1, resamples: int = RESAMPLES
) -> Resampled:
    """Resamples of a mean, by the largest unit that there is enough of.

    Args:
        samples: shape (n,), in time order within a cluster.
        clusters: integers, shape (n,), the connection (in its repetition) of each; None: every sample on its own.
        seed: of the resampling; the same seed gives the same interval.
    Raises:  TooFewSamples below 2 independent samples, or below MIN_BLOCKED on fewer than MIN_UNITS connections.
    Source:  Davison & Hinkley 1997, sections 2.4 (studentised), 3.8 (clusters), 8.2 (blocks).
    """
    values = np.asarray(samples, dtype=np.float64).ravel()
    labels = np.arange(values.size) if clusters is None else np.asarray(clusters).ravel()
    if labels.shape != values.shape:
        raise ValueError("clusters must name one cluster for each sample")
    _, member = np.unique(labels, return_inverse=True)
    count = int(member.max()) + 1 if values.size else 0
    rng = np.random.default_rng(seed)
    if count == values.size and count < MIN_INDEPENDENT:
        return _few(values)
    if count >= MIN_UNITS:
        return _by_cluster(values, member, count, rng, resamples)
    return _by_block(values, member, rng, resamples)


def constant(mean: float, *, n: int) -> Resampled:
    """A mean that comes out the same every time: what is compared with it is compared with a number.

    Args: n: samples that it is of.
    """
    units = max(n, 2)  # degrees of freedom divide by one less
    return Resampled(mean, 0.0, n, units, EXACT, math.inf, np.full(RESAMPLES, mean), np.zeros(RESAMPLES))


def design_effect(samples: npt.ArrayLike, clusters: npt.ArrayLike | None = None) -> float:
    """How many times larger the variance of the mean is than it would be with independent samples; at least 1.

    Taken to be 1 unless it exceeds 1 by more than two of its own standard errors, sqrt(2/units), or where there are
    fewer than MIN_UNITS units to judge by. Blocks show no dependence that is longer than themselves.

    Args: as `resample`.
    """
    values = np.asarray(samples, dtype=np.float64).ravel()
    spread = float(values.var())
    if clusters is None or spread == 0:
        return 1.0
    _, member = np.unique(np.asarray(clusters).ravel(), return_inverse=True)
    count = int(member.max()) + 1
    if count == values.size:
        return 1.0
    if count >= MIN_UNITS:
        units = count
        sums, sizes = _total(member, values - values.mean(), count), _total(member, np.ones(values.size), count)
        error = float(_ratio(sums[None, :], sizes[None, :])[1][0])
    else:
        blocks, length = _blocks(values, member)
        units = values.size // length
        if units < MIN_UNITS:
            return 1.0
        error = float(np.sqrt(np.mean((blocks - values.mean()) ** 2) / (units - 1)))
    effect = error**2 * values.size / spread
    return effect if effect > 1 + 2 * float(np.sqrt(2 / units)) else 1.0


def _few(values: Array) -> Resampled:
    if values.size < 2:
        raise TooFewSamples(f"not enough samples: a mean needs at least 2, there are {values.size}", needed=2)
    error = float(values.std(ddof=1) / np.sqrt(values.size))
    nothing = np.empty(0)
    deviations = values - values.mean()
    return Resampled(
        float(values.mean()), error, values.size, values.size, "Student's t", _spread(deviations), nothing, nothing
    )


def _by_cluster(values: Array, member: npt.NDArray[np.intp], count: int, rng: np.random.Generator, b: int) -> Resampled:
    # Subtracting the mean first keeps the sums of squares below free of cancellation.
    centre = float(values.mean())
    sums = _total(member, values - centre, count)
    sizes = _total(member, np.ones(values.size), count)
    used = count
    if count > MAX_UNITS:
        batch = rng.permutation(count) % MAX_UNITS
        sums, sizes = _total(batch, sums, MAX_UNITS), _total(batch, sizes, MAX_UNITS)
        used = MAX_UNITS
    shifts, errors = _ratio(sums[None, :], sizes[None, :])
    means_b, errors_b = np.empty(b), np.empty(b)
    for rows in _chunks(b, used):
        drawn = rng.integers(0, used, size=(rows.stop - rows.start, used))
        means_b[rows], errors_b[rows] = _ratio(sums[drawn], sizes[drawn])
    unit = "exchanges" if count == values.size else "connections"
    method = f"studentised bootstrap over {unit}"
    deviations = sums - shifts[0] * sizes
    return Resampled(
        centre + float(shifts[0]),
        float(errors[0]),
        values.size,
        count,
        method,
        _spread(deviations),
        centre + means_b,
        errors_b,
    )


def _by_block(values: Array, member: npt.NDArray[np.intp], rng: np.random.Generator, b: int) -> Resampled:
    if values.size < MIN_BLOCKED:
        raise TooFewSamples(
            f"not enough samples: a mean needs {MIN_BLOCKED} exchanges on a kept connection, "
            f"{MIN_UNITS} connections, or 2 exchanges each on its own connection; there are {values.size} exchanges",
            needed=MIN_BLOCKED,
        )
    blocks, length = _blocks(values, member)
    used = min(values.size // length, 5 * MAX_UNITS)
    mean = float(values.mean())
    deviations = blocks - mean
    error = float(np.sqrt(np.mean(deviations**2) / (values.size // length - 1)))
    means_b, errors_b = np.empty(b), np.empty(b)
    for rows in _chunks(b, used):
        drawn = deviations[rng.integers(0, blocks.size, size=(rows.stop - rows.start, used))]
        means_b[rows] = drawn.mean(axis=1)
        errors_b[rows] = drawn.std(axis=1, ddof=1) / np.sqrt(used)
    method = f"studentised moving-block bootstrap (blocks of {length})"
    tail = _spread(deviations) * used / blocks.size
    return Resampled(mean, error, values.size, used, method, tail, mean + means_b, errors_b)


def _total(member: npt.NDArray[np.intp], weights: Array, count: int) -> Array:
    return np.bincount(member, weights=weights, minlength=count).astype(np.float64, copy=False)


def _blocks(values: Array, member: npt.NDArray[np.intp]) -> tuple[Array, int]:
    """Means of all runs of n^(1/3) consecutive values within a connection, and that length."""
    connections = [values[member == number] for number in range(int(member.max()) + 1)]
    length = max(1, min(round(values.size ** (1 / 3)), *(len(connection) for connection in connections)))
    return np.concatenate([_circular_means(connection, length) for connection in connections]), length


def _circular_means(series: Array, length: int) -> Array:
    """Means of every run of `length` consecutive values, the end joined to the beginning, shape (len(series),)."""
    total = np.concatenate([[0.0], np.cumsum(np.concatenate([series, series[: length - 1]]))])
    return np.asarray((total[length:] - total[:-length]) / length)


def _ratio(sums: Array, sizes: Array) -> tuple[Array, Array]:
    """Mean of clusters of unequal size, and its linearised standard error, along the last axis."""
    units = sums.shape[-1]
    total = sizes.sum(axis=-1)
    mean = sums.sum(axis=-1) / total
    residual = sums - mean[..., None] * sizes
    error = np.sqrt(units / (units - 1) * np.sum(residual**2, axis=-1)) / total
    return mean, error


def _spread(deviations: Array) -> float:
    fourth = float(np.sum(deviations**4))
    return float(np.sum(deviations**2)) ** 2 / fourth if fourth > 0 else float(deviations.size)


def _chunks(b: int, width: int) -> list[slice]:
    step = max(1, _DRAWS_OF_A_CHUNK // width)
    return [slice(start, min(start + step, b)) for start in range(0, b, step)]
