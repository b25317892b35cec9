"""Thresholds for two runs: "p95(rtt) worse by 10%".

    STATISTIC(METRIC) worse|better|differs by AMOUNT

An amount is a percentage, or a number with one of the metric's units. Larger by 10 % is 1.1 times, smaller by 10 % is
0.9 times. For a share, 10 % are 10 percentage points. The judge's statement is the opposite: the change is no larger.
"""

from dataclasses import dataclass
from math import log

from crosswind.catalog.metrics import LOST, METRICS, Metric, metric_named
from crosswind.decisions.grammar import EXAMPLE_OF_CHANGE, GrammarError, Written, read
from crosswind.decisions.judge import OfEffect
from crosswind.decisions.statement import Range
from crosswind.errors import did_you_mean
from crosswind.stats.effect import Effect
from crosswind.text.quantities import SHARE


class ConditionError(ValueError):
    """An untestable condition. hint: the remedy."""

    def __init__(self, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Condition:
    """A condition. amount: for a ratio its distance from 1, else in the metric's unit. text: as written.

    direction: from crosswind.decisions.grammar.DIRECTIONS.
    """

    text: str
    metric: Metric
    statistic: str
    direction: str
    is_ratio: bool
    amount: float

    @property
    def is_upward(self) -> bool:
        """Whether a larger number is in its direction."""
        return self.metric.more_is_better == (self.direction == "better")

    @property
    def kept(self) -> Range:
        """The range for a smaller change: the second run's ratio to the first, or difference."""
        least = (1 - self.amount if self.amount < 1 else None) if self.is_ratio else -self.amount
        most = 1 + self.amount if self.is_ratio else self.amount
        if self.direction == "differs":
            return Range(least, most)
        return Range(None, most) if self.is_upward else Range(least, None)

    def number(self, effect: Effect) -> OfEffect:
        """The number for the judge."""
        return OfEffect(effect, self.kept, log if self.is_ratio else float)


def read_condition(text: str) -> Condition:
    """A condition as written. Raises: ConditionError."""
    try:
        written = read(text)
    except GrammarError as error:
        raise ConditionError(f'"{text}" {error.message}', error.hint) from None
    if not written.is_change:
        raise ConditionError(f'"{text}" is about one run, and these are two', EXAMPLE_OF_CHANGE)
    if written.where:
        raise ConditionError(f'"{text}": a change is judged in every common cell', "leave out where")
    metric = metric_named(written.metric)
    if metric is None:
        hint = did_you_mean(written.metric, [*METRICS, LOST.name])
        raise ConditionError(f'"{text}": {written.metric} is not a metric', hint)
    if written.statistic not in metric.statistics:
        hint = f"it has {', '.join(metric.statistics)}, {EXAMPLE_OF_CHANGE}"
        raise ConditionError(f'"{text}": {metric.name} has no {written.statistic}', hint)
    is_ratio, amount = _amount(written, metric)
    return Condition(text.strip(), metric, written.statistic, written.relation, is_ratio, amount)


def _amount(written: Written, metric: Metric) -> tuple[bool, float]:
    number, unit = written.number, written.unit
    change = metric.unit.change(number, unit)
    if change is None or change[1] < 0:
        message = f'"{written.text}": {number}{unit} is not an amount of {metric.name}'
        raise ConditionError(message, f"a number and one of {metric.unit.written_in('%')}")
    if metric.unit is SHARE and change[1] >= 1:
        raise ConditionError(f'"{written.text}": a share cannot change by {number}{unit}', "below 100%")
    return change
