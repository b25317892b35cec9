"""One fit: bounded, on the logarithm of mean times, each weighted by the usual error of similar means.

Repetitions of all cells share their seeds, so with few transfers whole groups of cells may have been lucky: large
residuals count less than by their squares.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from crosswind.models.fitting.forms import Cells, Form
from crosswind.models.fitting.measured import MeasuredCells
from crosswind.models.numbers import Array
from crosswind.stats.design import Design, Tail
from crosswind.stats.linearised import Linearised, limits, student

SCATTER = 0.05
"""How far cells are taken to lie from any formula, relatively: without it, the best known cells alone would decide."""
_LEVEL = 0.95
_NEAR = 1e-6  # share of a coefficient's range: nearer to an end counts as ended there
_NO_CHANGE, _NO_PART = 1e-6, 1e-2  # rounding errors in a zero derivative, and in a coefficient's part in it
METHOD = (
    "Bounded fits to the logarithm of the cells' mean times, by squares of small residuals and the size of large ones "
    "(soft L1), in units of √(s² + 0.05²), s the relative standard error that means have at such a size, loss, rate "
    "and round trip. Of `transfer` measured cells also draw towards the coefficients of simulated transfers, from "
    "which a factor of 1.6 off (of `tail` 0.5) counts as one such unit. Intervals: how far coefficients move with each "
    "cell (sandwich estimator, Student's t) and with each repetition, which all cells share (the wider of Student's t "
    "and the studentised bootstrap), added in squares; of coefficients that are never 0 on a logarithmic scale."
)

_DESIGN = Design(Tail.SKEWED)  # Every fitted cell has losses.
_STEP = 1e-4  # a coefficient's, for a derivative
_LARGEST_LEVERAGE = 0.9
_LARGEST_LOG = 700.0
_ROUNDING = 1e-12

SHORTEST_S = 1e-9
"""In place of a negative time, possible with some coefficients within their bounds."""

DEVIATION = 0.5
"""Of a nonzero coefficient's logarithm (a factor of 1.6), else of the coefficient itself."""


@dataclass(frozen=True)
class Fitted:
    """A form with its coefficients, shape (k,), and their limits, shape (2, k), if requested.

    at_bound: coefficients at a bound of their search. untold: coefficients undetermined by the cells, since others can
    make up for any change in them: the exponent of a rate common to all cells.
    """

    form: Form
    values: Array
    limits: Array | None
    at_bound: tuple[str, ...]
    untold: tuple[str, ...] = ()

    def times(self, cells: Cells) -> Array:
        """Predicted mean times, s, shape (n,)."""
        return self.form.times(cells, self.values)


def fit(form: Form, measured: MeasuredCells, *, intervals: bool = True, alone: bool = False) -> Fitted:
    """Fits a form.

    Args:   measured: more cells than the form has coefficients. alone: to the cells alone, whatever is expected.
    Raises: ValueError when there are too few cells.
    """
    if len(measured) <= len(form.coefficients):
        raise ValueError(f"{form.name} has {len(form.coefficients)} coefficients and {len(measured)} cells")
    weights = 1 / np.hypot(measured.usual_errors, SCATTER)
    expected = None if alone else expected_of(form, measured.cells)
    values = _solve(form, measured, weights, expected)
    reach = _NEAR * (form.highs - form.lows)
    at_low, at_high = values - form.lows < reach, form.highs - values < reach
    values = np.where(at_low, form.lows, np.where(at_high, form.highs, values))
    limits = None
    if intervals:
        limits = coefficient_limits(form, measured, weights, values, expected=expected, level=_LEVEL)
    at_bound = [one.name for one, is_there in zip(form.coefficients, at_low | at_high, strict=True) if is_there]
    return Fitted(form, values, limits, tuple(at_bound), _untold(form, measured.cells, values))


def _untold(form: Form, cells: Cells, values: Array) -> tuple[str, ...]:
    """Coefficients able to change without changing any cell's predicted time, alone or with others.

    They are the null directions of the log times' derivative.
    """
    changes, _ = changes_of_logs(form, cells, values)
    _, sizes, directions = np.linalg.svd(changes, full_matrices=False)
    free = np.abs(directions[sizes <= _NO_CHANGE * sizes.max()]).max(axis=0, initial=0.0)
    return tuple(c.name for c, part in zip(form.coefficients, free, strict=True) if part > _NO_PART)


def _solve(form: Form, measured: MeasuredCells, weights: Array, expected: Array | None) -> Array:
    logs = np.log(measured.means)

    def residuals(values: Array) -> Array:
        of_cells = (logs_of(form, measured.cells, values) - logs) * weights
        return np.concatenate([of_cells, off(form, values, expected)])

    solution = least_squares(
        residuals,
        np.clip(form.starts, form.lows + 1e-9, form.highs - 1e-9),
        bounds=(form.lows, form.highs),
        loss="soft_l1",
        x_scale=np.maximum(np.abs(form.starts), 0.1),
    )
    return np.asarray(solution.x)


def logs_of(form: Form, cells: Cells, values: Array) -> Array:
    """Logarithms of a form's times, shape (n,)."""
    return np.asarray(np.log(np.maximum(form.times(cells, values), SHORTEST_S)))


def changes_of_logs(form: Form, cells: Cells, values: Array) -> tuple[Array, Array]:
    """By how much the logarithms of the times change, shape (n, k), as each coefficient alone changes by a small step
    within its bounds, shape (k,).
    """
    step = _STEP * np.maximum(np.abs(values), np.abs(form.starts))
    up, down = np.minimum(values + step, form.highs), np.maximum(values - step, form.lows)

    def logs(ends: Array, index: int) -> Array:
        changed = values.copy()
        changed[index] = ends[index]
        return logs_of(form, cells, changed)

    columns = [logs(up, index) - logs(down, index) for index in range(values.size)]
    return np.column_stack(columns), up - down


def coefficient_limits(
    form: Form, measured: MeasuredCells, weights: Array, values: Array, *, expected: Array | None, level: float
) -> Array:
    """Two-sided limits of a fit's coefficients, shape (2, k), within their bounds.

    Args: weights: the cells' residual weights in the fit, shape (n,). values: the fitted coefficients, shape (k,).
        expected: as from `expected_of`.
    """
    moved = _Moved.of(form, measured, weights, values, expected)
    of_cells = student(level, len(measured) - values.size) * np.sqrt((moved.by_cell**2).sum(axis=0))
    parts = _parts(moved.by_mean, measured.seconds)
    of_repetitions = [limits(Linearised(0.0, column, column.size), _DESIGN, level) for column in parts.T]
    below, above = np.hypot(np.transpose(of_repetitions), of_cells)
    factors = np.exp(np.minimum([-below, above], _LARGEST_LOG))
    ends = np.where(form.lows > 0, values * factors, [values - below, values + above])
    return np.asarray(np.clip(ends, form.lows, form.highs))


@dataclass(frozen=True)
class _Moved:
    """Derivatives of coefficients, each on its own scale: the logarithm of a nonzero one.

    Attributes: by_mean: by the logarithm of a cell's mean, shape (n, k). by_cell: by each cell, and by each
        coefficient's expectation, shape (n + k, k).
    """

    by_mean: Array
    by_cell: Array

    @classmethod
    def of(cls, form: Form, measured: MeasuredCells, weights: Array, values: Array, expected: Array | None) -> "_Moved":
        changes, steps = changes_of_logs(form, measured.cells, values)
        # On its own scale, each coefficient step counts as 1.
        scale = steps / np.where(form.lows > 0, values, 1.0)
        rows = changes * weights[:, None]
        residuals = (logs_of(form, measured.cells, values) - np.log(measured.means)) * weights
        first, second = _soft_l1(residuals)
        distances = off(form, values, expected)
        pull = scale / DEVIATION * np.sqrt(_soft_l1(distances)[1]) if distances.size else np.zeros(values.size)
        inverse = np.linalg.pinv(rows.T @ (rows * second[:, None]) + np.diag(pull**2))
        leverage = np.einsum("ij,jk,ik->i", rows, inverse, rows) * second
        unbent = first * residuals / (1 - np.minimum(leverage, _LARGEST_LEVERAGE))
        by_cell = np.concatenate([(rows * unbent[:, None]) @ inverse, pull[:, None] * inverse])
        return cls((rows * (second * weights)[:, None]) @ inverse * scale, by_cell * scale)


def _soft_l1(residuals: Array) -> tuple[Array, Array]:
    """The first derivative of a residual's loss, divided by the residual, and the second."""
    return (1 + residuals**2) ** -0.5, (1 + residuals**2) ** -1.5


def _parts(by_mean: Array, seconds: tuple[Array, ...]) -> Array:
    """Each repetition's contribution to each coefficient, shape (repetitions, k), with mean 0.

    Args: by_mean: a coefficient's derivative by the logarithm of a cell's mean, shape (n, k).
    """
    most = max(times.size for times in seconds)
    parts = np.zeros((most, by_mean.shape[1]))
    for own, times in zip(by_mean, seconds, strict=True):
        off = times / times.mean() - 1
        off[np.abs(off) < _ROUNDING] = 0.0
        parts[: times.size] += np.outer(off, own) * (most / times.size)
    return parts


def expected_of(form: Form, cells: Cells) -> Array | None:
    """The coefficients' expectations, averaged over cells, shape (k,); None without any."""
    if form.expected is None:
        return None
    return np.asarray(on_scale_of(form, form.expected(cells)).mean(axis=0))


def on_scale_of(form: Form, values: Array) -> Array:
    """Coefficients, shape (..., k), on an evenly spread scale: logarithms of nonzero ones."""
    positive = form.lows > 0
    return np.asarray(np.where(positive, np.log(np.where(positive, values, 1.0)), values))


def off(form: Form, values: Array, expected: Array | None) -> Array:
    """Deviations of coefficients from their expectations, in DEVIATION, shape (k,); shape (0,) without any."""
    return np.empty(0) if expected is None else (on_scale_of(form, values) - expected) / DEVIATION
