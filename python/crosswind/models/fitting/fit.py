"""One fit: bounded, on the logarithm of mean times, each weighted by how well means like it are known.

Repetitions of all cells share their seeds, so that with few transfers whole groups of cells may have been lucky: large
residuals count less than by their squares.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from crosswind.models.fitting.forms import Cells, Form
from crosswind.models.numbers import Array
from crosswind.stats.linearised import widened_percentiles

SCATTER = 0.05
"""How far cells are taken to lie from any formula, relatively: without it, the best known cells alone would decide."""
RESAMPLES = 199
_LEVEL = 0.95
_COARSE, _FEW_STEPS = 1e-4, 50  # of fits to resampled cells, which scatter by far more than that
_SMALLEST_ERROR = 1e-3
_FEWEST_FOR_USUAL = 20  # cells
_STEP = 1e-4  # of a coefficient, for a derivative
_NO_CHANGE, _NO_PART = 1e-6, 1e-2  # what rounding leaves of a derivative that is 0, and of a coefficient's part in it
_SHORTEST_S = 1e-9  # in place of a time below 0, which some coefficients within their bounds would give
METHOD = (
    "Bounded fits to the logarithm of the cells' mean times, by squares of small residuals and the size of large ones "
    "(soft L1), in units of √(s² + 0.05²), s the relative standard error that means have at such a size, loss, rate "
    f"and round trip. Intervals: percentiles of {RESAMPLES} fits to resampled cells, with the same resampled "
    "repetitions in all of them, as much further away as Student's t of n repetitions is than the normal. Of few "
    "repetitions with losses, whose times are skewed, they are too narrow (docs/statistics.md)."
)


@dataclass(frozen=True)
class Measured:
    """Cells to fit to.

    Attributes: cells: transfers of a size with loss. seconds: of each, the mean transfer time of each repetition.
    """

    cells: Cells
    seconds: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def means(self) -> Array:
        """Mean time of each cell, s, shape (n,)."""
        return np.array([float(np.mean(times)) for times in self.seconds])

    @property
    def errors(self) -> Array:
        """Relative standard error of each mean, shape (n,); of one repetition the median of the others', or 0.1."""
        known = [
            float(np.std(times, ddof=1) / np.sqrt(times.size) / np.mean(times)) if times.size > 1 else np.nan
            for times in self.seconds
        ]
        usual = float(np.nanmedian(known)) if not np.all(np.isnan(known)) else 0.1
        return np.where(np.isnan(known), usual, known)

    @property
    def usual_errors(self) -> Array:
        """The relative standard error that cells like each have, shape (n,): a power law fitted to `errors`.

        A cell that happened to have no slow transfer has a low mean and a small error of its own. Weights by that would
        let such cells decide.
        """
        own, path = np.log(np.maximum(self.errors, _SMALLEST_ERROR)), self.cells.path
        if len(self) < _FEWEST_FOR_USUAL:
            return np.full(len(self), np.exp(np.median(own)))
        known = (path.segments, path.loss, path.serialisation, path.rtt + path.serialisation)
        rows = np.column_stack([np.ones(len(self)), *(np.log(column) for column in known)])
        return np.asarray(np.exp(rows @ np.linalg.lstsq(rows, own)[0]))

    def chosen(self, index: npt.NDArray[np.int64]) -> "Measured":
        """Some of the cells, in any order and as often as wanted."""
        return Measured(self.cells.chosen(index), tuple(self.seconds[i] for i in index))


@dataclass(frozen=True)
class Fitted:
    """A form with its coefficients, shape (k,), and their limits, shape (2, k): None where they were not asked for.

    at_bound: names of coefficients that ended at a bound of their search. untold: of those that the cells say nothing
        of, since others can make up for any change of them: the exponent of a rate that is the same in all cells.
    """

    form: Form
    values: Array
    limits: Array | None
    at_bound: tuple[str, ...]
    untold: tuple[str, ...] = ()

    def times(self, cells: Cells) -> Array:
        """Predicted mean times of cells, s, shape (n,)."""
        return self.form.times(cells, self.values)


def fit(form: Form, measured: Measured, *, seed: int = 1, intervals: bool = True) -> Fitted:
    """Fits a form.

    Args:   measured: more cells than the form has coefficients. seed: of the resampling.
    Raises: ValueError when there are too few cells.
    """
    if len(measured) <= len(form.coefficients):
        raise ValueError(f"{form.name} has {len(form.coefficients)} coefficients and {len(measured)} cells")
    logs = np.log(measured.means)
    weights = 1 / np.hypot(measured.usual_errors, SCATTER)
    start = np.array([coefficient.start for coefficient in form.coefficients])
    values = _solve(form, measured.cells, logs, weights, start)
    untold = _untold(form, measured.cells, values)
    limits = _limits(form, measured, weights, values, seed) if intervals else None
    bounds = zip(form.coefficients, values, strict=True)
    at_bound = [c.name for c, value in bounds if min(value - c.low, c.high - value) < 1e-6 * (c.high - c.low)]
    return Fitted(form, values, limits, tuple(at_bound), untold)


def _untold(form: Form, cells: Cells, values: Array) -> tuple[str, ...]:
    """The coefficients that can change without a change of any cell's predicted time, alone or together with others.

    They are the directions in which the logarithms of the times have no derivative.
    """
    low, high = (np.array([getattr(c, end) for c in form.coefficients]) for end in ("low", "high"))
    steps = np.diag(_STEP * np.maximum(np.abs(values), [abs(c.start) for c in form.coefficients]))

    def logs(at: Array) -> Array:
        return np.log(np.maximum(form.times(cells, np.clip(at, low, high)), _SHORTEST_S))

    changes = np.column_stack([logs(values + step) - logs(values - step) for step in steps])
    _, sizes, directions = np.linalg.svd(changes, full_matrices=False)
    free = np.abs(directions[sizes <= _NO_CHANGE * sizes.max()]).max(axis=0, initial=0.0)
    return tuple(c.name for c, part in zip(form.coefficients, free, strict=True) if part > _NO_PART)


def _solve(form: Form, cells: Cells, logs: Array, weights: Array, start: Array, *, quick: bool = False) -> Array:
    low, high = (np.array([getattr(c, end) for c in form.coefficients]) for end in ("low", "high"))

    def residuals(values: Array) -> Array:
        times = np.maximum(form.times(cells, values), _SHORTEST_S)
        return (np.log(times) - logs) * weights

    found = least_squares(
        residuals,
        np.clip(start, low + 1e-9, high - 1e-9),
        bounds=(low, high),
        loss="soft_l1",
        x_scale=np.maximum(np.abs([c.start for c in form.coefficients]), 0.1),
        ftol=_COARSE if quick else 1e-8,
        xtol=_COARSE if quick else 1e-8,
        max_nfev=_FEW_STEPS if quick else None,
    )
    return np.asarray(found.x)


def _limits(form: Form, measured: Measured, weights: Array, best: Array, seed: int) -> Array:
    """95 % percentiles of the coefficients of resampled fits, shape (2, k), as much further away from the best ones as
    Student's t of so many repetitions is than the normal; within the coefficients' bounds.
    """
    random, n = np.random.default_rng(seed), len(measured)
    repetitions = [times.size for times in measured.seconds]
    fits = np.empty((RESAMPLES, best.size))
    for row in range(RESAMPLES):
        index = random.integers(0, n, n)
        drawn = random.random(max(repetitions))
        means = [_resampled_mean(measured.seconds[i], drawn) for i in index]
        fits[row] = _solve(form, measured.cells.chosen(index), np.log(means), weights[index], best, quick=True)
    fewest = min((size for size in repetitions if size > 1), default=1)
    ends = widened_percentiles(best, fits, fewest, _LEVEL)
    bounds = [(coefficient.low, coefficient.high) for coefficient in form.coefficients]
    return np.asarray(np.clip(ends, *np.transpose(bounds)))


def _resampled_mean(times: Array, drawn: Array) -> float:
    """Mean of repetitions drawn again, n - 1 of n, so that their variance is that of the mean (Rao & Wu 1988).

    Args: drawn: numbers from 0 to 1, which draw the same repetitions in every cell: these have the same seeds, so that
        the times of all cells err together.
    """
    if times.size == 1:
        return float(times[0])
    return float(times[(drawn[: times.size - 1] * times.size).astype(int)].mean())
