"""Intervals on other scales: a ratio as the exponent of a law, a difference as a slope, a number beside a model's."""

import math
from collections.abc import Callable

from crosswind.analysis.result import Interval


def exponent_of(ratio: Interval, at: float, other: float) -> Interval:
    """k, where y is proportional to x^k and y(other) / y(at) is the ratio. Args: at, other: 0 < at < other."""
    return _on_scale(ratio, lambda number: math.log(number) / math.log(other / at))


def per_step(difference: Interval, step: float) -> Interval:
    """A difference for each unit of x. Args: step: from the one x to the other, above 0."""
    return _on_scale(difference, lambda number: number / step)


def over_model(measured: Interval, predicted: float) -> Interval:
    """What was measured, divided by what a model predicts, which is above 0."""
    return _on_scale(measured, lambda number: number / predicted)


def _on_scale(of: Interval, rising: Callable[[float], float]) -> Interval:
    """An interval with a rising function of its numbers; a logarithm of 0 or less is no number."""

    def shown(number: float | None) -> float | None:
        try:
            return None if number is None else rising(number)
        except ValueError:
            return None

    spread = None if of.spread is None else (shown(of.spread[0]), shown(of.spread[1]))
    whole = spread if spread is not None and None not in spread else None
    changes = {"value": shown(of.value), "low": shown(of.low), "high": shown(of.high), "spread": whole}
    return of.model_copy(update=changes)
