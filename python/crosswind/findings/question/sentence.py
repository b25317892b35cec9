"""A question's answer in one sentence, made by rule from its numbers."""

from collections.abc import Sequence

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import STATISTICS, Per
from crosswind.findings.question.result import Answer, AnswerCase, AnswerSide
from crosswind.findings.question.statement import (
    OF_QUESTION,
    asking_for,
    more_text,
    statement_sentence,
)
from crosswind.findings.question.words import (
    FEW,
    clause,
    effect_scale,
    effect_text,
    margin_text,
    margin_words,
    metric_of_answer,
    value_text,
    what_of,
    with_level,
    with_levels,
)
from crosswind.report.text.deciding import MOST_REPETITIONS, rounded
from crosswind.report.text.effects import named_level, range_text, ratios_text
from crosswind.report.text.format import (
    count,
    count_of,
    count_range,
    p_value,
    percent,
    scale_of,
    three_digits,
)
from crosswind.text.quantities import RATE, TIME

_MOST_NAMED = 4
"""Maximum cases named in a sentence."""


def answered(result: Result) -> list[Answer]:
    """The questions with executed cells."""
    return [answer for answer in result.of(Answer) if answer.cases and not answer.source]


def not_asked(result: Result) -> str | None:
    """The questions without cells in the run, as in a quick variant; None without one."""
    absent = [answer for answer in result.of(Answer) if not answer.cases and not answer.source]
    if not absent:
        return None
    named = "; ".join(f"“{answer.asks}” ({answer.reason})" for answer in absent)
    return f"Not answered by this run: {named}."


def answer_sentence(answer: Answer) -> str:
    """The verdict, the measurement, its repetitions, and the remedy if undecided."""
    if answer.source or answer.yes == "within" or not has_reference(answer):
        return statement_sentence(answer)
    if not answer.cases:
        return f"Cannot tell: {answer.reason}."
    said = f"{_single_case(answer, answer.cases[0])}." if len(answer.cases) == 1 else f"{_several_cases(answer)}."
    if answer.reason is None:
        return said
    return f"Cannot tell: {answer.reason}; of the others: {said[:1].lower()}{said[1:]}"


def has_reference(answer: Answer) -> bool:
    """Whether everything is compared with one level."""
    if answer.scale not in ("ratio", "difference"):
        return False
    return len({None if case.reference is None else case.sides[0].level for case in answer.cases}) <= 1


def case_name(answer: Answer, case: AnswerCase) -> str:
    """A case's distinction: "delay 15ms", "delay 15ms, quic"; empty for the only one."""
    is_one_of_several = len({other.sides[1].level for other in answer.cases if other.other}) > 1
    level = named_level(str(answer.factor), case.sides[1].level) if is_one_of_several else ""
    return ", ".join(filter(None, (place_name(answer, case), level)))


def place_name(answer: Answer, case: AnswerCase) -> str:
    """A case's distinguishing levels within its question, without the compared ones."""
    varied = [key for key in case.fixed if len({other.fixed.get(key) for other in answer.cases}) > 1]
    return ", ".join(named_level(key, case.fixed[key]) for key in varied)


def _single_case(answer: Answer, case: AnswerCase) -> str:
    """A question's only case."""
    if case.effect.is_sign_test and not case.constant:
        return _about_most(answer, case)
    sides = (case.sides[1], case.sides[0])
    missing = [side for side in sides if side.value.value is None and side.value.low is None]
    if missing:
        return f"Cannot tell: {_why_missing(answer, missing)}"
    values = " and ".join(
        f"{value_text(answer, side, beside)} {with_level(answer, side.level)}"
        for side, beside in zip(sides, reversed(sides), strict=True)
    )
    if case.effect.value is None:
        return f"Cannot tell: {case.effect.reason}; the {what_of(answer)} is {values}"
    if case.pairs < FEW and not case.effect.is_exact:
        few = count_of(case.pairs, "repetition")
        return f"Cannot tell from {few}: the {what_of(answer)} is {values}; {_would_take(case)}"
    said = f"{OF_QUESTION[case.verdict]}: the {what_of(answer)} {clause(answer, case)}"
    said += f"{margin_words(answer, case)}{_extent(case)}{_failed(answer, case)}"
    return said + (more_text([case]) if case.verdict == "cannot tell" else "") + _doubts([case])


def _about_most(answer: Answer, case: AnswerCase) -> str:
    """Most repetitions: their number, and their effects' median; nothing about a mean."""
    other, reference = (
        f"{with_level(answer, side.level)}{_repetition_range(answer, side)}" for side in (case.sides[1], case.sides[0])
    )
    agreeing, order = max((case.below, f"lower {other} than"), (case.above, f"higher {other} than"))
    same = case.pairs - case.below - case.above
    if same > agreeing:
        agreeing, order = same, f"the same {other} as"
    p = {"yes": case.p_yes, "no": case.p_no}.get(case.verdict)
    tested = "sign test" if p is None else f"sign test, p = {p_value(p)}".replace("= <", "<")
    in_how_many = f"in {count(agreeing)} of {count(case.pairs)} ({tested})"
    said = f"a repetition's {what_of(answer)} is {order} {reference} {in_how_many}"
    effects = "ratios" if answer.scale == "ratio" else "differences"
    said += f"; the median of the {effects} is {effect_text(answer, case.effect)}{margin_words(answer, case)}"
    said += _failed(answer, case)
    if case.verdict == "cannot tell":
        return f"{OF_QUESTION[case.verdict]}: {said}{more_text([case])}{_doubts([case])}"
    return f"{OF_QUESTION[case.verdict]}, in most repetitions: {said}{_doubts([case])}"


def _repetition_range(answer: Answer, side: AnswerSide) -> str:
    """The range of a level's repetitions: " (2.79 to 16.1 Mbit/s)"; empty if unknown."""
    unit = metric_of_answer(answer).unit
    ends = (side.value.value, side.value.value) if side.value.is_exact else side.value.spread
    if unit not in (TIME, RATE) or ends is None or ends[1] is None:
        return ""
    divisor, name = scale_of([ends[1]], unit.name)
    return f" ({range_text((ends[0] or 0.0) / divisor, ends[1] / divisor)} {name})"


def _why_missing(answer: Answer, sides: Sequence[AnswerSide]) -> str:
    """Reasons for missing numbers, each once; with the level if it is one's."""
    reasons = dict.fromkeys(side.value.reason or "it has no value" for side in sides)
    if len(sides) > 1 and len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{side.value.reason} {with_level(answer, side.level)}" for side in sides)


def _extent(case: AnswerCase) -> str:
    """From how many repetitions: ", 30 repetitions each", ", both are exact"."""
    if case.effect.is_exact:
        return "; both are exact"
    if case.constant:
        most, pairs = percent(case.exceptions_at_most), count(case.pairs)
        return (
            f" in all {pairs} repetitions (sign test of {pairs} pairs); at most {most} of repetitions may differ, with "
            "95 % confidence"
        )
    sides = [side.value for side in (case.sides[1], case.sides[0])]
    few = "" if case.effect.is_whole else ", too few for an interval"
    if any(side.is_exact for side in sides):
        return f"; one is exact, the other from {count_of(case.pairs, 'repetition')}{few}"
    if sides[0].units == sides[1].units:
        return f", {count_of(sides[0].units, 'repetition')} each{few}"
    return f", {count(sides[0].units)} and {count(sides[1].units)} repetitions{few}"


def _failed(answer: Answer, case: AnswerCase) -> str:
    """Failed exchanges, missing from a mean."""
    is_of_successes = metric_of_answer(answer).per is Per.EXCHANGE and STATISTICS[answer.statistic].quantile is None
    failed = [side for side in (case.sides[1], case.sides[0]) if side.failed]
    if not failed or not is_of_successes:
        return ""
    named = " and ".join(f"{count(side.failed)} {with_level(answer, side.level)}" for side in failed)
    return f", without the exchanges that failed ({named})"


def _doubts(cases: Sequence[AnswerCase]) -> str:
    """The number of cases with an untrustworthy cell."""
    doubtful = sum(not (case.sides[0].valid and case.sides[1].valid) for case in cases)
    if not doubtful:
        return ""
    return (
        "; it has invalid cells"
        if len(cases) == 1
        else f"; {count(doubtful)} of the cases {'is' if doubtful == 1 else 'are'} invalid"
    )


def _would_take(case: AnswerCase) -> str:
    if case.needed is None:
        return "nothing shows how many it would take"
    if case.needed > MOST_REPETITIONS:
        return f"it would take more than {count(MOST_REPETITIONS)}"
    is_known = case.pairs > 1 and case.needed > FEW
    needed = case.pairs + rounded(case.needed - case.pairs) if is_known else case.needed
    return (
        f"{'it would take about' if is_known else 'it takes at least'} {count(needed)} ({asking_for(needed, [case])})"
    )


def _several_cases(answer: Answer) -> str:
    """A question with several cases: counts by verdict, and the effects' range."""
    cases = answer.cases
    few = max(case.pairs for case in cases) < FEW and not any(case.effect.is_exact for case in cases)
    head = _counts(answer)
    if few:
        head = head.replace(
            "Cannot tell", f"Cannot tell from {count_of(max(case.pairs for case in cases), 'repetition')}", 1
        )
    known = [case for case in cases if case.effect.value is not None]
    if not known:
        reasons = dict.fromkeys(case.effect.reason or "there is no value" for case in cases)
        return f"{head}: {'; '.join(reasons)}"
    reference = with_level(answer, known[0].sides[0].level)
    names = with_levels(answer, list(dict.fromkeys(case.sides[1].level for case in known)))
    said = f"{head}: the {what_of(answer)} {names} {_range(answer, known)} {reference}{_values(answer, known)}"
    said += _most_of(known)
    said += f", where {margin_text(answer)} would matter" if answer.margin else ""
    return said + (_would_take_all(cases) if few else _extent_of_all(known) + more_text(cases)) + _doubts(cases)


def _most_of(cases: Sequence[AnswerCase]) -> str:
    """The cases with an answer about most repetitions."""
    number = sum(case.effect.is_sign_test and not case.constant for case in cases)
    if not number:
        return ""
    where = "" if number == len(cases) else f" in {count(number)} of the cases"
    return f"{where} in the median of the repetitions (sign test)"


def _range(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """From the smallest effect to the largest."""
    values = [case.effect.value for case in cases if case.effect.value is not None]
    if answer.scale == "ratio":
        return f"is {ratios_text(min(values), max(values))} times that"
    divisor, unit = effect_scale(answer, *(case.effect for case in cases))
    if not any(values):
        return "does not differ from that"
    if min(values) < 0 < max(values):
        low, high = (three_digits(end / divisor) for end in (min(values), max(values)))
        return f"differs by {low} to {high} {unit} from that"
    sizes = [abs(value) / divisor for value in values]
    return f"is {range_text(min(sizes), max(sizes))} {unit} {'lower' if max(values) <= 0 else 'higher'} than that"


def _values(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """The range of all cases' measurements: " (3.13 to 84.3 against 94.1 Mbit/s)"."""
    sides = [[case.sides[1] for case in cases], [case.sides[0] for case in cases]]
    values = [[side.value.value for side in group if side.value.value is not None] for group in sides]
    unit = metric_of_answer(answer).unit
    # Means of all beside an answer about most repetitions would read as if they were meant.
    if unit not in (TIME, RATE) or not all(values) or _most_of(cases):
        return ""
    divisor, name = scale_of([max(map(max, values))], unit.name)
    texts = [range_text(min(group) / divisor, max(group) / divisor) for group in values]
    return f" ({' against '.join(texts)} {name})"


def _counts(answer: Answer) -> str:
    groups = {
        verdict: [case for case in answer.cases if case.verdict == verdict] for verdict in ("yes", "no", "cannot tell")
    }
    total = len(answer.cases)
    by_verdict = {verdict: group for verdict, group in groups.items() if group}
    if len(by_verdict) == 1:
        (verdict,) = by_verdict
        named = _named(answer, answer.cases) if total <= _MOST_NAMED else ""
        every = all(case.effect.is_sign_test and not case.constant for case in answer.cases)
        most = ", in most repetitions" if every and verdict != "cannot tell" else ""
        return f"{OF_QUESTION[verdict]}{most}, in {'both' if total == 2 else f'all {count(total)}'} cases{named}"
    parts: list[str] = []
    for verdict, group in by_verdict.items():
        names = _named(answer, group) if total <= _MOST_NAMED else ""
        of = f"in {count(len(group))} of {count(total)} cases" if not parts else f"in {count(len(group))}"
        word = OF_QUESTION[verdict] if not parts else OF_QUESTION[verdict].lower()
        parts.append(f"{word} {of}{names}")
    return ", ".join(parts)


def _named(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """The cases by name: " (delay 15ms; delay 50ms)"."""
    return f" ({'; '.join(case_name(answer, case) for case in cases)})"


def _extent_of_all(cases: Sequence[AnswerCase]) -> str:
    if all(case.effect.is_exact for case in cases):
        return "; all are exact"
    units = sorted({case.pairs for case in cases if not case.effect.is_exact})
    return f", {count_range(units)} repetition{'' if units[-1] == 1 else 's'} each"


def _would_take_all(cases: Sequence[AnswerCase]) -> str:
    worst = max(cases, key=lambda case: case.needed or 0)
    return f"; {_would_take(worst)}"
