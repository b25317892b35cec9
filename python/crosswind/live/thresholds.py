"""`--fail-if`: limits for loss, refused connections or round-trip time, judged over the whole time.

A threshold is written and decided as in studies, by the interval: it fails with the whole interval beyond the bound,
passes with the whole interval on the other side, and is inconclusive otherwise.

Connection probes ask whether a service is there: a dead service loses nothing. So a threshold on loss holds for refused
connections too, unless one on `refused` or `answered` decides about them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from crosswind.decisions.families import THRESHOLDS
from crosswind.decisions.grammar import GrammarError, read_bound
from crosswind.decisions.judge import OfInterval, judge
from crosswind.decisions.statement import KEPT, Kept, Range
from crosswind.errors import UsageError
from crosswind.findings.threshold.result import ThresholdCell
from crosswind.findings.threshold.sentence import WORDS, threshold_value_text, undecided_text
from crosswind.live.probes import Slice
from crosswind.live.summary import answer_of, estimate_as_dict, loss_of, quantile_of_times, refusal_of
from crosswind.report.text.format import count
from crosswind.stats.estimate import Interval, refused
from crosswind.stats.sample_size import more_to_decide
from crosswind.text.quantities import SHARE, TIME, Unit

_QUANTILES = {"median": 0.5, "p95": 0.95, "p99": 0.99}
_HINT = 'as "loss > 1%", "refused > 1%", "answered < 99%" or "p95(rtt) > 200ms"; of rtt there are median, p95 and p99'
_SHARES = {"loss": loss_of, "refused": refusal_of, "answered": answer_of}


@dataclass(frozen=True)
class LiveThreshold:
    """A failure condition.

    Attributes: q: quantile of the round-trip time; None for a share. bound: share or ns. share: a key of _SHARES; empty
        for a time. follows: text of the loss threshold behind an implied one; empty for an explicit one. Others: as in
        studies.
    """

    text: str
    q: float | None
    bound: float
    above: bool
    at_bound: bool
    share: str = ""
    follows: str = ""

    @property
    def unit(self) -> Unit:
        """The bound's unit."""
        return SHARE if self.q is None else TIME


def read_thresholds(texts: Iterable[str], *, can_be_refused: bool) -> list[LiveThreshold]:
    """Reads a command line's thresholds, and adds implied ones.

    Args: can_be_refused: whether probes open connections. Raises: UsageError.
    """
    given = [parse_threshold(text) for text in texts]
    told = [threshold for threshold in given if threshold.share in ("refused", "answered")]
    if told and not can_be_refused:
        refused = next((threshold.text for threshold in told if threshold.share == "refused"), None)
        if refused is not None:
            raise UsageError(f"--fail-if {refused!r}: only a connection can be refused", hint="add --tcp PORT")
    if told or not can_be_refused:
        return given
    return [each for threshold in given for each in (threshold, *_following(threshold))]


def _following(threshold: LiveThreshold) -> Iterable[LiveThreshold]:
    """The thresholds on refused connections implied by one on loss."""
    if threshold.share == "loss" and threshold.above:
        _, sign, bound = threshold.text.partition(">")
        yield replace(threshold, text=f"refused {sign}{bound}", share="refused", follows=threshold.text)


def parse_threshold(text: str) -> LiveThreshold:
    """Reads one. Raises: UsageError."""
    try:
        written = read_bound(text)
    except GrammarError:
        raise UsageError(f"--fail-if {text!r} is not a threshold", hint=_HINT) from None
    share = {"lost": "loss"}.get(written.metric, written.metric)
    is_share = written.statistic == "share" and share in _SHARES
    if written.where or not (is_share or written.metric == "rtt"):
        raise UsageError(f"--fail-if {text!r} is not a threshold", hint=_HINT)
    if not is_share and written.statistic not in _QUANTILES:
        raise UsageError(f"--fail-if {text!r}: rtt has no {written.statistic}", hint=_HINT)
    unit = SHARE if is_share else TIME
    bound = unit.amount(written.number, written.unit)
    if bound is None:
        hint = f"a number and one of {unit.written_in()}"
        raise UsageError(f"--fail-if {text!r}: {written.unit!r} is not a unit of it", hint=hint)
    return LiveThreshold(
        text=written.text,
        q=None if is_share else _QUANTILES[written.statistic],
        bound=bound,
        above=written.relation.startswith(">"),
        at_bound=written.relation.endswith("="),
        share=share if is_share else "",
    )


@dataclass(frozen=True)
class JudgedThreshold:
    """A threshold's verdict. cell: as in a study; `needed`: how many more probes would probably decide."""

    threshold: LiveThreshold
    cell: ThresholdCell

    @property
    def verdict(self) -> Kept:
        """Whether it is kept."""
        return self.cell.verdict

    @property
    def sentence(self) -> str:
        """In words, as in a study's report."""
        threshold, value = self.threshold, self.cell.value
        what = threshold.share or f"{threshold.text.partition('(')[0]} of the round-trip time"
        follows = f" (as {threshold.follows})" if threshold.follows else ""
        says = f"{WORDS[self.verdict]}: fail if {threshold.text}{follows}"
        text = threshold_value_text(value, threshold.unit.name)
        return f"{says}: {what} is {text}, {count(value.n)} probes{undecided_text(self.cell, 'probe')}."

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        value = estimate_as_dict(self.cell.value) or {}
        return {"fail_if": self.threshold.text, "verdict": self.verdict, "needed": self.cell.needed, **value}


def judge_thresholds(thresholds: list[LiveThreshold], part: Slice) -> list[JudgedThreshold]:
    """Judges thresholds together, as statements about kept bounds."""
    numbers = [_number(threshold, part) for threshold in thresholds]
    rulings = judge([[number] for number in numbers], THRESHOLDS)
    judged = []
    for threshold, number, ruling in zip(thresholds, numbers, rulings, strict=True):
        (case,) = ruling.cases
        verdict = KEPT[case.verdict]
        needed = _needed(threshold, number.at_95) if verdict == "inconclusive" else None
        cell = ThresholdCell(cell=0, levels={}, value=number.at_95, verdict=verdict, needed=needed)
        judged.append(JudgedThreshold(threshold, cell))
    return judged


def _number(threshold: LiveThreshold, part: Slice) -> OfInterval:
    low, high = (None, threshold.bound) if threshold.above else (threshold.bound, None)
    return OfInterval(lambda level: _value(threshold, part, level), Range(low, high, is_open=threshold.at_bound))


def _value(threshold: LiveThreshold, part: Slice, level: float) -> Interval:
    if threshold.q is None:
        estimate = _SHARES[threshold.share](part, level=level)
    else:
        estimate = quantile_of_times(part.answered, threshold.q, level=level)
    return estimate or refused("there was no answer", n=0, level=level)


def _needed(threshold: LiveThreshold, value: Interval) -> int | None:
    """Number of further probes to decide with a probability of 80 %, if the value is the true one."""
    if value.value is None:
        return None
    end = value.low if value.value > threshold.bound else value.high
    return more_to_decide(value.value, end, threshold.bound, value.n)
