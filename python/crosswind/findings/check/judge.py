"""What documents' own numbers come to, as the plan has it: no run decides it."""

from typing import Literal

from crosswind.analysis.result import ResultModel
from crosswind.findings.judged import Context, Judging


class CheckNumber(ResultModel):
    """A number that a check comes to. `of`: which one, empty for the only one."""

    of: str
    value: float


class CheckResult(ResultModel):
    """A statement of a document, and what the document's own numbers say of it, by arithmetic and without a run.

    It holds where every one of `numbers` lies from `at_least` to `at_most`, which are null where there is no such end.
    `value`: the formula. `what`: what it gives, in words. `sentence`: all of it in one sentence.
    """

    says: str
    source: str
    value: str
    what: str
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    numbers: list[CheckNumber]
    verdict: Literal["holds", "does not hold"]
    sentence: str
    note: str


def judge_checks(context: Context) -> list[CheckResult]:
    """Those of the study."""
    return [CheckResult.model_validate(check) for check in context.record.asked.get("check", ())]


JUDGING = Judging("check", "checks", CheckResult, judge_checks)
