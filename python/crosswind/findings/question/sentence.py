"""A question's answer in one sentence, made by rule from its numbers."""

import math
from collections.abc import Iterable, Mapping, Sequence

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import STATISTICS, Per
from crosswind.decisions.statement import Verdict
from crosswind.findings.question.result import Answer, AnswerCase, AnswerSide
from crosswind.findings.question.statement import (
    OF_QUESTION,
    asking_for,
    more_text,
    statement_sentence,
    without_ratio,
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
)
from crosswind.report.text.deciding import MOST_REPETITIONS, rounded
from crosswind.report.text.effects import bare, named_level, number_of_ratio, range_text, ratios_text
from crosswind.report.text.format import (
    NOTHING,
    count,
    count_of,
    count_range,
    interval,
    p_value,
    percent,
    scale_of,
    three_digits,
)
from crosswind.stats.differences import INSTANT_NS
from crosswind.text.lists import begun, listed
from crosswind.text.quantities import RATE, TIME

_MOST_NAMED = 4
"""Maximum cases named in a sentence."""
_NARROW = 1e-3
"""Relative width from which an interval is shown in a list."""
_WITH_LIMITS = 2
"""Up to so many cases, each effect has its interval."""
_MOST_APART = 2
"""Maximum cases named one by one where nothing tells them from the rest."""


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
    """The verdict with levels, statistic and effect in 30 words at most; then margin, method, repetitions, remedy."""
    if answer.source or answer.yes == "within" or not has_reference(answer):
        return statement_sentence(answer)
    if not answer.cases:
        return f"Cannot tell: {answer.reason}."
    said = _single_case(answer, answer.cases[0]) if len(answer.cases) == 1 else _several_cases(answer)
    if answer.instant:
        said += f" {without_ratio(answer)}."
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
    sides = (case.sides[1], case.sides[0])
    is_of_most = case.effect.is_sign_test and not case.constant
    missing = [side for side in sides if side.value.value is None and side.value.low is None]
    if missing and not is_of_most:
        return f"Cannot tell: {_why_missing(answer, missing)}."
    values = " and ".join(
        f"{value_text(answer, side, beside)} {with_level(answer, side.level)}"
        for side, beside in zip(sides, reversed(sides), strict=True)
    )
    if case.effect.value is None:
        return f"Cannot tell: {case.effect.reason}; the {what_of(answer)} is {values}."
    if case.pairs < FEW and not case.effect.is_exact:
        few = count_of(case.pairs, "repetition")
        return f"Cannot tell from {few}: the {what_of(answer)} is {values}; {_would_take(case)}."
    said = clause(answer, case) if not is_of_most else f"{_median_clause(answer, case)} in the median repetition"
    more = more_text([case]) if case.verdict == "cannot tell" else ""
    extent = _signs(answer, case) if is_of_most else _extent(case)
    behind = [margin_words(answer, case), extent, _failed(answer, case), more, _doubts([case])]
    return f"{OF_QUESTION[case.verdict]}: the {what_of(answer)} {said}. {_second(behind)}".rstrip()


def _second(parts: Iterable[str]) -> str:
    """Some clauses as a sentence; empty without any."""
    said = "; ".join(filter(None, (part.removeprefix("; ") for part in parts)))
    return f"{begun(said)}." if said else ""


def _median_clause(answer: Answer, case: AnswerCase) -> str:
    """As `clause`, without the values of a statistic that the design does not support."""
    other, reference = (with_level(answer, side.level) for side in (case.sides[1], case.sides[0]))
    if answer.scale == "ratio":
        return f"{other} is {effect_text(answer, case.effect)} times that {reference}"
    return f"{other} less that {reference} is {effect_text(answer, case.effect)}"


def _signs(answer: Answer, case: AnswerCase) -> str:
    """In how many repetitions it is so, by a sign test."""
    agreeing, order = max((case.below, "lower"), (case.above, "higher"))
    same = case.pairs - case.below - case.above
    if same > agreeing:
        agreeing, order = same, "the same"
    p = {"yes": case.p_yes, "no": case.p_no}.get(case.verdict)
    tested = "sign test" if p is None else f"sign test, p = {p_value(p)}".replace("= <", "<")
    ranges = [_repetition_range(answer, side) for side in (case.sides[1], case.sides[0])]
    values = f": {ranges[0]} against {ranges[1]}" if all(ranges) else ""
    return f"{order} in {count(agreeing)} of {count(case.pairs)} repetitions ({tested}){values}"


def _repetition_range(answer: Answer, side: AnswerSide) -> str:
    """The range of a level's repetitions: "2.79 to 16.1 Mbit/s"; empty if unknown."""
    unit = metric_of_answer(answer).unit
    ends = (side.value.value, side.value.value) if side.value.is_exact else side.value.spread
    if unit not in (TIME, RATE) or ends is None or ends[1] is None:
        return ""
    divisor, name = scale_of([ends[1]], unit.name)
    return f"{range_text((ends[0] or 0.0) / divisor, ends[1] / divisor)} {name}"


def _why_missing(answer: Answer, sides: Sequence[AnswerSide]) -> str:
    """Reasons for missing numbers, each once; with the level if it is one's."""
    reasons = dict.fromkeys(side.value.reason or "it has no value" for side in sides)
    if len(sides) > 1 and len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{side.value.reason} {with_level(answer, side.level)}" for side in sides)


def _extent(case: AnswerCase) -> str:
    """From how many repetitions: "30 repetitions each", "both are exact"."""
    if case.effect.is_exact:
        return "both are exact"
    if case.constant:
        most, pairs = percent(case.exceptions_at_most), count(case.pairs)
        return (
            f"in all {pairs} repetitions (sign test of {pairs} pairs); at most {most} of repetitions may differ, with "
            "95 % confidence"
        )
    sides = [side.value for side in (case.sides[1], case.sides[0])]
    few = "" if case.effect.is_whole else ", too few for an interval"
    if any(side.is_exact for side in sides):
        return f"one is exact, the other from {count_of(case.pairs, 'repetition')}{few}"
    if sides[0].units == sides[1].units:
        return f"{count_of(sides[0].units, 'repetition')} each{few}"
    return f"{count(sides[0].units)} and {count(sides[1].units)} repetitions{few}"


def _failed(answer: Answer, case: AnswerCase) -> str:
    """Failed exchanges, missing from a mean."""
    failed = [side for side in (case.sides[1], case.sides[0]) if side.failed]
    if not failed or not _is_of_successes(answer):
        return ""
    named = " and ".join(f"{count(side.failed)} {with_level(answer, side.level)}" for side in failed)
    return f"without the exchanges that failed ({named})"


def _failed_in(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """The exchanges missing from the means of several cases."""
    failed = sum({side.cell: side.failed for case in cases for side in case.sides}.values())
    return f"without the {count_of(failed, 'exchange')} that failed" if failed and _is_of_successes(answer) else ""


def _is_of_successes(answer: Answer) -> bool:
    """Whether the statistic leaves failed exchanges out; a quantile counts them."""
    return metric_of_answer(answer).per is Per.EXCHANGE and STATISTICS[answer.statistic].quantile is None


def _doubts(cases: Sequence[AnswerCase]) -> str:
    """The number of cases with an untrustworthy cell."""
    doubtful = sum(not (case.sides[0].valid and case.sides[1].valid) for case in cases)
    if not doubtful:
        return ""
    return (
        "it has invalid cells"
        if len(cases) == 1
        else f"{count(doubtful)} of the cases {'is' if doubtful == 1 else 'are'} invalid"
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
    """A question with several cases: a few by name, each with its effect; many with their range."""
    cases = answer.cases
    few = max(case.pairs for case in cases) < FEW and not any(case.effect.is_exact for case in cases)
    known = [case for case in cases if case.effect.value is not None]
    if not known:
        reasons = dict.fromkeys(case.effect.reason or "there is no value" for case in cases)
        return f"{_verdicts(answer)}: {'; '.join(reasons)}."
    others = list(dict.fromkeys(case.sides[1].level for case in known))
    names = [named_level(str(answer.factor), level) for level in (*others, known[0].sides[0].level)]
    over = "over" if answer.scale == "ratio" else "less"
    pair = f"{over} {names[-1]}" if len(others) > 1 else f"{names[0]} {over} {names[-1]}"
    is_named = len(cases) <= _MOST_NAMED
    verdicts = _verdicts_with_effects(answer) if is_named else _verdicts(answer)
    first = f"{verdicts}: {what_of(answer)}, {pair}{'' if is_named else f', {_range(answer, known)}'}"
    if few:
        most = count_of(max(case.pairs for case in cases), "repetition")
        first = first.replace("Cannot tell", f"Cannot tell from {most}", 1)
    margin = f"{margin_text(answer)} would matter" if answer.margin else ""
    rest = [_would_take_all(cases)] if few else [_extent_of_all(known), _most_of(known), more_text(cases)]
    behind = [_values(answer, known), _failed_in(answer, cases), margin, *rest, _doubts(cases)]
    return f"{first}. {_second(behind)}".rstrip()


def _most_of(cases: Sequence[AnswerCase]) -> str:
    """The cases with an answer about most repetitions."""
    number = sum(case.effect.is_sign_test and not case.constant for case in cases)
    if not number:
        return ""
    where = "" if number == len(cases) else f" in {count(number)} of the cases"
    return f"median of the repetitions, sign test{where}"


def _range(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """From the smallest effect to the largest: "1.00 to 1.05 times", "−0.1 to 0.3 ms"."""
    values = [case.effect.value for case in cases if case.effect.value is not None]
    if answer.scale == "ratio":
        return f"{ratios_text(min(values), max(values))} times"
    if not any(values):
        return "no difference"
    divisor, unit = effect_scale(answer, *(case.effect for case in cases))
    if min(values) < 0:
        low, high = (three_digits(end / divisor) for end in (min(values), max(values)))
        return f"{low} to {high} {unit}"
    return f"{range_text(min(values) / divisor, max(values) / divisor)} {unit}"


def _values(answer: Answer, cases: Sequence[AnswerCase]) -> str:
    """The range of all cases' measurements: "3.13 to 84.3 against 94.1 Mbit/s"."""
    sides = [[case.sides[1] for case in cases], [case.sides[0] for case in cases]]
    values = [[side.value.value for side in group if side.value.value is not None] for group in sides]
    unit = metric_of_answer(answer).unit
    # Means of all beside an answer about most repetitions would read as if they were meant.
    if unit not in (TIME, RATE) or not all(values) or _most_of(cases):
        return ""
    divisor, name = scale_of([max(map(max, values))], unit.name)
    least = INSTANT_NS if unit is TIME else -math.inf
    texts = [
        range_text(min(group) / divisor, max(group) / divisor)
        if min(group) >= least
        else f"under {least / divisor:g} to {three_digits(max(group) / divisor)}"
        for group in values
    ]
    return f"{' against '.join(texts)} {name}"


def _by_verdict(answer: Answer) -> dict[Verdict, list[AnswerCase]]:
    groups: dict[Verdict, list[AnswerCase]] = {"yes": [], "no": [], "cannot tell": []}
    for case in answer.cases:
        groups[case.verdict].append(case)
    return {verdict: group for verdict, group in groups.items() if group}


def _verdicts_with_effects(answer: Answer) -> str:
    """As "Yes for reno (0.07 [0.04, 0.12]) and cubic (0.08 [0.05, 0.11]), cannot tell for bbr (0.9985)"."""
    with_limits = len(answer.cases) <= _WITH_LIMITS
    parts: list[str] = []
    for verdict, group in _by_verdict(answer).items():
        names = [
            f"{case_name(answer, case)} ({effect_in_list(answer, case, with_limits=with_limits)})" for case in group
        ]
        common = _in_common(answer, group) if len(group) > 1 and ", " in case_name(answer, group[0]) else ""
        if common:
            names = [f"{common} ({_range(answer, group)})"]
        word = OF_QUESTION[verdict]
        parts.append(f"{word if not parts else word.lower()} for {listed(names)}")
    return ", ".join(parts)


def effect_in_list(answer: Answer, case: AnswerCase, *, with_limits: bool = True) -> str:
    """A case's effect in a list: "0.148 [0.116, 0.162] times", "2.000 times", "3.1 ms"."""
    effect = case.effect
    if effect.value is None:
        return effect.reason or NOTHING
    low, high = effect.limits or (effect.value, effect.value)
    is_narrow = high - low <= _NARROW * abs(effect.value)
    has_limits = with_limits and effect.is_whole and not is_narrow
    if answer.scale == "ratio":
        return f"{bare(interval(effect)) if has_limits else number_of_ratio(effect.value)} times"
    if not effect.value and not has_limits:
        return "no difference"
    divisor, unit = effect_scale(answer, effect)
    return f"{bare(interval(effect, divisor)) if has_limits else three_digits(effect.value / divisor)} {unit}"


def _verdicts(answer: Answer) -> str:
    """As "Yes in all 6 cases", "Yes in 5 of 6 cases, cannot tell in 1 (bbr)"."""
    groups, total = _by_verdict(answer), len(answer.cases)
    if len(groups) == 1:
        return f"{OF_QUESTION[next(iter(groups))]}, in {'both' if total == 2 else f'all {count(total)}'} cases"
    parts: list[str] = []
    for verdict, group in groups.items():
        of = f"in {count(len(group))} of {count(total)} cases" if not parts else f"in {count(len(group))}"
        names = _in_common(answer, group)
        if not names and len(group) <= _MOST_APART:
            names = "; ".join(case_name(answer, case) for case in group)
        word = OF_QUESTION[verdict] if not parts else OF_QUESTION[verdict].lower()
        parts.append(f"{word} {of}{f' ({names})' if names else ''}")
    return ", ".join(parts)


def _in_common(answer: Answer, group: Sequence[AnswerCase]) -> str:
    """The levels that some cases alone have, as "loss 5% or 10%, quic"; empty if no levels tell them from the rest."""
    named = [_levels_of(answer, case) for case in answer.cases]
    own = [_levels_of(answer, case) for case in group]
    # Parts may have factors of their own.
    shared = [key for key in own[0] if all(key in levels for levels in named)]
    values = {key: list(dict.fromkeys(levels[key] for levels in own)) for key in shared}
    if sum(all(levels[key] in values[key] for key in values) for levels in named) != len(group):
        return ""
    telling = {key: texts for key, texts in values.items() if len(texts) < len({levels[key] for levels in named})}
    if max(map(len, telling.values()), default=0) > _MOST_NAMED:
        return ""
    return ", ".join(listed([named_level(key, texts[0]), *texts[1:]], "or") for key, texts in telling.items())


def _levels_of(answer: Answer, case: AnswerCase) -> Mapping[str, str]:
    """A case's levels, with the one compared with the reference."""
    return {**case.fixed, str(answer.factor): case.sides[1].level}


def _extent_of_all(cases: Sequence[AnswerCase]) -> str:
    if all(case.effect.is_exact for case in cases):
        return "all are exact"
    units = sorted({case.pairs for case in cases if not case.effect.is_exact})
    return f"{count_range(units)} repetition{'' if units[-1] == 1 else 's'} each"


def _would_take_all(cases: Sequence[AnswerCase]) -> str:
    worst = max(cases, key=lambda case: case.needed or 0)
    return _would_take(worst)
