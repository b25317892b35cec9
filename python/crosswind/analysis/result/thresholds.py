"""Thresholds of a study, and whether it stays within them."""

from typing import Literal

from crosswind.analysis.result.estimates import Interval, ResultModel

ThresholdVerdict = Literal["pass", "fail", "cannot tell"]


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

    `fail_if`: as written. It fails above `bound` (`above`) or below it, and at the bound itself too (`at_bound`); the
    bound is in `unit`. A cell passes where its whole interval of 95 % is on the other side; it fails where the whole
    interval, at the level 1 - 0.05 / cells of all thresholds, is on this one. The study passes where every cell passes,
    and fails where one fails. reason: why there are no cells, or which of those that it was declared for the run does
    not have, so that it does not pass.
    """

    fail_if: str
    metric: str
    statistic: str
    unit: str
    bound: float
    above: bool
    at_bound: bool
    verdict: ThresholdVerdict
    cells: list[ThresholdCell]
    reason: str | None
    note: str | None
