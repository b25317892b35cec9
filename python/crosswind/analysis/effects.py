"""Intervals on other scales: a ratio as the exponent of a law, a difference as a slope, a number beside a model's."""

import math
from collections.abc import Callable, Sequence

from crosswind.analysis.result import Interval
from crosswind.stats.majority import MOST


def exponent_of(ratio: Interval, at: float, other: float) -> Interval:
    """k, where y is proportional to x^k and y(other) / y(at) is the ratio. Args: at, other: 0 < at < other."""
    return _on_scale(ratio, lambda number: math.log(number) / math.log(other / at))


def per_step(difference: Interval, step: float) -> Interval:
    """A difference for each unit of x. Args: step: from the one x to the other, above 0."""
    return _on_scale(difference, lambda number: number / step)


def over_model(measured: Interval, predicted: float) -> Interval:
    """What was measured, divided by what a model predicts, which is above 0."""
    return _on_scale(measured, lambda number: number / predicted)


def mean_error(measured: Sequence[Interval], predicted: Sequence[float]) -> Interval:
    """The mean over cells of |predicted / measured - 1|.

    Its ends are the least and the most that it may be while every measured number lies in its own interval, so these
    have to hold all at once (Bonferroni). A number without an upper limit may be any above its lower one.

    Args: measured: a number above 0 of each cell, at least one. predicted: of the same cells, each above 0.
    """
    pairs = list(zip(measured, predicted, strict=True))
    ends = [_error_limits(of, number) for of, number in pairs]
    known = [abs(number / of.value - 1) for of, number in pairs if of.value]
    high = sum(most for _, most in ends) / len(ends)
    is_bounded = math.isfinite(high)
    exact = all(of.is_exact for of in measured)
    return Interval(
        value=sum(known) / len(known) if len(known) == len(pairs) else None,
        low=None if exact else sum(least for least, _ in ends) / len(ends),
        high=high if is_bounded and not exact else None,
        n=sum(of.n for of in measured),
        level=measured[0].level,
        method=_error_method(measured),
        reason=None if is_bounded else next((of.reason for of in measured if of.reason), None),
        units=min(of.units for of in measured),
    )


def _error_method(measured: Sequence[Interval]) -> str:
    if all(of.is_exact for of in measured):
        return "exact"
    if any(of.is_of_most for of in measured):
        return MOST
    return "what the cells' intervals allow, all of which hold at once (Bonferroni)"


def _error_limits(measured: Interval, predicted: float) -> tuple[float, float]:
    """The least and the largest |predicted / measured - 1| within an interval of what was measured."""
    low, high = (measured.value, measured.value) if measured.is_exact else (measured.low, measured.high)
    most = predicted / low if low is not None and low > 0 else math.inf
    least = 0.0 if high is None else predicted / high
    errors = abs(least - 1), abs(most - 1)
    return (0.0 if least <= 1 <= most else min(errors)), max(errors)


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
