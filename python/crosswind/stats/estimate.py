"""An estimate: value, interval, n, level and method, which never travel apart.

Where the samples do not support a number, the number is absent and `reason` says what would be needed. Where nothing
was left to chance, the number is exact and has no interval.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

EXACT = "exact"
"""The method of a number that comes out the same every time."""


class TooFewSamples(ValueError):  # noqa: N818 - the field's words: it is an answer, not a malfunction
    """The samples do not support the estimate asked for.

    Args: message: why, and what would be enough. needed: how many samples that is, where it is known.
    """

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.needed = needed


@dataclass(frozen=True)
class Estimate:
    """One estimated quantity.

    Attributes:
        value, low, high: in `unit`, low <= value <= high; all None when the estimate was refused. low and high alone
            are None where the value is exact.
        n: samples it rests on. level: confidence level of [low, high]. method: how the interval was made.
        unit: "ns", "bit/s", "1", ... reason: why there is no number; None when there is one.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    unit: str
    reason: str | None = None


def refused(reason: str, *, n: int, level: float, method: str, unit: str) -> Estimate:
    """An estimate without a number, and the reason why."""
    return Estimate(None, None, None, n, level, method, unit, reason)


def exactly(value: float, *, n: int, level: float, unit: str) -> Estimate:
    """A number that comes out the same every time, so that it has no interval."""
    return Estimate(value, None, None, n, level, EXACT, unit)


def check_level(level: float) -> float:
    """The confidence level, if it is one.

    Raises: ValueError outside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence level {level} is not between 0 and 1")
    return level
