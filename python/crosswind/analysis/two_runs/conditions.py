"""Conditions between two runs: "p95(rtt) worse by 10%".

    STATISTIC(METRIC) worse|better|differs by AMOUNT

An amount is a percentage, or a number with a unit of the metric. Larger by 10 % is 1.1 times, smaller by 10 % is 0.9
times. Of a share, 10 % are 10 percentage points.
"""

import difflib
import math
import re
from dataclasses import dataclass
from enum import Enum

from crosswind.analysis.summaries import statistics_of
from crosswind.analysis.two_runs.effects import Measured, larger_is_worse
from crosswind.metrics import LOST, METRICS, Metric, metric_named
from crosswind.quantities import SHARE
from crosswind.stats import EXACT
from crosswind.stats.beyond import Beyond, beyond
from crosswind.stats.effect import Effect
from crosswind.stats.sample_size import MOST, repetitions_needed

ALPHA = 0.05
POWER = 0.8

_TEXT = re.compile(
    r"(?P<statistic>\w+) ?\( ?(?P<metric>\w+) ?\) +(?P<direction>\w+) +by +"
    r"(?P<number>[0-9]{1,15}(\.[0-9]{1,15})?) ?(?P<unit>\S*)"
)
EXAMPLE = '"p95(rtt) worse by 10%"'


class Direction(Enum):
    """Which change a condition is about."""

    WORSE = "worse"
    BETTER = "better"
    DIFFERS = "differs"


class ConditionError(ValueError):
    """A condition that says nothing that could be tested. hint: what would."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Condition:
    """A condition. amount: of a ratio what is above or below 1, else in the metric's unit. text: as written."""

    text: str
    metric: Metric
    statistic: str
    direction: Direction
    is_ratio: bool
    amount: float

    @property
    def is_upward(self) -> bool:
        """Whether it is about an increase. That of `differs` is about both."""
        return larger_is_worse(self.metric) == (self.direction is Direction.WORSE)

    def effect(self, measured: Measured) -> Effect | None:
        """The effect that it is about; None where the ratio that it asks for does not exist."""
        return measured.ratio if self.is_ratio else measured.difference

    def p_of_not(self, sides: "Sides") -> float:
        """One-sided p-value of the change being smaller than the amount: small where the condition is shown."""
        low, high = self._places()
        if self.direction is Direction.DIFFERS:
            return min(1.0, 2 * min(sides.at_most(high), sides.at_least(low)))
        return sides.at_most(high) if self.is_upward else sides.at_least(low)

    def p_of(self, sides: "Sides") -> float:
        """p-value of the change being the amount or more: small where the condition is shown not to be met."""
        low, high = self._places()
        if self.direction is Direction.DIFFERS:
            return max(sides.at_least(high), sides.at_most(low))
        return sides.at_least(high) if self.is_upward else sides.at_most(low)

    def more_needed(self, effect: Effect, units: int) -> int | None:
        """More repetitions of each run that would decide it, with a probability of 80 %, if the effect is the observed.

        Args: units: repetitions that there are. Returns: None where no number would do, or nobody can know.
        """
        if effect.shortage is not None or effect.how == EXACT:
            return None
        distance = min(abs(effect.value - place) for place in self.places)
        needed = repetitions_needed(effect.spread, distance, alpha=ALPHA, sides=1, power=POWER)
        return None if needed is None or needed >= MOST else max(1, needed - units)

    @property
    def places(self) -> tuple[float, ...]:
        """The effects at which the amount is reached in the direction that it is about."""
        low, high = self._places()
        return {Direction.DIFFERS: (low, high)}.get(self.direction, (high,) if self.is_upward else (low,))

    def _places(self) -> tuple[float, float]:
        """The effects at which the amount is reached, downwards and upwards."""
        if not self.is_ratio:
            return -self.amount, self.amount
        return math.log1p(-self.amount) if self.amount < 1 else -math.inf, math.log1p(self.amount)


@dataclass(frozen=True)
class Sides:
    """One-sided p-values of an effect that has an interval, or is about most repetitions.

    Attributes: size: how large the numbers are that it compares; what is far smaller is rounding.
    """

    effect: Effect
    size: float

    def at_most(self, place: float) -> float:
        """P-value of the effect being `place` or less: small where it is clearly above."""
        return self._beyond(place).above

    def at_least(self, place: float) -> float:
        """P-value of the effect being `place` or more: small where it is clearly below."""
        return self._beyond(place).below

    def _beyond(self, place: float) -> Beyond:
        found = beyond(self.effect, place, size=self.size)
        assert found is not None  # It has an interval, or a sign test.
        return found


def read_condition(text: str) -> Condition:
    """A condition as written. Raises: ConditionError."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        raise ConditionError(
            f'"{text}" is not a condition', f"as {EXAMPLE}: STATISTIC(METRIC) worse|better|differs by X"
        )
    metric = metric_named(found["metric"])
    if metric is None:
        raise ConditionError(
            f'"{text}": {found["metric"]} is not a metric', _closest(found["metric"], [*METRICS, LOST.name])
        )
    statistics = statistics_of(metric)
    if found["statistic"] not in statistics:
        raise ConditionError(
            f'"{text}": {metric.name} has no {found["statistic"]}', f"it has {', '.join(statistics)}, as {EXAMPLE}"
        )
    directions = [direction.value for direction in Direction]
    if found["direction"] not in directions:
        raise ConditionError(f'"{text}": {found["direction"]} is not a direction', f"one of {', '.join(directions)}")
    is_ratio, amount = _amount(text, found["number"], found["unit"], metric)
    return Condition(text.strip(), metric, found["statistic"], Direction(found["direction"]), is_ratio, amount)


def _amount(text: str, number: str, unit: str, metric: Metric) -> tuple[bool, float]:
    scales = metric.unit.scales
    known = ", ".join(dict.fromkeys([*(name for name in scales if name != "1"), "%"]))
    if (unit or "1") not in {*scales, "%"}:
        raise ConditionError(
            f'"{text}": {number}{unit} is not an amount of {metric.name}', f"a number and one of {known}"
        )
    is_ratio = unit == "%" and metric.unit is not SHARE
    amount = float(number) * (0.01 if is_ratio else scales[unit or "1"])
    if metric.unit is SHARE and amount >= 1:
        raise ConditionError(f'"{text}": a share cannot change by {number}{unit}', "below 100%")
    return is_ratio, amount


def _closest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower()[:60], known, n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else f"known: {', '.join(known)}"
