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
    """Something that is so from a rung on. `before`: the rung before it; null where it is so from the first on.

    `kind`: failed (exchanges fail there), threshold (one is missed there), unusable (no exchange succeeds there).
    `text`: the same as a clause.
    """

    kind: Literal["failed", "threshold", "unusable"]
    rung: str
    before: str | None
    text: str


class LadderClimb(ResultModel):
    """The cells that differ in the rung alone, from the best rung to the worst. `levels`: of the other factors.

    `metric` is the main one of their workload, in `unit`; null where it has none. `statistic`: the mean, or the median
    where the mean of some rung has no estimate. `breaks`: what breaks, and from which
    rung on.
    """

    levels: dict[str, str]
    metric: str | None
    statistic: Literal["mean", "median"]
    unit: str
    rungs: list[LadderRung]
    breaks: list[LadderBreak]
    sentence: str = Field(default="")


class LadderTurn(ResultModel):
    """An answer that is another one from a rung on. `answers`: that of each rung, in their order."""

    asks: str
    levels: dict[str, str]
    rung: str
    answers: dict[str, str]
    sentence: str


class Ladder(ResultModel):
    """Where a study breaks as the levels of a factor get worse.

    `rungs`: these levels, the best first. `climbs`: of each combination of levels of the other factors. `turns`:
    questions whose decided answer is another one on a rung than on those before.
    """

    factor: str
    rungs: list[str]
    climbs: list[LadderClimb]
    turns: list[LadderTurn]
    note: str | None
