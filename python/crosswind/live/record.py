"""What is seen, as JSON lines of the schema crosswind.live/1 (docs/live.md)."""

import json
from typing import Any

from crosswind.live.events import Event
from crosswind.live.expectations import Expectation, common_assumption
from crosswind.live.one_way import WAYS, Located
from crosswind.live.summary import Summary
from crosswind.live.watch import News, WindowReport

SCHEMA = "crosswind.live/1"


def json_line(news: News, start_ns: int, *, with_probes: bool) -> str | None:
    """The line of a window, an event or a probe; None for a probe where they are not asked for."""
    if isinstance(news, WindowReport):
        times = {"start_ns": news.window.start_ns - start_ns, "end_ns": news.window.end_ns - start_ns}
        return line("window", {**times, **news.summary.as_dict()})
    if isinstance(news, Event):
        return line("event", {"event": news.kind, "at_ns": news.at_ns - start_ns, "text": news.text, **news.values})
    if not with_probes:
        return None
    if isinstance(news, Located):
        return line("way", {"sequence": news.sequence, "lost": WAYS[news.way]})
    numbers = {"sequence": news.sequence, "sent_ns": news.sent_ns - start_ns, "rtt_ns": news.rtt_ns, "ttl": news.ttl}
    return line("probe", {**numbers, "refused": news.is_refused})


def end_line(
    summary: Summary,
    expectations: list[Expectation],
    measured: list[dict[str, Any]],
    thresholds: list[dict[str, Any]],
    time_ns: int,
) -> str:
    """The last line: the whole time, what TCP can get, what it got, and what became of the thresholds."""
    models = [each.as_dict() for each in expectations]
    tcp = {"assumption": common_assumption(expectations), "models": models, "measured": measured}
    return line("end", {"time_ns": time_ns, **summary.as_dict(), "tcp": tcp, "thresholds": thresholds})


def line(kind: str, values: dict[str, Any]) -> str:
    """One line. Args: kind: its type."""
    return json.dumps({"schema": SCHEMA, "type": kind, **values}, ensure_ascii=False, allow_nan=False)
