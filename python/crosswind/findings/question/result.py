"""The answer to a question, or the verdict on a document's statement, in a result."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Scale, Verdict, Yes
from crosswind.stats.estimate import Interval

AnswerVerdict = Verdict | Literal["mixed"]
"""`mixed`: not the same in all cases."""


class AnswerSide(ResultModel):
    """One of two compared levels: its cell, and its number.

    `value`: the statistic, for a quantile the mean over the repetitions' own, with its interval; its `spread` is over
    the repetitions' own. `failed`: unsuccessful exchanges, left out of a mean. `valid`: whether the cell is.
    """

    level: str
    cell: int
    value: Interval
    failed: int
    valid: bool = Field(default=True)


class AnswerCase(ResultModel):
    """One deciding number: from two cells different in the factor alone (`other` against `reference`), from one, or
    from all.

    `fixed`: its cells' common levels. `effect`: the number, with its 95 % interval. `pairs`: compared repetitions, or
    the smaller cell's if unpaired. `of_most`: whether the answer is about most repetitions and not about the statistic
    over all, because the design supports no interval for it; then `effect` is the median of the pairs, decided by a
    sign test. `below`, `above`: pairs with a smaller, and with a larger `other`. `constant`: whether all have the same
    effect; then `exceptions_at_most` is the share of repetitions with possibly another one, with 95 % confidence.
    `p_yes`: for the answer not being yes, `p_no`: for it not being no, both two-sided; corrected by Holm's method over
    all cases in all questions of the study, `p_no` for a statement over its document's cases; null without a test.
    `needed`: repetitions of each cell to know the answer, probably, if undecided. `at_most`: the study's limit on a
    cell's repetitions (`[[repetitions]]`), null without one. `reason`: why there is no effect, or no interval for it.
    `violated`: the model's assumptions broken by a cell.
    """

    reference: AnswerSide | None
    other: AnswerSide | None
    fixed: dict[str, str]
    cells: list[int]
    effect: Interval
    pairs: int
    of_most: bool = Field(default=False)
    below: int = Field(default=0)
    above: int = Field(default=0)
    constant: bool = Field(default=False)
    exceptions_at_most: float | None = Field(default=None)
    p_yes: float | None = Field(default=None)
    p_no: float | None = Field(default=None)
    verdict: Verdict = Field(default="cannot tell")
    needed: int | None = Field(default=None)
    at_most: int | None = Field(default=None)
    reason: str | None = Field(default=None)
    violated: list[str] = Field(default=[])

    @property
    def sides(self) -> tuple[AnswerSide, AnswerSide]:
        """The reference and the other level, in a case with two cells."""
        assert self.reference is not None and self.other is not None  # Other cases have no sides.
        return self.reference, self.other


class Answer(ResultModel):
    """A question and its answer, or a document's statement (`source`) and its verdict.

    `scale`: the deciding number; for a yes it has to lie from `low` to `high`, or outside (`inside`); both ends belong
    to it unless `is_open`; null is no end. `yes` says the same in a word: less, more, different or the same as the
    reference; within; or rises and falls along the factor. Differences below `margin`, as in the study, do not matter;
    `bound` is its number, for a ratio the part above 1. A question is answered case by case; a statement is a yes if
    every case supports it, and a no if one contradicts it. `sentence`: the answer in words. `figure`: title of its
    figure, if the study names one. `reason`: why there are no cases, or declared levels missing from the run, as the
    reason for no verdict. `choice`: one that the document leaves open, and the verdict's; `why_open`: the reason;
    `joint`: the verdict over all of them, with what was measured. `instant`: the places without a ratio, where both
    sides take less than 1 µs.
    """

    asks: str
    source: str
    sentence: str | None = Field(default=None)
    verdict: AnswerVerdict
    metric: str
    statistic: str
    factor: str | None
    yes: Yes
    scale: Scale
    unit: str
    low: float | None
    high: float | None
    inside: bool
    is_open: bool
    margin: str | None
    bound: float | None
    model: str | None
    cases: list[AnswerCase]
    figure: str | None
    reason: str | None
    note: str | None
    choice: str = Field(default="")
    why_open: str = Field(default="")
    joint: str = Field(default="")
    instant: list[str] = Field(default=[])

    @property
    def agrees_so_far(self) -> bool:
        """Whether only missing levels keep a verdict from being a yes."""
        is_open = self.verdict == "cannot tell" and self.reason is not None and bool(self.cases)
        return is_open and all(case.verdict == "yes" for case in self.cases)
