"""Questions with their answers and figures, and documents' statements with the deciding numbers."""

from collections.abc import Iterable, Iterator

from crosswind.analysis.result import Result
from crosswind.decisions.statement import OF_STATEMENT
from crosswind.findings.question.fastest import last_lines
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.question.sentence import answered, case_name, effect_in_list, has_reference, not_asked
from crosswind.findings.question.statement import (
    OF_QUESTION,
    compared,
    decisive_case,
    more_text,
    needed,
    number_text,
)
from crosswind.findings.question.verdicts import DEPENDS, lines, statements_of, tally_of
from crosswind.findings.question.words import effect_text, value_text, what_of
from crosswind.report.page import Chart, Panels, Section, SectionPlace, Sentence, Tone
from crosswind.report.showing import Showing, verdict_row
from crosswind.report.tables.table import Column, Shown, Table, names, numbers, sentences, words
from crosswind.report.text.format import EXACT, NOTHING, count, count_of, levels, p_value

TONES = {"yes": Tone.GOOD, "no": Tone.BAD, "cannot tell": Tone.DOUBTFUL, "mixed": Tone.DOUBTFUL}

_MOST_FAILING = 3
"""Maximum statements named on a terminal's first screen."""

_HOW_TO_READ = (
    "Each verdict follows from a rule that the study declares, by the bounds of intervals. “Holds”: in every "
    "comparison the whole 95 % interval lies in the range that the statement needs, corrected by Holm's method over "
    "the statements of its document. “Does not hold”: in at least one the whole interval, corrected over all "
    "comparisons of its document, lies outside of it. “Cannot tell”: inconclusive."
)


_DECISION = [
    *numbers("repetitions", "p (Holm)"),
    *words("answer"),
    *numbers("repetitions that would decide"),
]


def answer_table(answer: Answer) -> Table | None:
    """A row for each case; None where the sentence says it all, as of a single one."""
    if len(answer.cases) < 2:
        return None
    if not has_reference(answer):
        return _number_table(answer)
    others = dict.fromkeys(case.sides[1].level for case in answer.cases)
    reference = answer.cases[0].sides[0].level
    other = next(iter(others)) if len(others) == 1 else "the other"
    kind = "ratio" if answer.scale == "ratio" else "difference"
    columns = [
        *names("case"),
        *numbers(reference, other, f"{kind} [95 %]"),
        *_DECISION,
    ]
    rows = [
        [
            case_name(answer, case),
            *(value_text(answer, side) for side in case.sides),
            effect_text(answer, case.effect),
            *_decision(case),
        ]
        for case in answer.cases
    ]
    return _case_table(answer, columns, rows)


def _number_table(answer: Answer) -> Table:
    """A question about single cells, about a law, or about every two levels: each case's deciding number."""
    columns = [
        *names("at", "compared"),
        *numbers("measured [95 %]", "needed"),
        *_DECISION,
    ]
    return _case_table(answer, columns, [[*_number(answer, case), *_decision(case)] for case in answer.cases])


def _number(answer: Answer, case: AnswerCase) -> list[str]:
    """Where, the levels, the deciding number, and its required range."""
    place = levels(case.fixed) if case.fixed else NOTHING
    return [place, compared(answer, case), number_text(answer, case), needed(answer)]


def _decision(case: AnswerCase) -> list[str]:
    return [
        count(case.pairs) if not case.effect.is_exact else EXACT,
        p_value(case.p_no if case.verdict == "no" else case.p_yes),
        OF_QUESTION[case.verdict].lower(),
        NOTHING if case.needed is None else count(case.needed),
    ]


def _case_table(answer: Answer, columns: list[Column], rows: list[list[str]]) -> Table:
    reasons = dict.fromkeys(case.reason for case in answer.cases if case.reason)
    notes = [f"Without an interval: {reason}." for reason in reasons]
    return Table(f"The {count(len(rows))} cases: {what_of(answer)}", columns, rows, footnotes=notes, shown=Shown.ASIDE)


def statement_tables(result: Result) -> list[Table]:
    """A table with all verdicts on documents' statements, and one with every comparison behind them."""
    statements = _statements(result)
    if not statements:
        return []
    rows = [
        verdict_row(str(each.sentence), each.source, ". ".join(filter(None, (each.why_open.rstrip("."), each.note))))
        for each in statements
    ]
    columns = [*names("verdict"), *sentences("statement, and what was measured", "source")]
    verdicts = Table("What documents say", columns, rows, footnotes=[_HOW_TO_READ])
    comparisons = [row for statement in statements for row in _comparisons(statement)]
    if not comparisons:
        return [verdicts]
    heads = [*names("statement", "at", "compared"), *numbers("measured [95 %]", "needed"), *words("verdict")]
    return [verdicts, Table("Every comparison of the statements", heads, comparisons, shown=Shown.FOLDED)]


def _comparisons(statement: Answer) -> list[list[str]]:
    first = decisive_case(statement)
    return [
        [_named(statement), *_number(statement, case), OF_STATEMENT[case.verdict].lower()]
        for case in sorted(statement.cases, key=lambda case: case is not first)
    ]


def _named(statement: Answer) -> str:
    return f"{statement.asks} With {statement.choice}" if statement.choice else statement.asks


def _statements(result: Result) -> list[Answer]:
    return [answer for answer in result.of(Answer) if answer.source]


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    for answer in answered(result):
        table = answer_table(answer)
        yield Section(
            answer.asks,
            sentences=[Sentence(str(answer.sentence), TONES[answer.verdict], short=_short(answer))],
            charts=_charts(answer, result, has_charts),
            tables=[table] if table else [],
            note=answer.note or "",
            place=SectionPlace.ANSWERS,
        )
    if tables := statement_tables(result):
        yield Section(tables[0].title, tables=tables)


def _short(answer: Answer) -> str:
    """The verdict with the effect; for an undecided question also the deciding option."""
    verdict = str(answer.sentence).partition(":")[0]
    if len(answer.cases) == 1 and has_reference(answer) and answer.cases[0].effect.value is not None:
        verdict += f" ({effect_in_list(answer, answer.cases[0])})"
    if answer.verdict != "cannot tell" or not answer.cases:
        return f"{verdict}{more_text(answer.cases).replace('; where it cannot tell, ', ': ', 1)}."
    case = decisive_case(answer)
    known = number_text(answer, case) if case is not None and not has_reference(answer) else NOTHING
    why = known if known != NOTHING else case.effect.reason if case else None
    return f"{verdict}{f': {why}' if why else ''}{more_text(answer.cases)}."


def _charts(answer: Answer, result: Result, is_drawn: bool) -> list[Panels]:
    if not is_drawn:
        return [Panels([Chart(answer.figure)], 1)] if answer.figure else []
    # Altair takes a while to import.
    from crosswind.findings.question.chart import answer_chart

    chart = answer_chart(answer, result)
    return [Panels([chart], 1)] if chart else []


def _remarks(result: Result) -> Iterator[Sentence]:
    absent = not_asked(result)
    if absent:
        yield Sentence(absent)


def _banners(result: Result) -> Iterator[Sentence]:
    """What became of documents' statements: the counts, and those that do not hold, or with some choices alone."""
    statements = statements_of(result.of(Answer))
    if not statements:
        return
    yield Sentence(tally_of(statements))
    said = list(lines(statements))
    first = next((line for line in said if line.startswith(DEPENDS)), None)
    for line in said[:_MOST_FAILING]:
        yield Sentence(line) if line == first else Sentence(line, shown=Shown.TERMINAL)
    if len(said) > _MOST_FAILING:
        more = count_of(len(said) - _MOST_FAILING, "more statement")
        does = "does" if len(said) - _MOST_FAILING == 1 else "do"
        yield Sentence(f"{more} {does} not hold in all cells: `crosswind report --all`.", shown=Shown.TERMINAL)


def _metrics(result: Result) -> Iterable[tuple[str, str]]:
    asked = result.of(Answer)
    return [(answer.metric, answer.statistic) for answer in sorted(asked, key=lambda answer: bool(answer.source))]


SHOWING = Showing(_sections, _banners, remarks=_remarks, answers=answered, conclusion=last_lines, metrics=_metrics)
