"""The cases of a question: what was measured of both levels, their effect, and the verdict on each."""

from crosswind.analysis.result import Answer
from crosswind.report.tables.table import Table, names, numbers, words
from crosswind.report.text.answers import VERDICTS, case_name
from crosswind.report.text.effects import effect_text, value_text, what_of
from crosswind.report.text.format import NOTHING, count, p_value


def answer_table(answer: Answer) -> Table | None:
    """A row for each case; None where the sentence says it all, as of a single one."""
    if len(answer.cases) < 2:
        return None
    others = dict.fromkeys(case.other.level for case in answer.cases)
    reference = answer.cases[0].reference.level
    other = next(iter(others)) if len(others) == 1 else "the other"
    compared = "ratio" if answer.scale == "ratio" else "difference"
    columns = [
        *names("case"),
        *numbers(reference, other, f"{compared} [95 %]", "repetitions", "p (Holm)"),
        *words("answer"),
        *numbers("repetitions that would decide"),
    ]
    rows = [
        [
            case_name(answer, case),
            value_text(answer, case.reference),
            value_text(answer, case.other),
            effect_text(answer, case.effect),
            count(case.pairs) if not case.effect.is_exact else "exact",
            p_value(case.p_no if case.verdict == "no" else case.p_yes),
            VERDICTS[case.verdict].lower(),
            NOTHING if case.needed is None else count(case.needed),
        ]
        for case in answer.cases
    ]
    reasons = dict.fromkeys(case.reason for case in answer.cases if case.reason)
    return Table(what_of(answer), columns, rows, footnotes=[f"Without an interval: {reason}." for reason in reasons])
