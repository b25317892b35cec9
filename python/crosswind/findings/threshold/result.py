"""What became of a threshold, as a result has it."""

from typing import Literal

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval

ThresholdVerdict = Literal["pass", "fail", "inconclusive"]


class ThresholdCell(ResultModel):
    """A cell that a threshold is about.

    `value`: the statistic there with its interval of 95 %. `needed`: how many more repetitions would probably decide
    it; null where nobody knows, or it is decided.
    """

    cell: int
    levels: dict[str, str]
    value: Interval
    verdict: ThresholdVerdict
    needed: int | None


class ThresholdResult(ResultModel):
    """When a study fails, and what the data say of it.

    `fail_if`: as written. A number has to lie from `low` to `high`, in `unit`; null is no end; an end is kept itself
    unless `is_open`. A cell passes where its whole interval of 95 % is within; it fails where the whole interval is
    beyond, corrected by Holm's method over the cells of all thresholds. The study passes where every cell passes, and
    fails where one fails. reason: why there are no cells, or which of those that it was declared for the run does not
    have, so that it does not pass. `sentence`: the verdict in words.
    """

    fail_if: str
    metric: str
    statistic: str
    unit: str
    low: float | None
    high: float | None
    is_open: bool
    verdict: ThresholdVerdict
    cells: list[ThresholdCell]
    reason: str | None
    note: str | None
    sentence: str = ""
