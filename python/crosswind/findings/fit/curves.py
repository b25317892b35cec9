"""One exponential curve through some cells of a run, and how sure its coefficients are.

Least squares on means, each weighted by its samples, has the same solution as on the samples themselves.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.designs import design_of
from crosswind.catalog.metrics import METRICS
from crosswind.findings.fit.result import FitCurve
from crosswind.stats.arrays import Array
from crosswind.stats.design import mean_shortage
from crosswind.stats.estimate import Interval, TooFewSamples
from crosswind.stats.exponential import Exponential, aicc, fit_exponential
from crosswind.stats.linearised import widened_percentiles
from crosswind.text.quantities import TIME

RESAMPLES = 999
MIN_REPETITIONS = 3
METHOD = (
    f"Least squares on every sample of a curve. Intervals are percentiles of {RESAMPLES} fits to resampled "
    "repetitions, drawn within each cell, n − 1 of n (Rao & Wu 1988), as much further away as Student's t of n "
    "repetitions is than the normal."
)
_BY_PERCENTILE = "least squares; percentile bootstrap over repetitions, widened by Student's t"
_CLEAR_DIFFERENCE = 2.0  # AICc of models less than 2 apart: both have substantial support (Burnham & Anderson 2002)
_NO_SPREAD = 1e-24  # relative to the squares: rounding errors between equal values


@dataclass(frozen=True)
class FittedCurve:
    """One curve.

    Attributes:
        curve: in the result. best, resampled: the fits to its samples and to resamples; None for a refused fit. n:
            samples. units: the fewest repetitions in a cell; 0 if all are exact.
        shortage: why a cell's design supports no interval for its mean, and so none for a coefficient; else None.
    """

    curve: FitCurve
    best: Exponential | None
    resampled: Exponential | None
    n: int
    units: int = 0
    shortage: str | None = None


def fit_curve(
    name: str | None, cells: Sequence[CellData], metric: str, losses: Mapping[int, float], *, level: float
) -> FittedCurve:
    """A curve through cells, over their loss.

    Args: name: the curve's distinguishing level. losses: each cell's, a fraction. level: the intervals'.
    """
    n = sum(cell.samples[metric].values.size for cell in cells if metric in cell.samples)
    try:
        _check_cells(cells, metric, losses)
        means = [_Repetitions.of(cell, metric) for cell in cells]
        best, resampled = _fits([losses[cell.cell] for cell in cells], means)
    except TooFewSamples as error:
        nothing = refused_coefficient(error.message, n, level)
        curve = FitCurve(level=name, a=nothing, b=nothing, c=nothing, r_squared=None, aicc_straight=None, shape=None)
        return FittedCurve(curve, None, None, n)
    units = min((cell.samples[metric].count for cell in cells if not cell.is_exact), default=0)
    short = _shortage(cells, metric)
    straight = _aicc_straight(best, sum(repetitions.within for repetitions in means), n)
    curve = FitCurve(
        level=name,
        **average_coefficients([best], [resampled], n, level, units=units, shortage=short),
        r_squared=1 - float(best.unexplained[0] / best.total[0]),
        aicc_straight=straight,
        shape=shape_of(straight),
    )
    return FittedCurve(curve, best, resampled, n, units, short)


def average_coefficients(
    best: Sequence[Exponential],
    resampled: Sequence[Exponential],
    n: int,
    level: float,
    *,
    units: int,
    shortage: str | None = None,
) -> dict[str, Interval]:
    """a, b and c averaged over curves, each with its resampled averages' percentiles.

    c is refused if its search ended at an end of its range, a and b also if c may be 0: a straight line gives them no
    value. Few repetitions' percentiles are too close: their distances from the value are widened by the ratio of
    Student's t to the normal.

    Args: units: the fewest repetitions in a cell; 0 if all are exact. shortage: why no coefficient has an interval, if
        so.
    """
    unbounded = np.any([fit.at_end for fit in resampled], axis=0)
    share = float(unbounded.mean())
    if any(bool(fit.at_end[0]) for fit in best) or share > 1 - level:
        nothing = refused_coefficient(
            f"the samples do not bound c: in {share:.0%} of the resamples no curve between a step at the least loss "
            "and a step at the largest fits best",
            n, level,
        )  # fmt: skip
        return {"a": nothing, "b": nothing, "c": nothing}

    def averaged(part: Callable[[Exponential], Array]) -> Interval:
        value = float(np.mean([part(fit)[0] for fit in best]))
        if shortage is not None:
            return Interval(value=value, low=None, high=None, n=n, level=level, method="none", reason=shortage)
        again = np.mean([part(fit) for fit in resampled], axis=0)
        low, high = map(float, widened_percentiles(np.array(value), again, units, level))
        return Interval(value=value, low=low, high=high, n=n, level=level, method=_BY_PERCENTILE)

    c = averaged(lambda fit: fit.c)
    each = [widened_percentiles(fit.c[0], again.c, units, level) for fit, again in zip(best, resampled, strict=True)]
    crossing = sum(bool(low <= 0 <= high) for low, high in each)
    if crossing:
        some = "" if len(resampled) == 1 else f" in {crossing} of {len(resampled)} curves"
        nothing = refused_coefficient(
            f"c may be 0{some}: the curve is then a straight line, for which a and b are not defined", n, level
        )
        return {"a": nothing, "b": nothing, "c": c}
    return {"a": averaged(lambda fit: fit.a), "b": averaged(lambda fit: fit.b), "c": c}


def _shortage(cells: Sequence[CellData], metric: str) -> str | None:
    """Why a cell's design supports no interval for its mean; None if all do."""
    for cell in cells:
        units = cell.samples[metric]
        short = mean_shortage(design_of(METRICS[metric], cell.settings), units.count, units.n)
        if short is not None and not cell.is_exact:
            return f"a coefficient has an interval where the means of its cells have one: {short.message}"
    return None


def refused_coefficient(reason: str, n: int, level: float) -> Interval:
    """A coefficient without a number."""
    return Interval(value=None, low=None, high=None, n=n, level=level, method=_BY_PERCENTILE, reason=reason)


def shape_of(straight: float | None) -> str | None:
    """The shape preferred by AICc: `straight` is the straight line's minus the curve's."""
    if straight is None:
        return None
    if straight >= _CLEAR_DIFFERENCE:
        return "exponential"
    return "straight line" if straight <= -_CLEAR_DIFFERENCE else "undecided"


@dataclass(frozen=True)
class _Repetitions:
    """Sum and number of a cell's samples in each repetition, shape (repetitions,).

    Times are in seconds. within: the samples' squares about the cell's mean. exact: whether another repetition would
    have come out the same.
    """

    sums: Array
    counts: Array
    within: float
    seed: int
    exact: bool

    @classmethod
    def of(cls, cell: CellData, metric: str) -> "_Repetitions":
        samples = cell.samples[metric]
        values = samples.values * (1e-9 if METRICS[metric].unit is TIME else 1.0)
        _, member = np.unique(samples.repetitions, return_inverse=True)
        within = float(np.sum((values - values.mean()) ** 2))
        seed = zlib.crc32(f"fit {cell.cell} {metric}".encode())
        sums = np.bincount(member, weights=values).astype(np.float64, copy=False)
        return cls(sums, np.bincount(member).astype(np.float64), within, seed, cell.is_exact)

    def resampled_means(self) -> Array:
        """Means of resamples, shape (RESAMPLES,): n - 1 of n, for the mean's variance."""
        if self.exact:
            return np.full(RESAMPLES, self.sums.sum() / self.counts.sum())
        n = self.sums.size
        drawn = np.random.default_rng(self.seed).integers(0, n, size=(RESAMPLES, n - 1))
        return np.asarray(self.sums[drawn].sum(axis=1) / self.counts[drawn].sum(axis=1))


def _fits(losses: Sequence[float], cells: Sequence[_Repetitions]) -> tuple[Exponential, Exponential]:
    """The fit to the cells' means, and those to resamples of them. Raises: TooFewSamples."""
    weights = [cell.counts.sum() for cell in cells]
    means = np.array([cell.sums.sum() / cell.counts.sum() for cell in cells])
    best = fit_exponential(losses, means[None, :], weights)
    if best.total[0] <= _NO_SPREAD * float(means @ means):
        raise TooFewSamples("the times are the same at every loss")
    fewest = min((cell.sums.size for cell in cells if not cell.exact), default=MIN_REPETITIONS)
    if fewest < MIN_REPETITIONS:
        raise TooFewSamples(
            f"an interval needs {MIN_REPETITIONS} repetitions of each cell, one has {fewest}",
            needed=MIN_REPETITIONS,
        )
    return best, fit_exponential(losses, np.stack([cell.resampled_means() for cell in cells], axis=1), weights)


def _check_cells(cells: Sequence[CellData], metric: str, losses: Mapping[int, float]) -> None:
    """Raises: TooFewSamples where no curve goes through these cells."""
    empty = sum(metric not in cell.samples for cell in cells)
    if empty:
        raise TooFewSamples(f"{empty} of {len(cells)} cells have no samples")
    if len({losses[cell.cell] for cell in cells}) < len(cells):
        raise TooFewSamples("cells of the same loss differ in something else: name one level of it in `where`")


def _aicc_straight(best: Exponential, within: float, n: int) -> float | None:
    """By how much AICc prefers the curve (3 parameters) to the straight line (2)."""
    least = _NO_SPREAD * float(best.total[0])
    curve = aicc(max(float(best.unexplained[0]) + within, least), n, 3)
    line = aicc(max(float(best.straight[0]) + within, least), n, 2)
    return line - curve if math.isfinite(line) and math.isfinite(curve) else None
