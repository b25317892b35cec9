"""Where two levels may take the same, as a result has it."""

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval


class BreakEvenPoint(ResultModel):
    """Two cells at one place along the factor. `effect`: the other's statistic divided by the reference's."""

    x: float
    x_text: str
    reference: int
    other: int
    effect: Interval


class BreakEvenPiece(ResultModel):
    """A piece of the set of places at which the ratio may be 1; null where the piece reaches an end of what was run.

    `below`, `above`: which level is less beside it; null where that is unknown or not run.
    """

    low: float | None
    high: float | None
    below: str | None
    above: str | None


class BreakEvenGroup(ResultModel):
    """Points that differ in the factor `over` alone, in order, and the pieces of the set.

    `crossings`: where the estimate itself is 1. `always`: without a piece, the level that is less at every place.
    """

    levels: dict[str, str]
    points: list[BreakEvenPoint]
    pieces: list[BreakEvenPiece]
    crossings: list[float]
    always: str | None


class BreakEven(ResultModel):
    """Two levels along a factor, and the set of places at which they may take the same.

    `reference`, `other`: levels of `factor`. `x_title`, `x_unit`: of the places along `over`: there and back, of a
    delay. The set has the places whose 95 % interval of the ratio holds 1; between two places, the limits of the
    ratio's logarithm are those on straight lines. It holds each place of equality with that confidence.
    """

    asks: str
    metric: str
    statistic: str
    factor: str
    reference: str
    other: str
    over: str
    x_title: str
    x_unit: str
    groups: list[BreakEvenGroup]
    note: str | None
    reason: str | None
    sentence: str = Field(default="")
