"""Arguments and results of formulas: single numbers or numpy arrays, with broadcasting."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Numbers = float | Array
"""A number, or many of them: a formula then gives one result for each."""


def reals(*values: Numbers) -> tuple[Array, ...]:
    """The values as arrays of floats; a single number becomes an array without dimensions."""
    return tuple(np.asarray(value, dtype=np.float64) for value in values)


def single(values: npt.NDArray[Any]) -> Numbers:
    """An array; without dimensions, its number."""
    number: Numbers = values[()]
    return number


def require(condition: object, message: str) -> None:
    """Refuses arguments. Raises: ValueError with the message where the condition is not true of all elements."""
    if not np.all(np.asarray(condition)):
        raise ValueError(message)
