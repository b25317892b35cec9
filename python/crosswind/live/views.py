"""How a watch is shown: in plain lines, as JSON lines. `screen` is the one for terminals."""

import json
from dataclasses import dataclass
from typing import Any, Protocol

import click

from crosswind.live.events import LiveEvent
from crosswind.live.expectations import Expectation, common_assumption, expectations_of
from crosswind.live.goodput import Goodput
from crosswind.live.lines import expectation_lines, goodput_line, news_line, window_text
from crosswind.live.one_way import WAYS, Located
from crosswind.live.session import LiveSession
from crosswind.live.summary import Summary
from crosswind.live.targets import Target
from crosswind.live.thresholds import JudgedThreshold
from crosswind.live.watch import News, Watch, WindowReport
from crosswind.text.units import format_duration

SCHEMA = "crosswind.live/1"


@dataclass(frozen=True)
class Subject:
    """The subject of a watch: target, probes and settings.

    Attributes: probe, description: the probe's name ("icmp") and description. rate_bps: the slowest link's; None if
        unknown. measured: TCP's throughput, if measured.
    """

    target: Target
    probe: str
    description: str
    interval_ns: int
    rate_bps: int | None
    measured: tuple[Goodput, ...] = ()


class View(Protocol):
    """Shows a watch."""

    def run(self, session: LiveSession) -> int:
        """Shows a session while it runs. Returns: when it ended, ns."""

    def end(self, ended_ns: int, judged: list[JudgedThreshold]) -> None:
        """After the last probe. Args: judged: the thresholds."""


class Lines:
    """Plain lines on standard output: one for each window and each event, and a summary at the end."""

    def __init__(self, watch: Watch, subject: Subject) -> None:
        self._watch, self._subject = watch, subject

    def run(self, session: LiveSession) -> int:
        """Prints the subject, then a line for each window and event."""
        click.echo(self.head)
        for goodput in self._subject.measured:
            click.echo(goodput_line(goodput))
        session.inform(self._show)
        return session.run()

    @property
    def head(self) -> str:
        """The subject, in words."""
        subject = self._subject
        return f"{subject.target}: {subject.probe}, one probe every {format_duration(subject.interval_ns)}"

    def _show(self, news: News) -> None:
        text = news_line(news, self._watch.start_ns)
        if text is not None:
            click.echo(text)

    def end(self, ended_ns: int, judged: list[JudgedThreshold]) -> None:
        """The whole time, TCP's expected throughput, and the thresholds."""
        click.echo(f"In {(ended_ns - self._watch.start_ns) / 1e9:.1f} s: {window_text(self._watch.total())}.")
        for goodput in self._subject.measured:
            click.echo(goodput_line(goodput))
        for text in expectation_lines(expectations(self._watch, self._subject)):
            click.echo(text)
        for threshold in judged:
            click.echo(threshold.sentence)


class JsonLines:
    """JSON lines on standard output. Args: with_probes: a line for each probe too."""

    def __init__(self, watch: Watch, subject: Subject, *, with_probes: bool) -> None:
        self._watch, self._subject, self._with_probes = watch, subject, with_probes

    def run(self, session: LiveSession) -> int:
        """Prints the subject, then a line for each window and event, and for each probe on request."""
        values = {
            "host": self._subject.target.name,
            "address": self._subject.target.number,
            "probe": self._subject.probe,
            "interval_ns": self._subject.interval_ns,
            "timeout_ns": self._watch.probes.timeout_ns,
            "window_ns": self._watch.windows.length_ns,
            "measured": [goodput.as_dict() for goodput in self._subject.measured],
        }
        click.echo(line("start", values))
        session.inform(self._show)
        return session.run()

    def _show(self, news: News) -> None:
        text = json_line(news, self._watch.start_ns, with_probes=self._with_probes)
        if text is not None:
            click.echo(text)

    def end(self, ended_ns: int, judged: list[JudgedThreshold]) -> None:
        """The last line."""
        expected = expectations(self._watch, self._subject)
        thresholds = [threshold.as_dict() for threshold in judged]
        measured = [goodput.as_dict() for goodput in self._subject.measured]
        time_ns = ended_ns - self._watch.start_ns
        click.echo(end_line(self._watch.total(), expected, measured, thresholds, time_ns))


def expectations(watch: Watch, subject: Subject) -> list[Expectation]:
    """TCP's expected throughput, from all probes so far."""
    part = watch.probes.between(0, watch.probes.sent)
    family = subject.target.family_name
    expected = expectations_of(part, family=family, rate_bps=subject.rate_bps, tells_ways=watch.tells_ways)
    return [expectation.beside(subject.measured) for expectation in expected]


def json_line(news: News, start_ns: int, *, with_probes: bool) -> str | None:
    """The line of a window, an event or a probe; None for a probe where they are not asked for."""
    if isinstance(news, WindowReport):
        times = {"start_ns": news.window.start_ns - start_ns, "end_ns": news.window.end_ns - start_ns}
        return line("window", {**times, **news.summary.as_dict()})
    if isinstance(news, LiveEvent):
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
    """The last line: the whole time, TCP's expected and measured throughput, and the thresholds' verdicts."""
    models = [expectation.as_dict() for expectation in expectations]
    tcp = {"assumption": common_assumption(expectations), "models": models, "measured": measured}
    return line("end", {"time_ns": time_ns, **summary.as_dict(), "tcp": tcp, "thresholds": thresholds})


def line(kind: str, values: dict[str, Any]) -> str:
    """One line. Args: kind: its type."""
    return json.dumps({"schema": SCHEMA, "type": kind, **values}, ensure_ascii=False, allow_nan=False)
