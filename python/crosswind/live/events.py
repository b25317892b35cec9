"""Alarms: outages, route changes, and steps in the round-trip time."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from crosswind.live.probes import ProbeOutcome
from crosswind.report.text.format import quantity
from crosswind.stats.estimate import Interval

EventKind = Literal["outage begins", "outage ends", "route change", "latency step"]

_TTL_REPLIES = 3
"""So many replies in a row have a new TTL before the route is said to have changed: some routes take turns."""
_STEP_WINDOWS = 3
_REMEMBERED_WINDOWS = 30
_SMALLEST_STEP = 0.1
"""Relative to the earlier median: a smaller change, even if shown, is no event."""


@dataclass(frozen=True)
class LiveEvent:
    """An event. at_ns: on the probes' clock. text: in words. values: as numbers."""

    kind: EventKind
    at_ns: int
    text: str
    values: dict[str, float]


class Outages:
    """An outage begins with `least` probes in a row lost or refused, and ends with the next answer."""

    def __init__(self, *, least: int) -> None:
        self._least = least
        self._lost = self._refused = 0
        self._begun_ns = 0

    @property
    def is_out(self) -> bool:
        """Whether there is an outage."""
        return self._unanswered >= self._least

    @property
    def _unanswered(self) -> int:
        return self._lost + self._refused

    def handle_verdict(self, verdict: ProbeOutcome) -> LiveEvent | None:
        """The outage's beginning or end at a verdict."""
        if not verdict.is_answered:
            self._begun_ns = verdict.sent_ns if self._unanswered == 0 else self._begun_ns
            self._refused += verdict.is_refused
            self._lost += not verdict.is_refused
            if self._unanswered != self._least:
                return None
            text = f"outage: {self._unanswered} probes in a row have no answer{self._of_which()}"
            return LiveEvent("outage begins", self._begun_ns, text, self._counts)
        was_out, counts = self.is_out, self._counts
        text = f"the outage is over: {self._unanswered} probes without an answer{self._of_which()}"
        self._lost = self._refused = 0
        if not was_out:
            return None
        length_ns = verdict.sent_ns - self._begun_ns
        return LiveEvent(
            "outage ends", verdict.sent_ns, f"{text} in {quantity(length_ns, 'ns')}", {**counts, "length_ns": length_ns}
        )

    @property
    def _counts(self) -> dict[str, float]:
        return {"lost": self._lost, "refused": self._refused}

    def _of_which(self) -> str:
        return f" ({self._lost} lost, {self._refused} refused)" if self._refused else ""


class Routes:
    """The route has changed where the TTL (IPv6: hop limit) of replies is another one than before."""

    def __init__(self) -> None:
        self._known: int | None = None
        self._new: int | None = None
        self._seen = 0
        self._since_ns = 0

    def handle_verdict(self, verdict: ProbeOutcome) -> LiveEvent | None:
        """The change in route confirmed by a verdict. Its time is the first changed reply's."""
        if verdict.ttl is None:
            return None
        if self._known is None or verdict.ttl == self._known:
            self._known, self._seen = verdict.ttl, 0
            return None
        if self._seen == 0 or verdict.ttl != self._new:
            self._new, self._seen, self._since_ns = verdict.ttl, 0, verdict.sent_ns
        self._seen += 1
        if self._seen < _TTL_REPLIES:
            return None
        before, self._known, self._seen = self._known, verdict.ttl, 0
        text = f"route change: the TTL of replies was {before} and is {verdict.ttl}"
        return LiveEvent("route change", self._since_ns, text, {"ttl_before": before, "ttl": verdict.ttl})


class Steps:
    """Finds steps in the round-trip time: a window's median with an interval overlapping no earlier one.

    Earlier windows are the last 30 since the previous step, at least three; a step is at least 10 % of their largest or
    smallest median.
    """

    def __init__(self) -> None:
        self._earlier: deque[Interval] = deque(maxlen=_REMEMBERED_WINDOWS)

    def handle_median(self, median: Interval, at_ns: int) -> LiveEvent | None:
        """The step at a window's median, if any. Args: at_ns: the window's beginning."""
        if median.value is None or median.low is None or median.high is None:
            return None
        step = self._step(median)
        if step is None:
            self._earlier.append(median)
            return None
        self._earlier.clear()
        self._earlier.append(median)
        text = f"latency step: the median was {quantity(step, 'ns')} and is {quantity(median.value, 'ns')}"
        return LiveEvent("latency step", at_ns, text, {"median_before_ns": step, "median_ns": median.value})

    def _step(self, median: Interval) -> float | None:
        """The median before a step: among the earlier windows, the nearest to the new one."""
        if len(self._earlier) < _STEP_WINDOWS:
            return None
        assert median.value is not None
        assert median.low is not None
        assert median.high is not None
        before = min(
            (estimate.value or 0.0 for estimate in self._earlier), key=lambda value: abs(value - (median.value or 0.0))
        )
        above = median.low > max(estimate.high or 0.0 for estimate in self._earlier)
        below = median.high < min(estimate.low or 0.0 for estimate in self._earlier)
        is_large = abs(median.value - before) >= _SMALLEST_STEP * before
        return before if (above or below) and is_large else None
