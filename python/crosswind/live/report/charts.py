"""A page's charts: loss and times over time, the distribution of round trips, TCP's throughput."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import altair as alt
import numpy as np

from crosswind.live.lines import estimate_text, goodput_text
from crosswind.live.report.account import Account
from crosswind.live.report.history import WindowPeriod
from crosswind.live.summary import Summary
from crosswind.report.charts.distributions import CURVE_POINTS, curve
from crosswind.report.charts.rows import row_axis, row_labels, rows_height
from crosswind.report.charts.style import (
    GREY,
    PALETTE,
    Along,
    Specification,
    colour_of,
    inline,
    is_log,
    specification,
    tips,
)
from crosswind.report.page import Chart
from crosswind.report.text.format import count, count_of, number, quantity, scale_of
from crosswind.stats.arrays import Array
from crosswind.stats.estimate import Interval
from crosswind.text.quantities import RATE, TIME

PROBE = "a probe"
MOST_DOTS = 1500
"""Maximum probes drawn one by one; with more, none is."""
_MINUTE_NS = 60 * 10**9
_MOST_IN_ONE_UNIT = 10
_DIGITS = 6

_HEIGHT = 250
_LOST, _THERE, _BACK, _REORDERED = "lost", "lost there", "lost back", "reordered"
_REFUSED = "refused"
_MEDIAN, _P95 = "median", "p95"
_VARIATION, _JITTER = "delay variation, p95", "jitter"

_COLOURS = {
    PROBE: GREY,
    _LOST: PALETTE[1],
    _THERE: PALETTE[0],
    _BACK: PALETTE[2],
    _REFUSED: PALETTE[3],
    _REORDERED: PALETTE[1],
    _MEDIAN: PALETTE[0],
    _P95: PALETTE[1],
    _VARIATION: PALETTE[0],
    _JITTER: PALETTE[4],
}

HOW_TO_READ = "Dot and line: the window's value and its 95 % interval; half a line: only one limit"


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
    """An outage, or another event, with equal beginning and end."""

    begin: float
    end: float
    text: str


def time_scale(account: Account) -> tuple[float, str]:
    """The time axis's unit: (divisor of ns, name)."""
    if account.time_ns <= _MOST_IN_ONE_UNIT * _MINUTE_NS:
        return 1e9, "s"
    if account.time_ns <= _MOST_IN_ONE_UNIT * 60 * _MINUTE_NS:
        return float(_MINUTE_NS), "min"
    return 60.0 * _MINUTE_NS, "h"


def marks_of(
    account: Account,
    what: str,
    pick: Callable[[Summary], Interval | None],
    divisor: float,
    said: Callable[[Interval], str],
    *,
    beside: float = 0.0,
) -> Iterator[Mark]:
    """A mark for each window with a number.

    Args: pick: the number. said: the number in words. beside: offset from its window's middle, in window lengths.
    """
    for period in account.periods:
        estimate = pick(period.summary)
        if estimate is None or estimate.value is None:
            continue
        low, high = (estimate.value if end is None else end for end in (estimate.low, estimate.high))
        value, low, high = (_rounded(end / divisor) for end in (estimate.value, low, high))
        at, window = _place(account, period, beside)
        yield Mark(at, what, value, low, high, window, said(estimate), estimate.n)


def jitter_marks(account: Account, what: str, divisor: float, unit: str) -> Iterator[Mark]:
    """The jitter at each window's end, without an interval."""
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
    """The outages; an unfinished one ends with the session."""
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
    """Route changes and latency steps."""
    scale, _ = time_scale(account)
    placed = ((_rounded((event.at_ns - account.watch.start_ns) / scale), event) for event in account.history.events)
    return [Span(at, at, event.text) for at, event in placed if event.kind in ("route change", "latency step")]


def _place(account: Account, period: WindowPeriod, beside: float = 0.0) -> tuple[float, str]:
    """Where a period stands on the time axis, and from when to when it goes, in words."""
    scale, unit = time_scale(account)
    begin, end = period.start_ns / scale, period.end_ns / scale
    return _rounded((begin + end) / 2 + beside * (end - begin)), f"{number(begin)} to {number(end)} {unit}"


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)


def loss_over_time(account: Account) -> Chart:
    """Shares of lost and refused probes, and the losses by direction if known."""
    marks = [
        *marks_of(account, _LOST, lambda summary: summary.loss, 0.01, _share_text),
        *marks_of(account, _THERE, lambda summary: summary.loss_there, 0.01, _share_text, beside=-0.2),
        *marks_of(account, _BACK, lambda summary: summary.loss_back, 0.01, _share_text, beside=0.2),
        *marks_of(account, _REFUSED, lambda summary: summary.refusal, 0.01, _share_text, beside=0.2),
    ]
    title = "loss, %" if account.total.refused is None else "lost and refused, %"
    return Chart("", _drawing(account, marks, title, from_zero=True), _notes(account))


def reordering_over_time(account: Account) -> Chart:
    """The share of replies out of order."""
    marks = list(marks_of(account, _REORDERED, lambda summary: summary.reordering, 0.01, _share_text))
    return Chart("", _drawing(account, marks, "reordered, %", from_zero=True), _notes(account))


def rtt_over_time(account: Account) -> Chart | None:
    """Median and p95 of the round-trip time, and single probes where they are few; None without an answer."""
    if account.total.median is None:
        return None
    divisor, unit = scale_of([account.total.median.value], "ns")

    def text(estimate: Interval) -> str:
        return f"{estimate_text(estimate, divisor)} {unit}"

    marks = [
        *dots_of(account, divisor, unit),
        *marks_of(account, _MEDIAN, lambda summary: summary.median, divisor, text),
        *marks_of(account, _P95, lambda summary: summary.p95, divisor, text),
    ]
    left = f"Single probes are drawn up to {count(MOST_DOTS)}." if marks[0].what != PROBE else ""
    return Chart("", _drawing(account, marks, f"round-trip time, {unit}"), _notes(account, left))


def variation_over_time(account: Account) -> Chart | None:
    """Delay variation with its interval, and the jitter, without one; None without two answers in a row."""
    variation = account.total.variation_p95
    if variation is None:
        return None
    divisor, unit = scale_of([variation.value or account.total.jitter_ns], "ns")

    def text(estimate: Interval) -> str:
        return f"{estimate_text(estimate, divisor)} {unit}"

    marks = [
        *marks_of(account, _VARIATION, lambda summary: summary.variation_p95, divisor, text),
        *jitter_marks(account, _JITTER, divisor, unit),
    ]
    return Chart("", _drawing(account, marks, f"of round trips, {unit}", from_zero=True), _notes(account))


def _share_text(share: Interval) -> str:
    return f"{estimate_text(share, 0.01)} %"


def _drawing(account: Account, marks: Sequence[Mark], title: str, *, from_zero: bool = False) -> Specification:
    _, unit = time_scale(account)
    known = [end for mark in marks for end in (mark.low, mark.value, mark.high)]
    log = not from_zero and is_log(known, TIME)
    upwards = Along.of(title, log=log, zero=from_zero, nice=True)
    along = alt.Scale(domain=[0, account.time_ns / time_scale(account)[0]], nice=False)
    base = alt.Chart(inline(marks)).encode(
        x=Along(f"time since the start, {unit}", along).x("at"),
        color=colour_of("what", _COLOURS, shown={mark.what for mark in marks}, symbolOpacity=1),
        tooltip=tips("what", "window", "estimate", "n"),
    )
    y = upwards.y("value")
    windows = base.transform_filter(f"datum.what != '{PROBE}'")
    layers = [
        *_happened(account),
        base.transform_filter(f"datum.what == '{PROBE}'").mark_point(size=9, filled=True, opacity=0.4).encode(y=y),
        windows.mark_rule(strokeWidth=1.8).encode(y=upwards.y("low"), y2="high:Q"),
        windows.mark_point(size=44, filled=True, opacity=1).encode(y=y),
    ]
    return specification(layers, _HEIGHT)


def _happened(account: Account) -> list[alt.Chart]:
    """Outages as bands, other events as lines, behind everything else."""
    layers = []
    if outages := outage_spans(account):
        band = alt.Chart(inline(outages)).mark_rect(color=PALETTE[10], opacity=0.14)
        layers.append(band.encode(x="begin:Q", x2="end:Q", tooltip=["text:N"]))
    if others := moments(account):
        line = alt.Chart(inline(others)).mark_rule(color=GREY, strokeDash=[4, 3], strokeWidth=1.4)
        layers.append(line.encode(x="begin:Q", tooltip=["text:N"]))
    return layers


def _notes(account: Account, more: str = "") -> tuple[str, ...]:
    """The chart's legend: dots and background."""
    together = account.windows_together
    each = f" A dot is {count_of(together, 'window')} together." if together > 1 else ""
    outages = " Shaded: outages." if account.outages else ""
    others = " Dashed: other events, listed below." if moments(account) else ""
    return (f"{HOW_TO_READ}.{each}{outages}{others} {more}".strip(),)


_BINS = 41
_MOST, _FAR = 0.99, 3
"""A linear axis three times longer than the 99 % quantile ends there."""


@dataclass(frozen=True)
class _Bin:
    """So many round trips are at least `begin` and less than `end`."""

    begin: float
    end: float
    n: int
    from_to: str


@dataclass(frozen=True)
class _Step:
    """`share` percent of the round trips are `x` or less."""

    x: float
    share: float
    text: str


@dataclass(frozen=True)
class _Axis:
    """Where both charts begin and end, in `unit`."""

    low: float
    high: float
    unit: str
    log: bool

    def x(self, field: str) -> alt.X:
        ends = [self.low, self.high]
        return Along.of(f"round-trip time, {self.unit}", log=self.log, domain=ends, nice=False, zero=False).x(field)


def distribution_charts(account: Account) -> list[Chart]:
    """A histogram and the empirical distribution function; none without an answer."""
    answered = account.part.answered
    if not answered.size:
        return []
    divisor, unit = scale_of([float(np.median(answered))], "ns")
    values = np.sort(answered) / divisor
    along = _axis(values, unit)
    beyond = int((values > along.high).sum())
    note = f"{count_of(beyond, 'round trip')} of {count(values.size)} {'is' if beyond == 1 else 'are'} beyond the axis."
    notes = (note,) if beyond else ()
    return [
        Chart(f"Histogram, n = {count(values.size)}", _histogram(values, along), notes),
        Chart(f"Distribution function, n = {count(values.size)}", _function(values, along), notes),
    ]


def _axis(values: Array, unit: str) -> _Axis:
    low, high, most = float(values[0]), float(values[-1]), float(np.quantile(values, _MOST))
    if is_log(map(float, values), TIME):
        return _Axis(low * 0.9, high * 1.1, unit, log=True)
    top = most if high > _FAR * most else high
    # Equal round trips stand in the middle of an axis.
    margin = 0.03 * (top - low) or 0.05 * top or 1.0
    return _Axis(max(0.0, low - margin), top + margin, unit, log=False)


def _histogram(values: Array, along: _Axis) -> dict[str, object]:
    spaced = np.geomspace if along.log else np.linspace
    edges = spaced(along.low, along.high, _BINS + 1)
    counts, _ = np.histogram(values, bins=edges)
    bins = [
        _Bin(float(begin), float(end), int(n), f"{number(float(begin))} to {number(float(end))} {along.unit}")
        for begin, end, n in zip(edges[:-1], edges[1:], counts, strict=True)
        if n
    ]
    drawing = (
        alt.Chart(inline(bins))
        .mark_bar(binSpacing=1)
        .encode(
            x=along.x("begin"),
            x2="end:Q",
            y=alt.Y("n:Q", title="round trips", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6, tickMinStep=1)),
            y2=alt.datum(0),
            tooltip=tips("from_to", "n:Q"),
        )
    )
    return specification(drawing, _HEIGHT)


def _function(values: Array, along: _Axis) -> dict[str, object]:
    points, shares = curve(values, CURVE_POINTS)
    steps = [
        _Step(round(float(x), 6), round(100 * float(share), 3), f"{number(float(x))} {along.unit}")
        for x, share in zip(points, shares, strict=True)
    ]
    drawing = (
        alt.Chart(inline(steps))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=along.x("x"),
            y=alt.Y("share:Q", title="share of round trips, %", scale=alt.Scale(domain=[0, 100])),
            order=alt.Order("share:Q"),
            tooltip=[alt.Tooltip("text:N"), alt.Tooltip("share:Q", title="%")],
        )
    )
    return specification(drawing, _HEIGHT)


_EXPECTED, _MEASURED = "expected", "measured"
_GOODPUT_COLOURS = {_EXPECTED: PALETTE[0], _MEASURED: PALETTE[1]}
_AT_LEAST = "A line without a dot begins at the model's minimum, because no loss was seen."


@dataclass(frozen=True)
class _Row:
    """A model, or a transfer. value: None where only a limit is known. low, high: the value, or the other limit."""

    row: str
    source: str
    value: float | None
    low: float
    high: float
    text: str
    n: int


def goodput_chart(account: Account) -> Chart | None:
    """A row for each; None where nothing has a rate."""
    rates = list(_rates(account))
    known = [end for _, _, rate, _ in rates for end in (rate.value, rate.low, rate.high) if end is not None]
    if not known:
        return None
    divisor, unit = scale_of(known, "bit/s")
    most = max(known)
    rows = [_row(rate, divisor, most) for rate in rates]
    log = is_log(known, RATE)
    labels = row_labels(row.row for row in rows)
    title, room = f"goodput of one TCP flow, {unit}", 10 if log else 0
    along = Along.of(title, log=log, zero=not log, nice=not log, padding=room)
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=row_axis()),
        color=colour_of("source", _GOODPUT_COLOURS, shown={row.source for row in rows}),
        tooltip=tips("row", "text", "n"),
    )
    layers = [
        base.mark_rule(strokeWidth=2.2).encode(x=along.x("low"), x2="high:Q"),
        base.transform_filter("isValid(datum.value)")
        .mark_point(size=80, filled=True, opacity=1)
        .encode(x=along.x("value")),
    ]
    notes = (_AT_LEAST,) if any(row.value is None for row in rows) else ()
    return Chart("", specification(layers, rows_height(labels.values())), notes)


_Rate = tuple[str, str, Interval, str]
"""A row's name, its source, its rate in bit/s, and that in words."""


def _row(of_row: _Rate, divisor: float, most: float) -> _Row:
    """Args: most: the largest rate, where lines with an open end stop."""
    name, source, rate, text = of_row
    begin = next(end for end in (rate.low, rate.value, rate.high) if end is not None)
    stop = next((end for end in (rate.high, rate.value) if end is not None), most)
    shown = None if rate.value is None else _six_digits(rate.value / divisor)
    return _Row(name, source, shown, _six_digits(begin / divisor), _six_digits(stop / divisor), text, rate.n)


def _rates(account: Account) -> Iterator[_Rate]:
    for expectation in account.expectations:
        rate = expectation.goodput
        if expectation.unit == "bit/s" and any(end is not None for end in (rate.value, rate.low, rate.high)):
            yield expectation.title, _EXPECTED, rate, goodput_text(rate)
    for measured in account.subject.measured:
        rate = replace(measured.goodput, low=None, high=None)
        yield f"TCP, {measured.direction}", _MEASURED, rate, f"{quantity(rate.value, 'bit/s')}, one transfer"


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")
