"""A cell's progress towards its precision: the common terms of rule, displays and reports.

Plain values. `crosswind.analysis.precision` judges; `crosswind.execution.growth` adds repetitions.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import ClassVar


class Ended(StrEnum):
    """Why a cell's repetitions ended."""

    PRECISION = "precision"
    """Its interval is as narrow as it was to be."""
    CAP = "cap"
    """It was run as often as it may be."""
    EXACT = "exact"
    """It comes out the same every time."""
    NO_VALUE = "no value"
    """Its repetitions have no number with an interval to narrow."""


@dataclass(frozen=True)
class PrecisionReached:
    """A precision in one cell.

    value, low, high: the mean over the repetitions' own statistics, in `unit`, and its 95 % interval, valid under
    repeated looks, and with an allowance for unseen events; null without one (`reason`) or in an exact cell. target: as
    requested; wanted: its half-width. ended: precision, cap, exact or no value; null for an unfinished cell.
    """

    # Result objects have no further fields in the schema.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    cell: int
    metric: str
    statistic: str
    unit: str
    units: int
    value: float | None
    low: float | None
    high: float | None
    target: str
    wanted: float | None
    ended: Ended | None
    reason: str | None

    @property
    def half_width(self) -> float | None:
        """Half the interval's width, in `unit`."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class CellPrecision(PrecisionReached):
    """The same at a running session's last look.

    Attributes:
        least: repetitions below which the cell's design supports no interval, however narrow it comes out.
        likely: total repetitions at which its precision will probably be reached; None if unknown, or beyond the cap.
    """

    least: int = 0
    likely: int | None = None

    @property
    def is_reached(self) -> bool:
        """Whether the interval is as narrow as it was to be."""
        half = self.half_width
        return half is not None and self.wanted is not None and half <= self.wanted and self.units >= self.least

    def at_end(self) -> PrecisionReached:
        """The result's part."""
        return PrecisionReached(**{field.name: getattr(self, field.name) for field in fields(PrecisionReached)})
