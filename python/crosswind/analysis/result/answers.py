"""The questions that a study is run for, and their answers."""

from typing import Literal

from pydantic import Field

from crosswind.analysis.result.estimates import Interval, ResultModel

CaseVerdict = Literal["yes", "no", "cannot tell"]
AnswerVerdict = Literal["yes", "no", "mixed", "cannot tell"]
"""`mixed`: not the same in all cases."""


class AnswerSide(ResultModel):
    """One of two levels that are compared: its cell, and what is compared of it.

    `value`: the statistic, of a quantile the mean of those of the repetitions, with its interval; its `spread` is that
    of the repetitions' own. `failed`: exchanges that did not succeed, which a mean is without. `valid`: whether the
    cell is.
    """

    level: str
    cell: int
    value: Interval
    failed: int
    valid: bool = Field(default=True)


class AnswerCase(ResultModel):
    """Two cells that differ in the question's factor alone: `other` against `reference`.

    `fixed`: their other levels. `effect`: the ratio or the difference, with its interval of 95 %. `pairs`: repetitions
    that were compared, of the smaller cell where they are not paired. `of_most`: whether the answer is about what most
    repetitions do and not about the statistic of all, because the design supports no interval of that; then `effect` is
    the median of the pairs, decided by a sign test. `below`, `above`: pairs in which `other` is less, and more.
    `constant`: whether all of them have the same effect; then `exceptions_at_most` is the share of repetitions that may
    have another one, with 95 % confidence.
    `p_yes`: of the answer not being yes, `p_no`: of it not being no, both two-sided and corrected by Holm's method over
    all cases of all questions of the study; null where there is no test. `needed`: repetitions of each cell with which
    the answer would probably be known, where it is not. `at_most`: how often the study runs one of the two cells at
    most (`[[repetitions]]`), null without such a limit. `reason`: why there is no effect, or no interval of it.
    """

    reference: AnswerSide
    other: AnswerSide
    fixed: dict[str, str]
    effect: Interval
    pairs: int
    of_most: bool = Field(default=False)
    below: int = Field(default=0)
    above: int = Field(default=0)
    constant: bool
    exceptions_at_most: float | None
    p_yes: float | None
    p_no: float | None
    verdict: CaseVerdict
    needed: int | None
    at_most: int | None = Field(default=None)
    reason: str | None


class Answer(ResultModel):
    """A question and its answer.

    `yes` is what a level has to be beside the reference: less, more, different or the same. By less than `margin`, as
    the study has it, levels do not differ in a way that matters; `bound` is its number, of a ratio what is above 1.
    `sentence`: the answer in words. `figure`: the title of the figure that shows it, where the study names one.
    `reason`: why there are no cases, or which levels that it compares the run does not have, so that it cannot be told.
    """

    asks: str
    sentence: str | None = Field(default=None)
    verdict: AnswerVerdict
    metric: str
    statistic: str
    factor: str
    yes: Literal["less", "more", "different", "same"]
    scale: Literal["ratio", "difference"]
    unit: str
    margin: str | None
    bound: float | None
    cases: list[AnswerCase]
    figure: str | None
    reason: str | None
    note: str | None
