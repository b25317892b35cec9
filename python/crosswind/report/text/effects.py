"""The words of answers: levels, what is compared, and by how much two levels differ."""

import math
import re
from collections.abc import Sequence

from crosswind.analysis.result import Answer, AnswerCase, AnswerSide, Interval
from crosswind.metrics import METRICS, STATISTICS, Metric, Per, metric_named
from crosswind.quantities import SHARE, TIME
from crosswind.report.text.format import (
    EXACT,
    SMALL_RATIO,
    exact_number,
    factor_and_level,
    interval,
    number,
    percent,
    quantity,
    scale_of,
    three_digits,
    with_unit,
)

FEW = 3
"""Repetitions below which a number has no interval, whatever it is."""

_BY_NAME = ("transport", "congestion_control", "network", "part", "client")
"""Last words of the keys whose levels are names that say by themselves what they are."""

_NEARLY_1 = (0.95, 1.05)
"""Ratios whose third digit may hide that they are not 1."""

_LEAST_NS = 1000.0
"""A time below it is no more than that beside one that is far longer."""

_FAR = 100
"""How many times one number is another one that is not read in its unit."""


def named_level(key: str, level: str) -> str:
    """A level as a sentence names it: "http3", "loss 5%", "window scaling on"."""
    return level if key.rsplit(".", 1)[-1] in _BY_NAME else factor_and_level(key, level)


def with_level(answer: Answer, level: str) -> str:
    """How a sentence says that cells have a level: "with http3", "in websocket-client"."""
    return f"{'in' if answer.factor == 'part' else 'with'} {named_level(answer.factor, level)}"


def with_levels(answer: Answer, of_levels: Sequence[str]) -> str:
    """Likewise of several levels: "with quic or http3", "with size 50, 100 or 1000"."""
    *others, last = of_levels
    return with_level(answer, f"{', '.join(others)} or {last}" if others else last)


def what_of(answer: Answer) -> str:
    """What is compared: "median page load time"; of a share, and of what is a mean by itself, its name alone."""
    metric = metric_of_answer(answer)
    title = metric.title if metric.title[1:2].isupper() else metric.title[:1].lower() + metric.title[1:]
    if metric.name not in METRICS:
        return "share of exchanges that failed"
    title = title.replace(", a message", " for each message")
    return (
        title
        if metric.unit is SHARE or metric.per is Per.MESSAGE
        else f"{STATISTICS[answer.statistic].heading} {title}"
    )


def effect_text(answer: Answer, effect: Interval) -> str:
    """An effect with its interval: "0.91 [0.84, 0.98]", "−3.1 [−3.4, −2.8] ms"."""
    if answer.scale == "ratio":
        return interval(effect)
    divisor, unit = effect_scale(answer, effect)
    return with_unit(interval(effect, divisor), unit)


def value_text(answer: Answer, side: AnswerSide, beside: AnswerSide | None = None) -> str:
    """What was measured of one level, with its unit; of few repetitions from the smallest to the largest.

    Args: beside: the level that it is read with, so that both are in one unit unless they are far apart.
    """
    metric = metric_of_answer(answer)
    if metric.unit is SHARE and not side.value.is_exact:
        ends = side.value.spread if side.value.units < FEW else None
        return " to ".join(dict.fromkeys(map(percent, ends or (side.value.value,))))
    known = [one.value.value for one in (side, beside) if one is not None and one.value.value]
    is_near = len(known) < 2 or max(known) < _FAR * min(known)
    if not is_near and metric.unit is TIME and max(side.value.spread or (side.value.value or _LEAST_NS,)) < _LEAST_NS:
        return f"less than {quantity(_LEAST_NS, TIME.name)}"
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
    """By how much the levels of a case differ, in words."""
    other, reference = (with_level(answer, side.level) for side in (case.other, case.reference))
    sides = case.other, case.reference
    texts = [value_text(answer, side, beside) for side, beside in zip(sides, reversed(sides), strict=True)]
    values = f"({texts[0]} against {texts[1]})"
    effect = case.effect
    value = effect.value or 0.0
    if _is_same(answer, case):
        return f"{other} is the same as {reference} ({value_text(answer, case.other)})"
    if answer.scale == "difference":
        return f"{other} {_differs(answer, effect)} {reference} {values}"
    if 0 < value < SMALL_RATIO:
        turned = f"({texts[1]} against {texts[0]})"
        return f"{reference} is {_bare(interval(inverse(effect)))} times that {other} {turned}"
    return f"{other} is {_bare(interval(effect))} times that {reference} {values}"


def _is_same(answer: Answer, case: AnswerCase) -> bool:
    """Whether both levels have the same number every time."""
    every_time = case.constant or case.effect.is_exact
    return every_time and case.effect.value == (1.0 if answer.scale == "ratio" else 0.0)


def _differs(answer: Answer, effect: Interval) -> str:
    """A difference: "is 3.1 ms [2.8, 3.4] lower than"; with its sign where its interval has both."""
    divisor, unit = effect_scale(answer, effect)
    value = effect.value or 0.0
    if effect.low is not None and effect.high is not None and effect.low <= 0 <= effect.high:
        return f"differs by {_bare(interval(effect, divisor))} {unit} from that"
    sign = -1.0 if value < 0 else 1.0
    low, high = (effect.low, effect.high) if value >= 0 else (effect.high, effect.low)
    turned = effect.model_copy(
        update={
            "value": sign * value,
            "low": None if low is None else sign * low,
            "high": None if high is None else sign * high,
        }
    )
    return f"is {_bare(interval(turned, divisor))} {unit} {'lower' if value < 0 else 'higher'} than"


def _bare(text: str) -> str:
    """An estimate without what the rest of the sentence says of it."""
    exact = text.removesuffix(f" {EXACT}")
    return f"exactly {exact}" if exact != text else text.replace(" (no interval)", "")


def margin_words(answer: Answer, case: AnswerCase) -> str:
    """What the effect is beside the smallest one that matters."""
    if answer.margin is None or answer.bound is None or case.effect.value is None:
        return ""
    if case.verdict == "cannot tell":
        return f", where {margin_text(answer)} would matter"
    bound = 1 + answer.bound if answer.scale == "ratio" else answer.bound
    value = case.effect.value
    least = 1 / bound if answer.scale == "ratio" else -bound
    if _is_same(answer, case):
        return ""
    near = least < value < bound
    return f", {'less' if near else 'more'} than the {margin_text(answer)} that matters"


def margin_text(answer: Answer) -> str:
    """The smallest effect that matters: "200 ms", "25 %", of a difference of shares "4 percentage points"."""
    parts = re.fullmatch(r"\s*([\d.]+)\s*(\D*)", answer.margin or "")
    if parts is None:
        return answer.margin or ""
    is_of_shares = answer.unit == SHARE.name and answer.scale == "difference" and parts[2].strip() == "%"
    return f"{parts[1]} {'percentage points' if is_of_shares else parts[2]}".rstrip()


def range_text(low: float, high: float) -> str:
    """From a positive number to a larger one, with as many decimals as the larger deserves: "0.15 to 2.86"."""
    decimals = max(0, 2 - math.floor(math.log10(high))) if high > 0 else 0
    texts = [f"{end:.{decimals}f}" for end in (low, high)]
    if low > 0 and not texts[0].strip("0."):
        texts[0] = three_digits(low)
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def ratios_text(low: float, high: float) -> str:
    """From a ratio to a larger one: both with the same decimals, unless one of them is small or they are far apart."""
    if low < SMALL_RATIO or high > 10 * low:
        texts = [number_of_ratio(end) for end in (low, high)]
    else:
        decimals = max(0, 2 - math.floor(math.log10(low)))
        if any(_NEARLY_1[0] < end < _NEARLY_1[1] for end in (low, high)):
            decimals = max(decimals, 3)
        texts = [f"{end:.{decimals}f}" for end in (low, high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def number_of_ratio(value: float) -> str:
    """A ratio with three digits; near 1 four, for the third may hide that it is not 1; a small one as "1/97.1"."""
    if 0 < value < SMALL_RATIO:
        return f"1/{1 / value:#.3g}".rstrip(".")
    return f"{value:#.{4 if _NEARLY_1[0] < value < _NEARLY_1[1] else 3}g}".rstrip(".")


def effect_scale(answer: Answer, *effects: Interval) -> tuple[float, str]:
    """The divisor and the unit of differences; of shares percentage points."""
    if answer.unit == "1":
        return 0.01, "percentage points"
    ends = [end for effect in effects for end in (effect.value, effect.low, effect.high) if end is not None]
    return scale_of([max(ends, key=abs, default=None)], answer.unit)


def inverse(effect: Interval) -> Interval:
    """The ratio the other way round."""

    def turned(end: float | None) -> float | None:
        return None if not end else 1 / end

    ends = {"value": turned(effect.value), "low": turned(effect.high), "high": turned(effect.low)}
    spread = effect.spread and all(effect.spread) and (1 / effect.spread[1], 1 / effect.spread[0])
    return effect.model_copy(update={**ends, "spread": spread or None})


def metric_of_answer(answer: Answer) -> Metric:
    """The metric that an answer is about."""
    metric = metric_named(answer.metric)
    assert metric is not None  # The study was checked.
    return metric
