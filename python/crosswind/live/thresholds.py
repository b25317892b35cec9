"""`--fail-if`: what loss or round-trip time must not exceed, judged at the end over the whole time.

A threshold is written as those of studies are, and decided in the same way, by the interval: it fails where the whole
interval is beyond the bound, passes where the whole interval is on the other side, and otherwise nobody can tell.
"""

import re
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.claims import ALPHA, Range
from crosswind.analysis.result import Interval, ThresholdCell, ThresholdVerdict
from crosswind.analysis.thresholds import VERDICTS
from crosswind.errors import UsageError
from crosswind.live.probes import Slice
from crosswind.live.summary import loss_of, quantile_of_times
from crosswind.quantities import SHARE, TIME, Unit
from crosswind.report.text import thresholds as words
from crosswind.report.text.format import count
from crosswind.stats import refused
from crosswind.stats.sample_size import more_to_decide

_TEXT = re.compile(
    r"(?:(?P<loss>loss|share ?\( ?lost ?\))|(?P<statistic>\w+) ?\( ?rtt ?\)) *(?P<sign>[<>]=?) *"
    r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,15})?) ?(?P<unit>\S*)"
)
_QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99}
_HINT = 'as "loss > 1%" or "p95(rtt) > 200ms"; of rtt there are median, p95 and p99'


@dataclass(frozen=True)
class Threshold:
    """When it fails. q: quantile of the round-trip time, None for loss. bound: share or ns. Others: as in studies."""

    text: str
    q: float | None
    bound: float
    above: bool
    at_bound: bool

    @property
    def unit(self) -> Unit:
        """The unit of the bound."""
        return SHARE if self.q is None else TIME


def parse_threshold(text: str) -> Threshold:
    """Reads one. Raises: UsageError."""
    plain = " ".join(text.split())
    found = _TEXT.fullmatch(plain)
    if found is None:
        raise UsageError(f"--fail-if {text!r} is not a threshold", hint=_HINT)
    statistic = found["statistic"]
    if statistic is not None and statistic not in _QUANTILES:
        raise UsageError(f"--fail-if {text!r}: rtt has no {statistic}", hint=_HINT)
    unit = TIME if statistic else SHARE
    bound = unit.amount(found["number"], found["unit"])
    if bound is None:
        known = ", ".join(name for name in unit.scales if name != "1")
        raise UsageError(f"--fail-if {text!r}: {found['unit']!r} is no unit of it", hint=f"a number and one of {known}")
    sign = found["sign"]
    return Threshold(
        text=plain,
        q=_QUANTILES[statistic] if statistic else None,
        bound=bound,
        above=sign.startswith(">"),
        at_bound=sign.endswith("="),
    )


@dataclass(frozen=True)
class Judged:
    """What became of a threshold. cell: as of a study; `needed` is how many more probes would probably tell."""

    threshold: Threshold
    cell: ThresholdCell

    @property
    def verdict(self) -> ThresholdVerdict:
        """Whether it is kept."""
        return self.cell.verdict

    @property
    def sentence(self) -> str:
        """In words, as a report of a study has it."""
        threshold, value = self.threshold, self.cell.value
        what = "loss" if threshold.q is None else f"{threshold.text.partition('(')[0]} of the round-trip time"
        says = f"{words.VERDICTS[self.verdict]}: fail if {threshold.text}"
        text = words.value_text(value, threshold.unit.name)
        return f"{says}: {what} is {text}, {count(value.n)} probes{words.why(self.cell)}."

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        value = self.cell.value.model_dump(include={"value", "low", "high", "n", "level", "method", "reason"})
        return {"fail_if": self.threshold.text, "verdict": self.verdict, "needed": self.cell.needed, **value}


def judge(thresholds: list[Threshold], part: Slice) -> list[Judged]:
    """Judges thresholds together: each fails at the level 1 - 0.05 / how many there are (Bonferroni)."""
    return [_judge(threshold, part, len(thresholds)) for threshold in thresholds]


def _judge(threshold: Threshold, part: Slice, number: int) -> Judged:
    low, high = (None, threshold.bound) if threshold.above else (threshold.bound, None)
    value, corrected = (_value(threshold, part, 1 - ALPHA / parts) for parts in (1, number))
    verdict = VERDICTS[Range(low, high, is_open=threshold.at_bound).verdict(value, corrected)]
    needed = _needed(threshold, value) if verdict == "cannot tell" else None
    return Judged(threshold, ThresholdCell(cell=0, levels={}, value=value, verdict=verdict, needed=needed))


def _value(threshold: Threshold, part: Slice, level: float) -> Interval:
    if threshold.q is None:
        found = loss_of(part, level=level)
    else:
        found = quantile_of_times(part.answered, threshold.q, level=level)
    return Interval.of(found or refused("there was no answer", n=0, level=level, unit=threshold.unit.name))


def _needed(threshold: Threshold, value: Interval) -> int | None:
    """More probes that would decide it with a probability of 80 %, if its value is the true one."""
    if value.value is None:
        return None
    end = value.low if value.value > threshold.bound else value.high
    return more_to_decide(value.value, end, threshold.bound, value.n)
