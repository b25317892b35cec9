"""Intervals on other scales: a ratio as the exponent of a law, a difference as a slope, a number beside a model's."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crosswind.analysis.result import ModelPrediction
from crosswind.stats.estimate import Interval

SIMULATED = "limits of the simulated mean included"


@dataclass(frozen=True)
class Predicted:
    """A prediction above 0 with its limits: a simulated mean's, else twice the value."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, prediction: ModelPrediction) -> "Predicted | None":
        """None without a value. The limits are 0 and infinity for a simulated mean without an interval.

        A formula that says more than the link carries stands by itself: its cap would be the link's rate.
        """
        value, simulated = prediction.uncapped or prediction.value, prediction.simulated
        if not value:
            return None
        if simulated is None or simulated.runs == 1:
            return cls(value, value, value)
        return cls(value, max(0.0, simulated.low or 0.0), math.inf if simulated.high is None else simulated.high)

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it is left to chance."""
        return self.low == self.high


def exponent_of(ratio: Interval, at: float, other: float) -> Interval:
    """k, where y is proportional to x^k and y(other) / y(at) is the ratio. Args: at, other: 0 < at < other."""
    return _on_scale(ratio, lambda number: math.log(number) / math.log(other / at))


def per_step(difference: Interval, step: float) -> Interval:
    """A difference per unit of x. Args: step: between the two x, above 0."""
    return _on_scale(difference, lambda number: number / step)


def over_model(measured: Interval, predicted: Predicted) -> Interval:
    """A measured number divided by a prediction; the limits are the extremes within the limits of both."""
    ratio = _on_scale(measured, lambda number: number / predicted.value)
    if predicted.is_exact:
        return ratio
    low, high = _ends(measured)
    is_bounded = predicted.low > 0 and high is not None
    return replace(
        ratio,
        low=None if low is None or math.isinf(predicted.high) else low / predicted.high,
        high=high / predicted.low if is_bounded and high is not None else None,
        method=SIMULATED if measured.is_exact else f"{measured.method}; {SIMULATED}",
        reason=measured.reason or (None if is_bounded else "the simulated transfers are too few for an interval"),
    )


def mean_error(measured: Sequence[Interval], predicted: Sequence[Predicted]) -> Interval:
    """The mean over cells of |predicted / measured - 1|.

    Its ends are its extremes with every number inside its own interval, so these have to hold all at once (Bonferroni).
    A number without an upper limit may be any above its lower one.

    Args: measured: each cell's number above 0, at least one. predicted: the same cells'.
    """
    pairs = list(zip(measured, predicted, strict=True))
    ends = [_error_limits(of, number) for of, number in pairs]
    known = [abs(number.value / of.value - 1) for of, number in pairs if of.value]
    high = sum(most for _, most in ends) / len(ends)
    is_bounded = math.isfinite(high)
    exact = all(of.is_exact and number.is_exact for of, number in pairs)
    return Interval(
        value=sum(known) / len(known) if len(known) == len(pairs) else None,
        low=None if exact else sum(least for least, _ in ends) / len(ends),
        high=high if is_bounded and not exact else None,
        n=sum(of.n for of in measured),
        level=measured[0].level,
        method="exact" if exact else "what the cells' intervals allow, all of which hold at once (Bonferroni)",
        reason=None if is_bounded else next((of.reason for of in measured if of.reason), None),
        units=min(of.units for of in measured),
    )


def _ends(measured: Interval) -> tuple[float | None, float | None]:
    """A number's limits, twice its value if exact."""
    return (measured.value, measured.value) if measured.is_exact else (measured.low, measured.high)


def _error_limits(measured: Interval, predicted: Predicted) -> tuple[float, float]:
    """The extremes of |predicted / measured - 1| within both limits."""
    low, high = _ends(measured)
    most = predicted.high / low if low is not None and low > 0 else math.inf
    least = 0.0 if high is None else predicted.low / high
    errors = abs(least - 1), abs(most - 1)
    return (0.0 if least <= 1 <= most else min(errors)), max(errors)


def _on_scale(of: Interval, rising: Callable[[float], float]) -> Interval:
    """An interval under a rising function; a logarithm of 0 or less is no number."""

    def shown(number: float | None) -> float | None:
        try:
            return None if number is None else rising(number)
        except ValueError:
            return None

    least, most = map(shown, of.spread or (None, None))
    spread = None if least is None or most is None else (least, most)
    return replace(of, value=shown(of.value), low=shown(of.low), high=shown(of.high), spread=spread)
