"""An estimate: value, interval, n, level and method, always together.

A number without an interval says why it has none. An interval with one known end is called a bound. A number without
any randomness is exact and has no interval.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

EXACT = "exact"
"""The method for a number equal every time."""

NO_INTERVAL = "none"
"""The method for a number without an interval."""

MOST = "the median of the repetitions, by a sign test"
"""The method for an estimate about most repetitions, instead of a statistic over all values."""

Limits = tuple[float, float]


class TooFewSamples(ValueError):  # noqa: N818 - the field's words: it is an answer, not a malfunction
    """The samples do not support the requested estimate.

    Args: message: why, and the remedy. needed: sufficient units or samples, if known.
    """

    def __init__(self, message: str, *, needed: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.needed = needed


@dataclass(frozen=True)
class Interval:
    """One estimate.

    low and high are both null without an interval; `reason` then says why, and the repetitions needed. One of them
    alone is a bound: the number is at least `low`, or at most `high`. value alone is null for a timed-out exchange: the
    number is over `low`. An exact number (`method` is `exact`) has no randomness: it would come out the same every time
    and has no interval. `units`: repetitions behind it. `spread`: smallest and largest among the repetitions' own
    values, without an interval, or with one without a width.
    """

    # In the schema of results an object has no fields but these.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    reason: str | None = None
    units: int = 0
    spread: Limits | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the value would come out the same every time."""
        return self.method == EXACT

    @property
    def is_sign_test(self) -> bool:
        """Whether it is the repetitions' median, unrelated to the statistic over all values."""
        return self.method == MOST

    @property
    def is_whole(self) -> bool:
        """Whether it has an interval with both ends."""
        return self.low is not None and self.high is not None

    @property
    def limits(self) -> Limits | None:
        """low and high, with the value for an unknown one; None without a value."""
        if self.value is None:
            return None
        return (self.value if self.low is None else self.low), (self.value if self.high is None else self.high)

    def over(self, number: float | None) -> float | None:
        """Its value divided by a number; None without either, or with 0."""
        return self.value / number if self.value is not None and number else None

    def meets(self, low: float | None, high: float | None) -> bool | None:
        """Whether it has a number from low to high; None without both limits on both sides."""
        if self.low is None or self.high is None or low is None or high is None:
            return None
        return self.low <= high and low <= self.high

    def negated(self) -> "Interval":
        """The same difference the other way round."""

        def turned(end: float | None) -> float | None:
            return None if end is None else -end

        spread = None if self.spread is None else (-self.spread[1], -self.spread[0])
        return replace(self, value=turned(self.value), low=turned(self.high), high=turned(self.low), spread=spread)


def refused(reason: str, *, n: int, level: float, units: int = 0) -> Interval:
    """An estimate without a number, and the reason why."""
    return Interval(None, None, None, n, level, NO_INTERVAL, reason, units)


def without_interval(
    value: float, reason: str, *, n: int, level: float, units: int, spread: Limits | None = None
) -> Interval:
    """A number without an interval, and the reason why."""
    return Interval(value, None, None, n, level, NO_INTERVAL, reason, units, spread)


def exactly(value: float, *, n: int, level: float) -> Interval:
    """A number equal every time, and so without an interval."""
    return Interval(value, None, None, n, level, EXACT, units=1)


def estimated(make: Callable[[], Interval], *, n: int, level: float, units: int = 0) -> Interval:
    """An estimate, or why the samples do not support it. Args: as of `refused`."""
    try:
        return make()
    except TooFewSamples as error:
        return refused(error.message, n=n, level=level, units=units)


def check_level(level: float) -> float:
    """The confidence level, if it is one.

    Raises: ValueError outside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"confidence level {level} is not between 0 and 1")
    return level
