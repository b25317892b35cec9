"""A run's last line: the ratio between two levels' speeds.

webtransport is 1.02 [1.01, 1.03] times as fast as websocket
"""

import re

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import Metric, Per
from crosswind.decisions.statement import more_than
from crosswind.findings.question.result import Answer, AnswerCase
from crosswind.findings.question.sentence import answered, place_name
from crosswind.findings.question.statement import option_of
from crosswind.findings.question.words import metric_of_answer
from crosswind.report.text.effects import inverse, named_level
from crosswind.report.text.format import count, interval
from crosswind.text.quantities import RATE, TIME

MOST_LINES = 4


def last_lines(result: Result) -> list[str]:
    """A line for each case of the first question, if it compares times or rates; the others are counted."""
    answer = next(iter(answered(result)), None)
    if answer is None or answer.scale != "ratio" or not _is_speed(metric_of_answer(answer)):
        return []
    known = [case for case in answer.cases if case.effect.value and case.reference]
    lines = [_line(answer, case) for case in known[:MOST_LINES]]
    if len(known) > len(lines):
        lines.append(f"… and {count(len(known) - len(lines))} more: `crosswind report --all`")
    return lines


def _is_speed(metric: Metric) -> bool:
    """Whether a metric means speed, by time or rate: counts beside exchanges do not."""
    return metric.unit in (TIME, RATE) and metric.per is not Per.COUNTED


def _line(answer: Answer, case: AnswerCase) -> str:
    names = [named_level(str(answer.factor), side.level) for side in case.sides[::-1]]
    speed = case.effect if metric_of_answer(answer).unit is RATE else inverse(case.effect)
    if (speed.value or 1.0) < 1:
        names, speed = names[::-1], inverse(speed)
    at = f"{place}: " if (place := place_name(answer, case)) else ""
    times = interval(speed).removesuffix(" exact")
    exactly = "exactly " if case.effect.is_exact else ""
    most = " (median of the repetitions)" if case.effect.is_sign_test and not case.constant else ""
    numbers, _, every = times.removesuffix(")").partition(" (")
    if all(float(number) == 1 for number in re.findall(r"[\d.]+", numbers)):
        shown = ", ".join(filter(None, ["" if speed.value == 1 else f"{numbers} times", every]))
        said = f"{at}{names[0]} is {exactly}as fast as {names[1]}{f' ({shown})' if shown else ''}"
    else:
        said = f"{at}{names[0]} is {exactly}{times} times as fast as {names[1]}{most}"
    return said + (_deciding_option(case) if case.verdict == "cannot tell" else "")


def _deciding_option(case: AnswerCase) -> str:
    more = more_than(case.needed, case.pairs)
    option = "" if more is None else f"; {option_of(more, [case])} would decide"
    return f", but this run is inconclusive{option}"
