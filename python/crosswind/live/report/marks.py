"""What charts over time draw: a mark for each window with its interval, single probes, and what happened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from crosswind.live.report.account import Account
from crosswind.live.report.history import Period
from crosswind.live.summary import Summary
from crosswind.report.text.format import number
from crosswind.stats.estimate import Estimate

PROBE = "a probe"
MOST_DOTS = 1500
"""Probes that are drawn one by one; of more, none is."""
_MINUTE_NS = 60 * 10**9
_MOST_IN_ONE_UNIT = 10
_DIGITS = 6


@dataclass(frozen=True)
class Mark:
    """A number of a window, or a single probe. at: time since the start. low, high: limits, else the value."""

    at: float
    what: str
    value: float
    low: float
    high: float
    window: str
    estimate: str
    n: int


@dataclass(frozen=True)
class Span:
    """An outage, or a moment at which something else happened, which begins and ends at once."""

    begin: float
    end: float
    text: str


def time_scale(account: Account) -> tuple[float, str]:
    """The unit of the time axis: (divisor of ns, name)."""
    if account.time_ns <= _MOST_IN_ONE_UNIT * _MINUTE_NS:
        return 1e9, "s"
    if account.time_ns <= _MOST_IN_ONE_UNIT * 60 * _MINUTE_NS:
        return float(_MINUTE_NS), "min"
    return 60.0 * _MINUTE_NS, "h"


def marks_of(
    account: Account,
    what: str,
    pick: Callable[[Summary], Estimate | None],
    divisor: float,
    said: Callable[[Estimate], str],
    *,
    beside: float = 0.0,
) -> Iterator[Mark]:
    """A mark for each window that has a number.

    Args: pick: the number. said: the number in words. beside: how far from the middle of its window, in its lengths.
    """
    for period in account.periods:
        found = pick(period.summary)
        if found is None or found.value is None:
            continue
        low, high = (found.value if end is None else end for end in (found.low, found.high))
        value, low, high = (_rounded(end / divisor) for end in (found.value, low, high))
        at, window = _place(account, period, beside)
        yield Mark(at, what, value, low, high, window, said(found), found.n)


def jitter_marks(account: Account, what: str, divisor: float, unit: str) -> Iterator[Mark]:
    """The jitter at the end of each window, which has no interval."""
    for period in account.periods:
        jitter_ns = period.summary.jitter_ns
        if jitter_ns is not None:
            text = f"{number(jitter_ns, divisor)} {unit}, a moving mean without an interval"
            at, window = _place(account, period)
            yield Mark(at, what, *(_rounded(jitter_ns / divisor),) * 3, window, text, period.summary.answered)


def dots_of(account: Account, divisor: float, unit: str) -> list[Mark]:
    """Every answered probe, where they are few."""
    rtt_ns = account.part.rtt_ns
    if rtt_ns.size > MOST_DOTS:
        return []
    scale, _ = time_scale(account)
    sent_ns = account.watch.probes.sent_between(0, rtt_ns.size) - account.watch.start_ns
    return [
        Mark(_rounded(at / scale), PROBE, *(_rounded(rtt / divisor),) * 3, "", f"{number(rtt, divisor)} {unit}", 1)
        for at, rtt in zip(sent_ns, rtt_ns, strict=True)
        if not np.isnan(rtt)
    ]


def outage_spans(account: Account) -> list[Span]:
    """The outages; one that had not ended ends with the session."""
    scale, _ = time_scale(account)
    return [
        Span(
            _rounded(outage.start_ns / scale),
            _rounded((account.time_ns if outage.end_ns is None else outage.end_ns) / scale),
            "outage",
        )
        for outage in account.outages
    ]


def moments(account: Account) -> list[Span]:
    """Changes of route and steps of the round-trip time."""
    scale, _ = time_scale(account)
    found = ((_rounded((event.at_ns - account.watch.start_ns) / scale), event) for event in account.history.events)
    return [Span(at, at, event.text) for at, event in found if event.kind in ("route change", "latency step")]


def _place(account: Account, period: Period, beside: float = 0.0) -> tuple[float, str]:
    """Where a period stands on the time axis, and from when to when it goes, in words."""
    scale, unit = time_scale(account)
    begin, end = period.start_ns / scale, period.end_ns / scale
    return _rounded((begin + end) / 2 + beside * (end - begin)), f"{number(begin)} to {number(end)} {unit}"


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
