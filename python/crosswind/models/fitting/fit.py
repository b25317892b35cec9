"""One fit: bounded, on the logarithm of mean times, each weighted by how well means like it are known.

Repetitions of all cells share their seeds, so that with few transfers whole groups of cells may have been lucky: large
residuals count less than by their squares.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from crosswind.models.fitting.forms import Cells, Form
from crosswind.models.fitting.limits import changes_of_logs, coefficient_limits, logs_of
from crosswind.models.fitting.measured import Measured
from crosswind.models.fitting.prior import expected_of, off
from crosswind.models.numbers import Array

SCATTER = 0.05
"""How far cells are taken to lie from any formula, relatively: without it, the best known cells alone would decide."""
_LEVEL = 0.95
_NEAR = 1e-6  # of the range of a coefficient: what is so near to an end of it ended there
_NO_CHANGE, _NO_PART = 1e-6, 1e-2  # what rounding leaves of a derivative that is 0, and of a coefficient's part in it
METHOD = (
    "Bounded fits to the logarithm of the cells' mean times, by squares of small residuals and the size of large ones "
    "(soft L1), in units of √(s² + 0.05²), s the relative standard error that means have at such a size, loss, rate "
    "and round trip. Of `transfer` measured cells also draw towards the coefficients of simulated transfers, from "
    "which a factor of 1.6 off (of `tail` 0.5) counts as one such unit. Intervals: how far coefficients move with each "
    "cell (sandwich estimator, Student's t) and with each repetition, which all cells share (the wider of Student's t "
    "and the studentised bootstrap), added in squares; of coefficients that are never 0 on a logarithmic scale."
)


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


def fit(form: Form, measured: Measured, *, intervals: bool = True, alone: bool = False) -> Fitted:
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
    """The coefficients that can change without a change of any cell's predicted time, alone or together with others.

    They are the directions in which the logarithms of the times have no derivative.
    """
    changes, _ = changes_of_logs(form, cells, values)
    _, sizes, directions = np.linalg.svd(changes, full_matrices=False)
    free = np.abs(directions[sizes <= _NO_CHANGE * sizes.max()]).max(axis=0, initial=0.0)
    return tuple(c.name for c, part in zip(form.coefficients, free, strict=True) if part > _NO_PART)


def _solve(form: Form, measured: Measured, weights: Array, expected: Array | None) -> Array:
    logs = np.log(measured.means)

    def residuals(values: Array) -> Array:
        of_cells = (logs_of(form, measured.cells, values) - logs) * weights
        return np.concatenate([of_cells, off(form, values, expected)])

    found = least_squares(
        residuals,
        np.clip(form.starts, form.lows + 1e-9, form.highs - 1e-9),
        bounds=(form.lows, form.highs),
        loss="soft_l1",
        x_scale=np.maximum(np.abs(form.starts), 0.1),
    )
    return np.asarray(found.x)
