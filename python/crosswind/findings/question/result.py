"""The answer to a question, or to what a document says, as a result has it."""

from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Scale, Verdict, Yes
from crosswind.stats.estimate import Interval

AnswerVerdict = Verdict | Literal["mixed"]
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
    """One number that decides: of two cells that differ in the factor alone (`other` against `reference`), of one, or
    of all.

    `fixed`: the levels that its cells have in common. `effect`: the number, with its interval of 95 %. `pairs`:
    repetitions that were compared, of the smaller cell where they are not paired. `of_most`: whether the answer is
    about what most repetitions do and not about the statistic of all, because the design supports no interval of that;
    then `effect` is the median of the pairs, decided by a sign test. `below`, `above`: pairs in which `other` is less,
    and more. `constant`: whether all of them have the same effect; then `exceptions_at_most` is the share of
    repetitions that may have another one, with 95 % confidence. `p_yes`: of the answer not being yes, `p_no`: of it not
    being no, both two-sided; corrected by Holm's method over all cases of all questions of the study, `p_no` of a
    statement over the cases of its document; null where there is no test. `needed`: repetitions of each cell with which
    the answer would probably be known, where it is not. `at_most`: how often the study runs one of its cells at most
    (`[[repetitions]]`), null without such a limit. `reason`: why there is no effect, or no interval of it.
    `violated`: assumptions of the model that a cell breaks.
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
        """The reference and the other level, of a case of two cells."""
        assert self.reference is not None and self.other is not None  # Others have no sides to speak of.
        return self.reference, self.other


class Answer(ResultModel):
    """A question and its answer, or what a document says (`source`) and whether the data bear it out.

    `scale`: the number that decides, which has to lie from `low` to `high` for a yes, or outside of that (`inside`);
    both ends belong to it unless `is_open`; null is no end. `yes` says the same in a word: less, more, different or the
    same as the reference; within; or rises and falls along the factor. By less than `margin`, as the study has it,
    levels do not differ in a way that matters; `bound` is its number, of a ratio what is above 1. A question is
    answered case by case; a statement is a yes where every case bears it out, and a no where one contradicts it.
    `sentence`: the answer in words. `figure`: the title of the figure that shows it, where the study names one.
    `reason`: why there are no cases, or which levels that it was declared for the run does not have, so that it cannot
    be told.
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
