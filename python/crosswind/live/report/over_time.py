"""Charts of what was seen over time."""

from collections.abc import Sequence

import altair as alt

from crosswind.live.lines import estimate_text
from crosswind.live.report.account import Account
from crosswind.live.report.marks import (
    MOST_DOTS,
    PROBE,
    Mark,
    dots_of,
    jitter_marks,
    marks_of,
    moments,
    outage_spans,
    time_scale,
)
from crosswind.quantities import TIME
from crosswind.report.charts.panels import Chart
from crosswind.report.charts.style import GREY, PALETTE, Specification, axis, inline, is_log, scale_type, specification
from crosswind.report.text.format import count, count_of, scale_of
from crosswind.stats.estimate import Estimate

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


def loss_over_time(account: Account) -> Chart:
    """The share of lost probes, that of refused ones, and where replies tell, those of the two ways."""
    marks = [
        *marks_of(account, _LOST, lambda summary: summary.loss, 0.01, _share_text),
        *marks_of(account, _THERE, lambda summary: summary.loss_there, 0.01, _share_text, beside=-0.2),
        *marks_of(account, _BACK, lambda summary: summary.loss_back, 0.01, _share_text, beside=0.2),
        *marks_of(account, _REFUSED, lambda summary: summary.refusal, 0.01, _share_text, beside=0.2),
    ]
    title = "loss, %" if account.total.refused is None else "lost and refused, %"
    return Chart("", _drawing(account, marks, title, from_zero=True), _notes(account))


def reordering_over_time(account: Account) -> Chart:
    """The share of replies that came out of order."""
    marks = list(marks_of(account, _REORDERED, lambda summary: summary.reordering, 0.01, _share_text))
    return Chart("", _drawing(account, marks, "reordered, %", from_zero=True), _notes(account))


def rtt_over_time(account: Account) -> Chart | None:
    """Median and p95 of the round-trip time, and single probes where they are few; None without an answer."""
    if account.total.median is None:
        return None
    divisor, unit = scale_of([account.total.median.value], "ns")

    def text(found: Estimate) -> str:
        return f"{estimate_text(found, divisor)} {unit}"

    marks = [
        *dots_of(account, divisor, unit),
        *marks_of(account, _MEDIAN, lambda summary: summary.median, divisor, text),
        *marks_of(account, _P95, lambda summary: summary.p95, divisor, text),
    ]
    left = f"Single probes are drawn up to {count(MOST_DOTS)}." if marks[0].what != PROBE else ""
    return Chart("", _drawing(account, marks, f"round-trip time, {unit}"), _notes(account, left))


def variation_over_time(account: Account) -> Chart | None:
    """Delay variation with its interval, and the jitter, which has none; None without two answers in a row."""
    variation = account.total.variation_p95
    if variation is None:
        return None
    divisor, unit = scale_of([variation.value or account.total.jitter_ns], "ns")

    def text(found: Estimate) -> str:
        return f"{estimate_text(found, divisor)} {unit}"

    marks = [
        *marks_of(account, _VARIATION, lambda summary: summary.variation_p95, divisor, text),
        *jitter_marks(account, _JITTER, divisor, unit),
    ]
    return Chart("", _drawing(account, marks, f"of round trips, {unit}", from_zero=True), _notes(account))


def _share_text(found: Estimate) -> str:
    return f"{estimate_text(found, 0.01)} %"


def _drawing(account: Account, marks: Sequence[Mark], title: str, *, from_zero: bool = False) -> Specification:
    _, unit = time_scale(account)
    known = [end for mark in marks for end in (mark.low, mark.value, mark.high)]
    log = not from_zero and is_log(known, TIME)
    scale = alt.Scale(type=scale_type(log=log), zero=from_zero, nice=True)
    along = alt.Scale(domain=[0, account.time_ns / time_scale(account)[0]], nice=False)
    shown = f"{title}, log scale" if log else title
    kinds = [kind for kind in _COLOURS if any(mark.what == kind for mark in marks)]
    colours = alt.Scale(domain=kinds, range=[_COLOURS[kind] for kind in kinds])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1) if len(kinds) > 1 else None
    base = alt.Chart(inline(marks)).encode(
        x=alt.X("at:Q", title=f"time since the start, {unit}", scale=along, axis=axis(log=False)),
        color=alt.Color("what:N", scale=colours, legend=legend),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("what", "window", "estimate", "n")],
    )
    y = alt.Y("value:Q", title=shown, scale=scale, axis=axis(log=log))
    windows = base.transform_filter(f"datum.what != '{PROBE}'")
    layers = [
        *_happened(account),
        base.transform_filter(f"datum.what == '{PROBE}'").mark_point(size=9, filled=True, opacity=0.4).encode(y=y),
        windows.mark_rule(strokeWidth=1.8).encode(
            y=alt.Y("low:Q", title=shown, scale=scale, axis=axis(log=log)), y2="high:Q"
        ),
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
    """How to read a chart: what a dot is, and what stands behind it."""
    together = account.windows_together
    each = f" A dot is {count_of(together, 'window')} together." if together > 1 else ""
    outages = " Shaded: outages." if account.outages else ""
    others = " Dashed: other events, listed below." if moments(account) else ""
    return (f"{HOW_TO_READ}.{each}{outages}{others} {more}".strip(),)
