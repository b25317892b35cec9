"""Words for answers: the compared number, and the difference between two levels."""

import re
from dataclasses import replace

from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, Per, metric_named
from crosswind.findings.question.result import Answer, AnswerCase, AnswerSide
from crosswind.report.text.effects import bare, inverse, named_level
from crosswind.report.text.format import (
    SMALL_RATIO,
    exact_number,
    interval,
    number,
    percent,
    quantity,
    scale_of,
    with_unit,
)
from crosswind.stats.differences import INSTANT_NS
from crosswind.stats.estimate import Interval
from crosswind.text.quantities import SHARE, TIME
from crosswind.text.units import NUMBER

FEW = 3
"""Repetitions below which no number has an interval."""

_FAR = 100
"""Ratio of two numbers from which they are read in different units."""


def with_level(answer: Answer, level: str) -> str:
    """A level in a sentence: "with http3", "in websocket-client"."""
    return f"{'in' if answer.factor == 'part' else 'with'} {named_level(str(answer.factor), level)}"


def what_of(answer: Answer) -> str:
    """The compared number: "median page load time"; for a share, and for a mean by nature, its name alone."""
    metric = metric_of_answer(answer)
    title = metric.title_in_sentence
    if metric.name not in METRICS:
        return "share of exchanges that failed"
    title = title.replace(", a message", " for each message")
    return (
        title
        if metric.unit is SHARE or metric.per in (Per.MESSAGE, Per.COUNTED)
        else f"{STATISTICS[answer.statistic].heading} {title}"
    )


def effect_text(answer: Answer, effect: Interval) -> str:
    """An effect with its interval: "0.91 [0.84, 0.98]", "−3.1 [−3.4, −2.8] ms"."""
    if answer.scale == "ratio":
        return interval(effect)
    divisor, unit = effect_scale(answer, effect)
    return with_unit(interval(effect, divisor), unit)


def value_text(answer: Answer, side: AnswerSide, beside: AnswerSide | None = None) -> str:
    """One level's measurement, with its unit; with few repetitions from the smallest to the largest.

    Args: beside: the level read together with it: both share one unit unless they are far apart.
    """
    metric = metric_of_answer(answer)
    if metric.unit is SHARE and not side.value.is_exact:
        ends = side.value.spread if side.value.units < FEW else None
        return " to ".join(dict.fromkeys(map(percent, ends or (side.value.value,))))
    known = [compared.value.value for compared in (side, beside) if compared is not None and compared.value.value]
    is_near = len(known) < 2 or max(known) < _FAR * min(known)
    if not is_near and metric.unit is TIME and max(side.value.spread or (side.value.value or INSTANT_NS,)) < INSTANT_NS:
        return f"less than {quantity(INSTANT_NS, TIME.name)}"
    divisor, unit = scale_of(known if is_near else [side.value.value], metric.unit.name)
    ends = side.value.spread
    if side.value.value is None:
        return f"over {number(side.value.low, divisor)} {unit}".rstrip() if side.value.low is not None else "no value"
    if ends is not None and side.value.units < FEW and number(ends[0], divisor) != number(ends[1], divisor):
        return f"{number(ends[0], divisor)} to {number(ends[1], divisor)} {unit}".rstrip()
    resolution = None if side.value.low is None or side.value.high is None else side.value.high - side.value.low
    if side.value.is_exact:
        return f"{exact_number(side.value.value, divisor)} {unit}".rstrip()
    return f"{number(side.value.value, divisor, resolution=resolution)} {unit}".rstrip()


def clause(answer: Answer, case: AnswerCase) -> str:
    """The difference between a case's levels, in words."""
    sides = case.sides[::-1]
    other, reference = (with_level(answer, side.level) for side in sides)
    texts = [value_text(answer, side, beside) for side, beside in zip(sides, reversed(sides), strict=True)]
    values = f"({texts[0]} against {texts[1]})"
    effect = replace(case.effect, low=None, high=None, spread=None) if case.constant else case.effect
    value = effect.value or 0.0
    if is_same(answer, case):
        return f"{other} is the same as {reference} ({value_text(answer, sides[0])})"
    if answer.scale == "difference":
        return f"{other} {_differs(answer, effect)} {reference} {values}"
    if 0 < value < SMALL_RATIO:
        turned = f"({texts[1]} against {texts[0]})"
        return f"{reference} is {bare(interval(inverse(effect)))} times that {other} {turned}"
    return f"{other} is {bare(interval(effect))} times that {reference} {values}"


def is_same(answer: Answer, case: AnswerCase) -> bool:
    """Whether both levels have the same number every time."""
    every_time = case.constant or case.effect.is_exact
    return every_time and case.effect.value == (1.0 if answer.scale == "ratio" else 0.0)


def _differs(answer: Answer, effect: Interval) -> str:
    """A difference: "is 3.1 ms [2.8, 3.4] lower than"; with its sign where its interval has both."""
    divisor, unit = effect_scale(answer, effect)
    value = effect.value or 0.0
    if effect.low is not None and effect.high is not None and effect.low <= 0 <= effect.high:
        return f"differs by {bare(interval(effect, divisor))} {unit} from that"
    sign = -1.0 if value < 0 else 1.0
    low, high = (effect.low, effect.high) if value >= 0 else (effect.high, effect.low)
    ends = (None if end is None else sign * end for end in (low, high))
    turned = replace(effect, value=sign * value, low=next(ends), high=next(ends))
    return f"is {bare(interval(turned, divisor))} {unit} {'lower' if value < 0 else 'higher'} than"


def margin_words(answer: Answer, case: AnswerCase) -> str:
    """The effect beside the smallest one worth noting."""
    if answer.margin is None or answer.bound is None or case.effect.value is None:
        return ""
    if case.verdict == "cannot tell":
        return f"{margin_text(answer)} would matter"
    if is_same(answer, case):
        return ""
    return f"{'less' if is_below_margin(answer, case) else 'more'} than the {margin_text(answer)} that matters"


def is_below_margin(answer: Answer, case: AnswerCase) -> bool:
    """Whether an effect is too small to matter, by the question's margin."""
    if answer.bound is None or case.effect.value is None:
        return False
    bound = 1 + answer.bound if answer.scale == "ratio" else answer.bound
    least = 1 / bound if answer.scale == "ratio" else -bound
    return least < case.effect.value < bound


def margin_text(answer: Answer) -> str:
    """The smallest effect worth noting: "200 ms", "25 %", for a difference of shares "4 percentage points"."""
    match = re.fullmatch(rf"\s*({NUMBER})\s*(\D*)", answer.margin or "")
    if match is None:
        return answer.margin or ""
    is_of_shares = answer.unit == SHARE.name and answer.scale == "difference" and match[2].strip() == "%"
    return f"{match[1]} {'percentage points' if is_of_shares else match[2]}".rstrip()


def effect_scale(answer: Answer, *effects: Interval) -> tuple[float, str]:
    """The divisor and the unit for differences; for shares percentage points."""
    if answer.unit == "1":
        return 0.01, "percentage points"
    ends = [end for effect in effects for end in (effect.value, effect.low, effect.high) if end is not None]
    return scale_of([max(ends, key=abs, default=None)], answer.unit)


def metric_of_answer(answer: Answer) -> Metric:
    """An answer's metric."""
    metric = metric_named(answer.metric)
    assert metric is not None  # The study was checked.
    return metric
