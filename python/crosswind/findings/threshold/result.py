"""A threshold's verdict, in a result."""

from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Kept
from crosswind.stats.estimate import Interval


class ThresholdCell(ResultModel):
    """A threshold's cell.

    `value`: the statistic there with its 95 % interval. `needed`: further repetitions to decide it, probably; null if
    unknown, or decided.
    """

    cell: int
    levels: dict[str, str]
    value: Interval
    verdict: Kept
    needed: int | None


class ThresholdResult(ResultModel):
    """A study's failure condition, and its verdict.

    `fail_if`: as written. A number has to lie from `low` to `high`, in `unit`; null is no end; an end itself is inside
    unless `is_open`. A cell passes with its whole 95 % interval inside; it fails with the whole interval outside,
    corrected by Holm's method over the cells of all thresholds. The study passes if every cell passes, and fails if one
    fails. reason: why there are no cells, or declared cells missing from the run, as the reason for not passing.
    `sentence`: the verdict in words.
    """

    fail_if: str
    metric: str
    statistic: str
    unit: str
    low: float | None
    high: float | None
    is_open: bool
    verdict: Kept
    cells: list[ThresholdCell]
    reason: str | None
    note: str | None
    sentence: str = ""
