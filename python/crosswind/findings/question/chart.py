"""An answer's chart: the compared levels, each with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt

from crosswind.analysis.result import Result
from crosswind.findings.figure.chart import figure_chart
from crosswind.findings.figure.judge import Figure
from crosswind.findings.question.result import Answer, AnswerCase, AnswerSide
from crosswind.findings.question.sentence import has_reference, place_name
from crosswind.findings.question.words import effect_scale, margin_text, metric_of_answer, value_text, what_of
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.forest import forest, forest_row, pair_name
from crosswind.report.charts.panels import MAX_BARS
from crosswind.report.charts.rows import row_axis, row_labels, rows_height
from crosswind.report.charts.style import GREY, Along, inline, is_log, specification, tips
from crosswind.report.page import Chart
from crosswind.report.text.effects import named_level
from crosswind.report.text.format import interval, varied_levels, with_unit

MAX_CASES = 12
"""Maximum cases drawn; the table has all."""


def answer_chart(answer: Answer, result: Result) -> Chart | None:
    """The figure named by the study for an answer, else one with the comparison; None without any number."""
    named = next((figure for figure in result.of(Figure) if figure.title == answer.figure), None)
    if named is not None:
        return figure_chart(named, result)
    if not has_reference(answer):
        return _forest(answer)
    return _drawn(answer, Colours(cell.levels for cell in result.cells))


def _forest(answer: Answer) -> Chart | None:
    """Of every two levels that are compared, how far they lie apart beside the margin."""
    pairs = [case for case in answer.cases if case.reference is not None and case.effect.value is not None]
    if answer.scale not in ("ratio", "difference") or not pairs:
        return None
    is_ratio = answer.scale == "ratio"
    divisor, unit = (1.0, "") if is_ratio else effect_scale(answer, *(case.effect for case in pairs))
    varied = varied_levels(case.fixed for case in pairs)
    rows = []
    for case in pairs[:MAX_BARS]:
        reference, other = (side.level for side in case.sides)
        fixed = {key: case.fixed[key] for key in varied if key in case.fixed}
        name = pair_name(str(answer.factor), other, reference, fixed)
        rows.append(forest_row(name, case.effect, divisor, case.verdict, answer.statistic))
    nothing = 1.0 if is_ratio else 0.0
    margin = tuple(nothing if end is None else end / divisor for end in (answer.low, answer.high))
    what = f"ratio, {what_of(answer)}" if is_ratio else f"difference, {what_of(answer)}, {unit}"
    drawing = forest(rows, what, (margin[0], margin[1]), log=is_ratio)
    left = len(pairs) - len(rows)
    return Chart("", drawing, (f"Shaded: the margin.{f' {left} more are in the table.' if left else ''}",))


@dataclass(frozen=True)
class _Mark:
    """A level in a case: its number with its interval's ends; without an interval both are the number.

    Attributes: least, most: the margin around the reference; both the number without a margin.
    """

    row: str
    colour: str
    value: float
    low: float
    high: float
    least: float
    most: float
    estimate: str
    repetitions: int


def _drawn(answer: Answer, colours: Colours) -> Chart | None:
    shown = answer.cases[:MAX_CASES]
    sides = [(case, side) for case in shown for side in case.sides if side.value.value is not None]
    known = [end for _, side in sides for end in side.value.limits or ()]
    if not known:
        return None
    metric = metric_of_answer(answer)
    divisor, unit = metric.unit.scale_for(known)
    marks = _marks(answer, sides, divisor, unit)
    log = is_log(known, metric.unit, metric.axis)
    title = ", ".join(filter(None, (what_of(answer), unit)))
    along = Along.of(title, log=log, zero=False, nice=not log, padding=10 if log else 0)
    rows = list(dict.fromkeys(mark.row for mark in marks))
    base = alt.Chart(inline(marks)).encode(
        y=alt.Y("row:N", title=None, sort=rows, axis=row_axis()),
        color=colours.by("colour", answer.factor, (mark.colour for mark in marks), labelled=True),
        tooltip=tips("row", "estimate", "repetitions"),
    )
    margin = base.mark_rule(strokeWidth=14, opacity=0.18, color=GREY).encode(
        x=along.x("least"), x2="most:Q", color=alt.value(GREY)
    )
    drawing = [
        *([margin] if answer.bound is not None else []),
        base.mark_rule(strokeWidth=2.2).encode(x=along.x("low"), x2="high:Q"),
        base.mark_point(size=80, filled=True, opacity=1).encode(x=along.x("value")),
    ]
    left = len(answer.cases) - len(shown)
    notes = [
        *([f"Shaded: within {margin_text(answer)} of the reference."] if answer.bound is not None else []),
        *([f"{left} more cases are in the table."] if left else []),
    ]
    return Chart("", specification(drawing, rows_height(rows)), (_how_to_read(what_of(answer), sides), *notes))


def _marks(answer: Answer, sides: Sequence[tuple[AnswerCase, AnswerSide]], divisor: float, unit: str) -> list[_Mark]:
    marks = []
    for case, side in sides:
        low, high = side.value.limits or (side.value.value, side.value.value)
        if side.value.spread is not None and not side.value.is_whole:
            low, high = side.value.spread
        ends = (side.value.value, low, high, *_margin(answer, case, side))
        value, start, end, least, most = (float(f"{(number or 0.0) / divisor:.6g}") for number in ends)
        text = with_unit(interval(side.value, divisor), unit) if side.value.is_whole else value_text(answer, side)
        row = " · ".join(filter(None, (named_level(str(answer.factor), side.level), place_name(answer, case))))
        marks.append(_Mark(row, side.level, value, start, end, least, most, text, side.value.units))
    labels = row_labels(mark.row for mark in marks)
    return list({mark.row: replace(mark, row=labels[mark.row]) for mark in marks}.values())


def _margin(answer: Answer, case: AnswerCase, side: AnswerSide) -> tuple[float, float]:
    """The numbers within the margin of the reference; the side's own without a margin."""
    reference, own = case.sides[0].value.value, side.value.value or 0.0
    if answer.bound is None or reference is None:
        return own, own
    if answer.scale == "ratio":
        return reference / (1 + answer.bound), reference * (1 + answer.bound)
    return reference - answer.bound, reference + answer.bound


def _how_to_read(what: str, sides: Sequence[tuple[AnswerCase, AnswerSide]]) -> str:
    values = [side.value for _, side in sides]
    if all(value.is_exact for value in values):
        return "Every number is exact."
    lines = {
        "its 95 % interval": any(value.is_whole for value in values),
        "half of it, where only one limit is known": any(
            (value.low is None) != (value.high is None) for value in values
        ),
        "the range of the repetitions, where they are too few for an interval": any(
            value.spread and value.spread[0] < value.spread[1] for value in values
        ),
    }
    named = [text for text, is_there in lines.items() if is_there]
    if named:
        return f"Dot: the {what}. Line: {', '.join(named)}."
    same = all(value.units > 1 for value in values if not value.is_exact)
    return f"Dot: the {what}, {'the same in every repetition' if same else 'of a single repetition'}."
