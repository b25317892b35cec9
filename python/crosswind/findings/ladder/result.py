"""Where a study breaks on a ladder, as a result has it."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval


class LadderRung(ResultModel):
    """One cell on the ladder. `lost` of its `n` exchanges failed; `value`: the metric, null without a sample.

    `reason`: why its measurement is not valid; null where it is.
    """

    rung: str
    cell: int
    n: int
    lost: int
    value: Interval | None
    reason: str | None


class LadderBreak(ResultModel):
    """A break at a rung. `before`: the rung before it; null for a break at the first.

    `kind`: failed (exchanges fail there), threshold (one is missed there), unusable (no exchange succeeds there).
    `text`: the same as a clause.
    """

    kind: Literal["failed", "threshold", "unusable"]
    rung: str
    before: str | None
    text: str


class LadderClimb(ResultModel):
    """Cells on different rungs only, from the best rung to the worst. `levels`: of the other factors.

    `metric`: their workload's main one, in `unit`; null without one. `statistic`: the mean, or the median if some
    rung's mean has no estimate. `breaks`: the breaks, with their rungs.
    """

    levels: dict[str, str]
    metric: str | None
    statistic: Literal["mean", "median"]
    unit: str
    rungs: list[LadderRung]
    breaks: list[LadderBreak]
    sentence: str = Field(default="")


class LadderTurn(ResultModel):
    """An answer changing at a rung. `answers`: each rung's, in order."""

    asks: str
    levels: dict[str, str]
    rung: str
    answers: dict[str, str]
    sentence: str


class Ladder(ResultModel):
    """A study's breaks as a factor's levels get worse.

    `rungs`: these levels, the best first. `climbs`: for each combination of the other factors' levels. `turns`:
    questions with a decided answer changing at a rung.
    """

    factor: str
    rungs: list[str]
    climbs: list[LadderClimb]
    turns: list[LadderTurn]
    note: str | None
