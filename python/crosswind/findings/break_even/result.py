"""Where two levels may take the same, as a result has it."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval

Better = Literal["reference", "other", "same", "unknown"]


class BreakEvenPoint(ResultModel):
    """Two cells at one place along the factor. `effect`: the other's statistic divided by the reference's.

    `less`: whose statistic is less there; `same`: exactly equal; `unknown`: the interval of the ratio holds 1.
    """

    x: float
    x_text: str
    reference: int
    other: int
    effect: Interval
    less: Better


class BreakEvenStretch(ResultModel):
    """Neighbouring places with one answer, from `low` to `high`. `less`: as of a point."""

    low: float
    high: float
    less: Better


class BreakEvenGroup(ResultModel):
    """Points that differ in the factor `over` alone, in order, and the stretches from the first to the last.

    The set of places at which the two may take the same are the stretches that are `unknown` or `same`. `crossings`:
    where the estimate itself is 1, on a straight line of its logarithm; none between two exact points.
    """

    levels: dict[str, str]
    points: list[BreakEvenPoint]
    stretches: list[BreakEvenStretch]
    crossings: list[float]


class BreakEven(ResultModel):
    """Two levels along a factor, and the set of places at which they may take the same.

    `reference`, `other`: levels of `factor`. `x_title`, `x_unit`: of the places along `over`: there and back, of a
    delay. The set has the places whose 95 % interval of the ratio holds 1; between two places, the limits of the
    ratio's logarithm are those on straight lines, and between two exact ones of different answers it is unknown. It
    holds each place of equality with that confidence. `missing`: cells that were not run, or have no such number.
    `alone`: combinations of other levels with a single place, which are left out.
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
    missing: int
    alone: int
    note: str | None
    reason: str | None
    sentence: str = Field(default="")
