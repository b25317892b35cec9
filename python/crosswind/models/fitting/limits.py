"""How sure the coefficients of a fit are: how far they move with each cell, and with each repetition.

A formula is not exact, so that other cells would give other coefficients: the sandwich estimator, with each residual as
large as it would be of a fit without its cell (HC3; MacKinnon & White, J. Econometrics 29, 1985). And
repetitions of all cells share their seeds, so that their times err together: each repetition moves every mean at once,
and a coefficient by the sum of that. What was expected of the coefficients counts as one more cell for each. All are
added in squares.

Source: Davison & Hinkley, Bootstrap Methods and their Application (1997), section 2.7, for linearised statistics; Zou &
Donner, Statistics in Medicine 27 (2008), for the sum of two intervals that are not symmetric.
"""

from dataclasses import dataclass

import numpy as np

from crosswind.models.fitting.forms import Cells, Form
from crosswind.models.fitting.measured import Measured
from crosswind.models.fitting.prior import DEVIATION, off
from crosswind.models.numbers import Array
from crosswind.stats.design import Design, Tail
from crosswind.stats.linearised import Linearised, limits, student

_DESIGN = Design(Tail.SKEWED)  # Every cell that is fitted to has losses.
_STEP = 1e-4  # of a coefficient, for a derivative
_LARGEST_LEVERAGE = 0.9
_LARGEST_LOG = 700.0
_ROUNDING = 1e-12
SHORTEST_S = 1e-9
"""In place of a time below 0, which some coefficients within their bounds would give."""


def logs_of(form: Form, cells: Cells, values: Array) -> Array:
    """Logarithms of the times of a form, shape (n,)."""
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
    form: Form, measured: Measured, weights: Array, values: Array, *, expected: Array | None, level: float
) -> Array:
    """The two-sided limits of the coefficients of a fit, shape (2, k), within their bounds.

    Args: weights: of the cells' residuals in the fit, shape (n,). values: the fitted coefficients, shape (k,).
        expected: what was expected of them, as `expected_of`.
    """
    moved = _Moved.of(form, measured, weights, values, expected)
    of_cells = student(level, len(measured) - values.size) * np.sqrt((moved.by_cell**2).sum(axis=0))
    parts = _parts(moved.by_mean, measured.seconds)
    of_repetitions = [limits(Linearised(0.0, own, own.size), _DESIGN, level) for own in parts.T]
    below, above = np.hypot(np.transpose(of_repetitions), of_cells)
    factors = np.exp(np.minimum([-below, above], _LARGEST_LOG))
    ends = np.where(form.lows > 0, values * factors, [values - below, values + above])
    return np.asarray(np.clip(ends, form.lows, form.highs))


@dataclass(frozen=True)
class _Moved:
    """How far coefficients move, each on its own scale: the logarithm of one that is never 0.

    Attributes: by_mean: as the logarithm of a cell's mean does, shape (n, k). by_cell: with each cell, and with what
        was expected of each coefficient, shape (n + k, k).
    """

    by_mean: Array
    by_cell: Array

    @classmethod
    def of(cls, form: Form, measured: Measured, weights: Array, values: Array, expected: Array | None) -> "_Moved":
        changes, steps = changes_of_logs(form, measured.cells, values)
        # On its own scale, each step of a coefficient counts as 1.
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
    """What each repetition contributes to each coefficient, shape (repetitions, k), their mean is 0.

    Args: by_mean: what a coefficient changes by as the logarithm of a cell's mean does, shape (n, k).
    """
    most = max(times.size for times in seconds)
    parts = np.zeros((most, by_mean.shape[1]))
    for own, times in zip(by_mean, seconds, strict=True):
        off = times / times.mean() - 1
        off[np.abs(off) < _ROUNDING] = 0.0
        parts[: times.size] += np.outer(off, own) * (most / times.size)
    return parts
