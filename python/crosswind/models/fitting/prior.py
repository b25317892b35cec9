"""What is known of coefficients before anything is measured: what simulated transfers give them.

Cells of few levels do not tell all coefficients apart. At one round trip, for example, a loss that costs a round trip
looks like one that ends in a timeout now and then, and only other round trips would show which it was. A fit therefore
starts from an expectation, which a coefficient may leave: DEVIATION off counts as much as one standard error of a cell.
"""

import numpy as np

from crosswind.models.fitting.forms import Cells, Form
from crosswind.models.numbers import Array

DEVIATION = 0.5
"""Of the logarithm of a coefficient that is never 0 (a factor of 1.6), else of the coefficient itself."""


def expected_of(form: Form, cells: Cells) -> Array | None:
    """The mean over cells of what is expected of each coefficient, shape (k,); None where nothing is."""
    if form.expected is None:
        return None
    return np.asarray(on_scale_of(form, form.expected(cells)).mean(axis=0))


def on_scale_of(form: Form, values: Array) -> Array:
    """Coefficients, shape (..., k), on the scale on which they spread evenly: logarithms of those that are never 0."""
    positive = form.lows > 0
    return np.asarray(np.where(positive, np.log(np.where(positive, values, 1.0)), values))


def off(form: Form, values: Array, expected: Array | None) -> Array:
    """How far coefficients are from what is expected of them, in DEVIATION, shape (k,); shape (0,) where nothing is."""
    return np.empty(0) if expected is None else (on_scale_of(form, values) - expected) / DEVIATION
