"""A run's last lines: for each case of its first question, which level is better, and in what."""

from collections.abc import Mapping

from crosswind.analysis.result import CellResult, Result
from crosswind.decisions.statement import more_than
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.question.sentence import answered, place_name
from crosswind.findings.question.statement import option_of
from crosswind.findings.question.words import is_below_margin, margin_text, metric_of_answer
from crosswind.report.text.format import count
from crosswind.report.text.overall import are_equal, is_speed, sentence_of_cells

MOST_LINES = 6


def last_lines(result: Result) -> list[str]:
    """A line for each case of the first question, if it compares times or rates; the others are counted."""
    answer = next(iter(answered(result)), None)
    if answer is None or answer.scale != "ratio" or not is_speed(metric_of_answer(answer)):
        return []
    known = [case for case in answer.cases if case.reference]
    cells = {cell.cell: cell for cell in result.cells}
    lines = [_line(answer, case, cells) for case in known[:MOST_LINES]]
    if len(known) > len(lines):
        lines.append(f"… and {count(len(known) - len(lines))} more: `crosswind report --all`")
    return lines


def _line(answer: Answer, case: AnswerCase, cells: Mapping[int, CellResult]) -> str:
    levels = [(side.level, cells[side.cell]) for side in case.sides]
    at = f"{place}: " if (place := place_name(answer, case)) else ""
    said = sentence_of_cells(str(answer.factor), levels, metric_of_answer(answer), answer.statistic, case.effect)
    if case.verdict == "cannot tell":
        return f"{at}{said}{_deciding_option(case)}"
    if case.verdict == "yes" and answer.yes != "same" and are_equal(case.effect.value or 0.0):
        return f"{at}{said} within 0.1 %"
    near = is_below_margin(answer, case) and not are_equal(case.effect.value or 0.0)
    return f"{at}{said}{f', less than the {margin_text(answer)} that matters' if near else ''}"


def _deciding_option(case: AnswerCase) -> str:
    is_endless = case.needed is not None and case.needed <= case.pairs and case.effect.reason is not None
    is_open = not is_endless and all(side.valid for side in case.sides)
    more = more_than(case.needed, case.pairs) if is_open else None
    option = "" if more is None else f"; {option_of(more, [case])} would decide"
    return f" (inconclusive{option})"
