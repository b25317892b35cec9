"""How far the precision of a cell is, as a run goes on: what decides, displays and reports all speak of.

Plain values. Who judges is `crosswind.analysis.precision`; who adds repetitions is `crosswind.execution.growth`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from crosswind.record import CellRun


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
class CellPrecision:
    """A precision in one cell, at its last look.

    Attributes:
        metric, statistic: whose mean over repetitions has the interval. unit: of value, low, high and half_width.
        units: repetitions that the interval rests on. value, low, high: None where there is no interval; of an exact
            cell `value` alone. target: as the study has it. wanted: the half-width that it means, in `unit`.
        least: repetitions below which the design of the cell supports no interval, however narrow it comes out.
        ended: what ended the cell; None while it goes on. likely: repetitions in all at which its precision will
            probably be reached; None where that is not known, or beyond the cap. reason: why there is no interval.
    """

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
    least: int = 0
    likely: int | None = None
    reason: str | None = None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def is_reached(self) -> bool:
        """Whether the interval is as narrow as it was to be."""
        half = self.half_width
        return half is not None and self.wanted is not None and half <= self.wanted and self.units >= self.least


class StoppingRule(Protocol):
    """Decides how often cells are run."""

    def add(self, run: "CellRun") -> None:
        """A repetition has ended."""

    def next_counts(self) -> dict[int, int]:
        """Of each cell that goes on, how many repetitions it is to have in all before it is looked at again."""

    def state(self) -> Sequence[CellPrecision]:
        """How far every precision is in every cell that it is asked of."""
