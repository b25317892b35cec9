"""An estimate: value, interval, n, level and method, which never travel apart.

A number without an interval says why it has none. Where only one end of an interval is known, that end is a bound and
is called one. Where nothing was left to chance, the number is exact and has no interval.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Interval = tuple[float, float]

EXACT = "exact"
"""The method of a number that comes out the same every time."""

NO_INTERVAL = "none"
"""The method of a number that has no interval."""


class TooFewSamples(ValueError):  # noqa: N818 - the field's words: it is an answer, not a malfunction
    """The samples do not support the estimate asked for.

    Args: message: why, and what would be enough. needed: how many units or samples that is, where it is known.
    """

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.needed = needed


@dataclass(frozen=True)
class Estimate:
    """One estimated quantity.

    Attributes:
        value: in `unit`; None when it cannot be known.
        low, high: limits, low <= value <= high. Both None: there is no interval, and `reason` says why. One None: the
            other one is a bound, which the quantity lies beyond with confidence `level`.
        n: values it rests on. units: repetitions they are from. level: confidence level of the interval or the bound.
        method: how the interval was made. unit: "ns", "bit/s", "1", ...
        reason: why the interval is not whole, and how many repetitions it would take; None where it is whole.
        spread: smallest and largest of the repetitions' own values, where there is no interval, or one without a width.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    unit: str
    reason: str | None = None
    units: int = 0
    spread: Interval | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it comes out the same every time."""
        return self.method == EXACT


def refused(reason: str, *, n: int, level: float, unit: str, units: int = 0) -> Estimate:
    """An estimate without a number, and the reason why."""
    return Estimate(None, None, None, n, level, NO_INTERVAL, unit, reason, units)


def without_interval(
    value: float, reason: str, *, n: int, level: float, unit: str, units: int, spread: Interval | None = None
) -> Estimate:
    """A number without an interval, and the reason why."""
    return Estimate(value, None, None, n, level, NO_INTERVAL, unit, reason, units, spread)


def exactly(value: float, *, n: int, level: float, unit: str) -> Estimate:
    """A number that comes out the same every time, so that it has no interval."""
    return Estimate(value, None, None, n, level, EXACT, unit, units=1)


def check_level(level: float) -> float:
    """The confidence level, if it is one.

    Raises: ValueError outside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence level {level} is not between 0 and 1")
    return level
