"""Output as lines: one for each window and each event, and a summary at the end."""

from collections.abc import Iterator

from crosswind.live.events import LiveEvent
from crosswind.live.expectations import Expectation, common_assumption
from crosswind.live.goodput import Goodput
from crosswind.live.summary import Summary
from crosswind.live.watch import News, WindowReport
from crosswind.report.text.format import (
    NOTHING,
    count,
    count_of,
    interval,
    number,
    percent,
    quantity,
    scale_of,
    short_number,
)
from crosswind.stats.estimate import Interval


def news_line(news: News, start_ns: int) -> str | None:
    """The line for a window or an event, beginning with the time since the start; None for a single probe."""
    if isinstance(news, WindowReport):
        return f"{_since(news.window.end_ns, start_ns)}  {window_text(news.summary)}"
    if isinstance(news, LiveEvent):
        return f"{_since(news.at_ns, start_ns)}  {news.text}"
    return None


def window_text(summary: Summary) -> str:
    """A window in one line."""
    parts = [f"{count(summary.sent)} sent", loss_text(summary), refusal_text(summary), rtt_text(summary)]
    parts += variation_texts(summary)
    return "; ".join(part for part in parts if part)


def loss_text(summary: Summary) -> str:
    """How many probes are lost, and the share with its interval: "2 lost: 4 % [0.5 %, 14 %]"."""
    if summary.loss is None:
        return "no verdict yet"
    text = f"{count(summary.lost)} lost: {share_text(summary.loss)}"
    if summary.loss_there is None or summary.loss_back is None:
        return text
    return f"{text} (there {share_text(summary.loss_there)}, back {share_text(summary.loss_back)})"


def refusal_text(summary: Summary) -> str:
    """How many probes the host refused: "12 refused: 100 % [74 %, 100 %]"; nothing where it cannot refuse any."""
    if summary.refused is None or summary.refusal is None:
        return ""
    return f"{count(summary.refused)} refused" + (f": {share_text(summary.refusal)}" if summary.refused else "")


def refused_text(summary: Summary) -> str:
    """A host with refusals and no answers: "refused all 50 connections"."""
    refused = summary.refused or 0
    if summary.lost:
        return f"accepted no connection: {count(refused)} refused, {count(summary.lost)} lost"
    return f"refused {'all ' if refused > 1 else ''}{count_of(refused, 'connection')}"


def share_text(share: Interval) -> str:
    """A share with its interval, as percentages."""
    if share.low is None or share.high is None:
        return f"{percent(share.value)} (no interval)"
    return f"{percent(share.value)} [{percent(share.low)}, {percent(share.high)}]"


def rtt_text(summary: Summary) -> str:
    """The round-trip time: extremes, median and p95 with the known interval limits."""
    if summary.median is None or summary.p95 is None:
        return "no answer"
    divisor, unit = scale_of([summary.median.value], "ns")
    ends = [number(end, divisor) for end in (summary.smallest_ns, summary.largest_ns)]
    median, p95 = (estimate_text(estimate, divisor) for estimate in (summary.median, summary.p95))
    n = summary.answered
    return f"round trip min {ends[0]}, median {median}, p95 {p95}, max {ends[1]} {unit} (n = {count(n)})"


def estimate_text(estimate: Interval, divisor: float) -> str:
    """A quantile with its interval, or alone where it has none: "20.1 [20.0, 20.2]"."""

    if estimate.low is None and estimate.high is None:
        return number(estimate.value, divisor)
    if estimate.low == estimate.high:
        text = number(estimate.value, divisor)
        return f"{text} [{text}, {text}]"
    return interval(estimate, divisor)


def variation_texts(summary: Summary) -> Iterator[str]:
    """Jitter, delay variation, and reordering."""
    if summary.jitter_ns is not None:
        jitter = f"jitter {quantity(summary.jitter_ns, 'ns')} (RFC 3550)"
        if summary.variation_p95 is not None:
            jitter += f", delay variation p95 {quantity(summary.variation_p95.value, 'ns')} (RFC 3393)"
        yield jitter
    if summary.reordered is not None:
        yield f"{count(summary.reordered)} reordered, {count_of(summary.duplicates or 0, 'duplicate')}"
    if summary.late:
        yield f"{count(summary.late)} late"


def expectation_lines(expectations: list[Expectation]) -> Iterator[str]:
    """TCP's expected throughput: a line a model, with assumptions; then the silent models, and why."""
    told = [expected for expected in expectations if expected.says_something]
    if told:
        yield "Expected throughput of one long TCP flow, from the loss and the round trip above:"
    for expected in told:
        note = f" ({expected.note})" if expected.note else ""
        yield f"  {expected.title}: {goodput_text(expected.goodput, expected.unit)}{note}"
    for model in {expected.model.name: expected.model for expected in told}.values():
        yield f"  {model.title} assumes {model.assumptions}; valid for {model.valid_range}."
    if told:
        yield f"  All assume that {common_assumption(expectations)}."
    yield from silent_lines(expectations)


def silent_lines(expectations: list[Expectation]) -> Iterator[str]:
    """Models without a prediction for this path, a line for each reason."""
    silent = [expected for expected in expectations if not expected.says_something]
    for note in dict.fromkeys(expected.note for expected in silent):
        titles = dict.fromkeys(expected.title.partition(",")[0] for expected in silent if expected.note == note)
        yield f"No prediction by {', '.join(titles)}: {note}."


def goodput_line(measured: Goodput) -> str:
    """TCP's throughput in one direction: "TCP reached 6.5 Mbit/s: download of 4.1 MB in 5 s"."""
    how = [f"{number(measured.received_bytes / 1e6)} MB in {quantity(measured.time_ns, 'ns')}"]
    if measured.congestion_control:
        how.append(measured.congestion_control)
    if measured.segments is not None:
        how.append(f"{count(measured.retransmitted or 0)} of {count_of(measured.segments, 'segment')} retransmitted")
    rate = quantity(measured.goodput.value, "bit/s")
    return f"TCP reached {rate}: one {measured.direction}, {', '.join(how)} (no interval)"


def goodput_text(goodput: Interval, in_unit: str = "bit/s") -> str:
    """A rate with its interval: "3.2 [2.1, 5.0] Mbit/s", "at least 12 Mbit/s"."""
    if in_unit == "1":
        scale, unit = 0.01, "%"
    else:
        known = [rate for rate in (goodput.value, goodput.low) if rate is not None]
        scale, unit = scale_of(known[:1], in_unit)
    texts = {
        name: short_number(getattr(goodput, name) / scale)
        for name in ("value", "low", "high")
        if getattr(goodput, name) is not None
    }
    if not texts:
        return f"{NOTHING} ({goodput.reason})" if goodput.reason else NOTHING
    if "value" not in texts:
        return f"{_bound(texts)} {unit}"
    if "low" in texts and "high" in texts:
        return f"{texts['value']} [{texts['low']}, {texts['high']}] {unit}"
    return f"{texts['value']} {unit} ({_bound(texts) if len(texts) > 1 else 'no interval'})"


def _bound(texts: dict[str, str]) -> str:
    return f"at least {texts['low']}" if "low" in texts else f"at most {texts['high']}"


def _since(at_ns: int, start_ns: int) -> str:
    return f"{(at_ns - start_ns) / 1e9:8.1f} s"
