"""Ordered times of day, even when the machine's clock is set: one reading, then monotonic time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

JUMP_S = 1.0
"""A smaller difference between the clocks comes from slewing, or from a pause between the two readings."""


def utc_now() -> str:
    """Now, as stored: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class WallClock:
    """Stamps for one session's events.

    Args: wall: seconds since 1970. monotonic: seconds since some moment. Both are read in direct succession.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._base = wall() - monotonic()
        self._seen = self._base

    def stamp(self) -> str:
        """Now, as stored: ISO 8601, UTC, milliseconds. Later calls never give earlier times."""
        return datetime.fromtimestamp(self._base + self._monotonic(), UTC).isoformat(timespec="milliseconds")

    def jump(self) -> float | None:
        """By how many seconds the clock was set, or the machine slept, since the last jump; None when by little."""
        offset = self._wall() - self._monotonic()
        by = offset - self._seen
        if abs(by) < JUMP_S:
            return None
        self._seen = offset
        return by
