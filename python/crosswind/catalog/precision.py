"""How far the precision of a cell is, as a run goes on: what decides, displays and reports all speak of.

Plain values. Who judges is `crosswind.analysis.precision`; who adds repetitions is `crosswind.execution.growth`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from crosswind.cell.record import CellRun


class Ended(StrEnum):
    """What ended the repetitions of a cell."""

    PRECISION = "precision"
    """Its interval is as narrow as it was to be."""
    CAP = "cap"
    """It was run as often as it may be."""
    EXACT = "exact"
    """It comes out the same every time."""
    NO_VALUE = "no value"
    """Its repetitions have no number whose interval could be narrowed."""


@dataclass(frozen=True)
class PrecisionReached:
    """A precision in one cell.

    value, low, high: the mean over repetitions of the statistic of each, in `unit`, and its interval of 95 %, which
    holds although it was looked at again and again, and allows for what chance may do that no repetition has shown;
    null where there is none (`reason`) or where the cell is exact.
    target: as asked for; wanted: the half-width that it means. ended: precision, cap, exact or no value; null where the
    cell was to go on.
    """

    # In the schema of results an object has no fields but these.
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
        """Half the width of the interval, in `unit`."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True)
class CellPrecision(PrecisionReached):
    """The same at the last look of a run that goes on.

    Attributes:
        least: repetitions below which the design of the cell supports no interval, however narrow it comes out.
        likely: repetitions in all at which its precision will probably be reached; None where that is not known, or
            beyond the cap.
    """

    least: int = 0
    likely: int | None = None

    @property
    def is_reached(self) -> bool:
        """Whether the interval is as narrow as it was to be."""
        half = self.half_width
        return half is not None and self.wanted is not None and half <= self.wanted and self.units >= self.least

    def at_end(self) -> PrecisionReached:
        """What a result has of it."""
        return PrecisionReached(**{field.name: getattr(self, field.name) for field in fields(PrecisionReached)})


class StoppingRule(Protocol):
    """Decides how often cells are run."""

    def add(self, run: "CellRun") -> None:
        """A repetition has ended."""

    def next_counts(self) -> dict[int, int]:
        """Of each cell that goes on, how many repetitions it is to have in all before it is looked at again."""

    def state(self) -> Sequence[CellPrecision]:
        """How far every precision is in every cell that it is asked of."""
