"""Where two levels may take the same, as a result has it."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval

Better = Literal["reference", "other", "same", "unknown"]


class BreakEvenPoint(ResultModel):
    """Two cells at one place along the factor. `effect`: the other's statistic / the reference's.

    `less`: the smaller side; `same`: exactly equal; `unknown`: the ratio's interval holds 1.
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
    """Points different in the factor `over` alone, in order, and the stretches from the first to the last.

    The set: the `unknown` and the `same` stretches. `crossings`: places with an estimate at 1, its logarithm on a
    straight line; none between two exact points.
    """

    levels: dict[str, str]
    points: list[BreakEvenPoint]
    stretches: list[BreakEvenStretch]
    crossings: list[float]


class BreakEven(ResultModel):
    """Two levels along a factor, and the set: the places with a 95 % interval of their ratio around 1.

    Between two places, the limits lie on straight lines of the ratio's logarithm; between two exact ones with
    different answers it is unknown. The set holds each true break-even with that confidence. `reference`, `other`:
    the factor's levels. `x_title`, `x_unit`: along `over`; a delay counts there and back. `missing`: cells without a
    number. `alone`: combinations with a single place, left out.
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
