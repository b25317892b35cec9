"""Sentences for documents' statements, and for questions about single cells, laws or models, made by rule."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

from crosswind.catalog.factors import factor_scale
from crosswind.decisions.statement import OF_STATEMENT, PLAIN, Range, more_than
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.question.words import metric_of_answer, what_of
from crosswind.report.text.deciding import MOST_REPETITIONS, about_more, rounded
from crosswind.report.text.format import (
    EXACT,
    MINUS,
    NOTHING,
    count,
    factor_name,
    interval,
    named_levels,
    number,
    quantity,
    scale_of,
    three_digits,
    times,
    with_unit,
)
from crosswind.text.lists import begun

OF_QUESTION = {"yes": "Yes", "no": "No", "cannot tell": "Cannot tell", "mixed": "It depends"}


def statement_sentence(answer: Answer) -> str:
    """The verdict, the document's statement, the deciding number, and its required range."""
    case = decisive_case(answer)
    if answer.source:
        given = f" with {answer.choice}" if answer.choice else ""
        says = f"{OF_STATEMENT[answer.verdict]}{given}: {answer.asks.rstrip('.')}. "
    else:
        says = f"{OF_QUESTION[answer.verdict]}: "
    if case is None:
        return f"{says}{begun(str(answer.reason)) if answer.source else answer.reason}."
    reasons = (answer.reason, case.effect.reason) if answer.verdict == "cannot tell" else ()
    why = "".join(f"; {reason}" for reason in reasons if reason)
    why = f"; what was run agrees{why}" if answer.agrees_so_far else why
    why += f"; {without_ratio(answer)}" if answer.instant else ""
    most = " (sign test)" if case.effect.is_sign_test else ""
    needs = f"{'the statement needs' if answer.source else 'a yes needs'} {needed(answer)}{_rest(answer)}"
    more = ""
    if answer.verdict == "cannot tell" and not answer.reason:
        is_yes_alone = all(decided.verdict == "yes" for decided in answer.cases)
        alone = "; by itself it would hold, but not among all statements of its document" if is_yes_alone else ""
        more = alone + more_text(answer.cases, of_all=is_yes_alone)
    said = f"{_measured(answer, case)}{most}"
    if answer.source:
        return f"{says}{begun(said)}; {needs}{why}{more}."
    return f"{says}{said}. {begun(needs)}{why}{more}."


def without_ratio(answer: Answer) -> str:
    """The places without a ratio: "delay 0ms: both take less than 1 µs, no ratio"."""
    return f"{'; '.join(answer.instant)}: both take less than 1 µs, no ratio"


def decisive_case(answer: Answer) -> AnswerCase | None:
    """The shown case: of several contradictions the middle one, else the case nearest to the end of the range."""
    cases = [case for case in answer.cases if case.verdict == answer.verdict] or answer.cases
    ordered = sorted(cases, key=lambda case: _room(answer, case))
    typical = (len(ordered) - 1) // 2 if answer.verdict == "no" else 0
    return ordered[typical] if ordered else None


def compared(answer: Answer, case: AnswerCase) -> str:
    """A case's two levels: "500p / 50p", "25mbit − 6mbit", "1% to 2%"; a dash for a single cell."""
    if case.reference is None:
        return NOTHING
    reference, other = (side.level for side in case.sides)
    if answer.scale in ("exponent", "slope"):
        return f"{reference} to {other}"
    return f"{other} {'−' if answer.scale == 'difference' else '/'} {reference}"


def number_text(answer: Answer, case: AnswerCase) -> str:
    """A case's number with its interval and its unit."""
    if case.effect.value is None and case.effect.low is None:
        return NOTHING
    divisor, unit = _scale(answer, case)
    return with_unit(interval(case.effect, divisor), unit)


def needed(answer: Answer) -> str:
    """Its number's required range."""
    return Range(answer.low, answer.high, answer.inside, answer.is_open).in_words(partial(_bound, answer))


def tally(answer: Answer) -> str:
    """How many comparisons bear an answer out, contradict it, and cannot tell."""
    counts: Counter[str] = Counter(case.verdict for case in answer.cases)
    return ", ".join(
        f"{count(counts[verdict])} {one if counts[verdict] == 1 else several}"
        for verdict, (one, several) in _TALLY.items()
        if counts[verdict]
    )


_TALLY = {
    "yes": ("bears it out", "bear it out"),
    "no": ("contradicts it", "contradict it"),
    "cannot tell": ("cannot tell", "cannot tell"),
}
"""Verbs for one comparison, and for several."""


def more_text(cases: Sequence[AnswerCase], *, of_all: bool = False) -> str:
    """Further repetitions needed by undecided cases. Args: of_all: also by those decided by themselves."""
    open_ = [case for case in cases if of_all or case.verdict == "cannot tell"]
    where = "where it cannot tell, " if len(cases) > len(open_) else ""
    known = [more for case in open_ if case.pairs and (more := more_than(case.needed, case.pairs)) is not None]
    endless = any(case.needed is None and case.p_yes is not None for case in open_)
    if not known and not endless:
        return ""
    least, most = min(known, default=MOST_REPETITIONS + 1), max(known, default=0)
    if least > MOST_REPETITIONS:
        return f"; {where}to decide about a difference this small would take over {count(MOST_REPETITIONS)} repetitions"
    if endless or most > MOST_REPETITIONS:
        return f"; {where}{count(rounded(least))} to over {count(MOST_REPETITIONS)} more repetitions would decide"
    if rounded(most) > 2 * rounded(least):
        several = f"{count(rounded(least))} to {count(rounded(most))} more repetitions"
        return f"; {where}{several} would decide ({option_of(most, open_)})"
    return f"; {where}{about_more(most)} would decide ({option_of(most, open_)})"


def option_of(more: int, cases: Sequence[AnswerCase]) -> str:
    """The option for so many more repetitions of some cases."""
    return asking_for(rounded(more) + max(case.pairs for case in cases), cases)


def asking_for(repetitions: int, cases: Sequence[AnswerCase]) -> str:
    """How to ask for so many repetitions of some cases: by an option, as far as the study sets no limit to them."""
    limits = [case.at_most for case in cases if case.at_most is not None and case.at_most < repetitions]
    if not limits:
        return f"--repetitions {repetitions}"
    return f"--repetitions {repetitions}, with at_most = {min(limits)} raised in the study's [[repetitions]]"


def _measured(answer: Answer, case: AnswerCase) -> str:
    what = f"the median repetition's {what_of(answer)}" if case.effect.is_sign_test else what_of(answer)
    # What is common to all cases of a question stands in the question.
    told = [
        key
        for key in case.fixed
        if answer.source or any(key in other.fixed and other.fixed[key] != case.fixed[key] for other in answer.cases)
    ]
    named = named_levels({key: case.fixed[key] for key in told})
    effect, where = _effect_in_words(answer, case), f" ({named})" if named else ""
    if effect == NOTHING:
        return f"{what} has no number{where}"
    if answer.scale == "model-error":
        over = f"over {count(len(case.cells))} cells what {answer.model} predicts of {what}{where}"
        return f"{over} is off by {effect} times what was measured, on average"
    if answer.scale == "model":
        broken = f", outside its range ({case.violated[0]})" if case.violated else ""
        return f"{what} is {times(case.effect, effect)} what {answer.model} predicts{where}{broken}"
    if answer.scale == "value":
        return f"{what} is {effect}{where}"
    factor = factor_name(str(answer.factor))
    reference, other = (side.level for side in case.sides)
    clauses = {
        "ratio": f"{what} with {factor} {other} is {times(case.effect, effect)} that with {reference}",
        "difference": f"{what} with {factor} {other} less that with {reference} is {effect}",
        "exponent": f"from {factor} {reference} to {other} {what} follows the power {effect}",
        "slope": f"from {factor} {reference} to {other} {what} grows by {effect} for each {_step(answer)}",
    }
    return clauses[answer.scale] + where


def _effect_in_words(answer: Answer, case: AnswerCase) -> str:
    """As `number_text`, "exactly 1.5 s" for an exact one."""
    text = number_text(answer, case)
    return f"exactly {text.replace(f' {EXACT}', '')}" if case.effect.is_exact else text


def _step(answer: Answer) -> str:
    scale = factor_scale(str(answer.factor))
    return "step" if scale is None else f"{scale.unit} of {scale.title}"


def _rest(answer: Answer) -> str:
    return "" if len(answer.cases) == 1 else f" (of {count(len(answer.cases))} comparisons {tally(answer)})"


def _room(answer: Answer, case: AnswerCase) -> float:
    """How far a case's value is from the end of the range, positive where it is on the statement's side."""
    value = case.effect.value if case.effect.value is not None else case.effect.low
    if value is None:
        return math.inf
    rooms = []
    if answer.low is not None:
        rooms.append(_distance(answer, answer.low, value))
    if answer.high is not None:
        rooms.append(_distance(answer, value, answer.high))
    return min(rooms) if answer.inside else -min(rooms)


def _distance(answer: Answer, start: float, end: float) -> float:
    if answer.scale in ("ratio", "model") and start > 0 and end > 0:
        return math.log(end / start)
    return end - start


def _scale(answer: Answer, case: AnswerCase) -> tuple[float, str]:
    if answer.scale in PLAIN:
        return 1.0, ""
    if answer.scale == "difference" and metric_of_answer(answer).is_share:
        return 0.01, "percentage points"
    return scale_of([case.effect.value if case.effect.value is not None else case.effect.low], answer.unit)


def _bound(answer: Answer, end: float) -> str:
    if answer.scale in PLAIN:
        return three_digits(end)
    if answer.scale == "difference" and metric_of_answer(answer).is_share:
        return f"{three_digits(100 * end)} percentage points".replace("-", MINUS)
    return number(0.0) if end == 0 else quantity(end, answer.unit).replace("-", MINUS)
