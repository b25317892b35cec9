"""How a watch is shown: in plain lines, as JSON lines. `screen` is the one for terminals."""

from typing import Protocol

import click

from crosswind.live.expectations import Expectation, expectations_of
from crosswind.live.lines import expectation_lines, line_of, window_text
from crosswind.live.record import end_line, json_line, line
from crosswind.live.targets import Target
from crosswind.live.thresholds import Judged
from crosswind.live.watch import News, Watch


class View(Protocol):
    """Who looks at a watch."""

    def begin(self) -> None:
        """Before the first probe."""

    def show(self, news: News) -> None:
        """Something new."""

    def end(self, ended_ns: int, judged: list[Judged]) -> None:
        """After the last probe. Args: judged: the thresholds."""


class Lines:
    """Plain lines on standard output: one for each window and each event, and a summary at the end.

    Args: rate_bps: of the slowest link, None where nobody said.
    """

    def __init__(self, watch: Watch, target: Target, probe: str, *, interval_ns: int, rate_bps: int | None) -> None:
        self._watch, self._target, self._probe = watch, target, probe
        self._interval_ns, self._rate_bps = interval_ns, rate_bps

    def begin(self) -> None:
        """Says what is probed."""
        click.echo(f"{self._target}: {self._probe}, one probe every {self._interval_ns / 1e6:g} ms")

    def show(self, news: News) -> None:
        """A line for a window or an event."""
        text = line_of(news, self._watch.start_ns)
        if text is not None:
            click.echo(text)

    def end(self, ended_ns: int, judged: list[Judged]) -> None:
        """The whole time, what TCP can get, and the thresholds."""
        click.echo(f"In {(ended_ns - self._watch.start_ns) / 1e9:.1f} s: {window_text(self._watch.total())}.")
        for text in expectation_lines(expectations(self._watch, self._target, self._rate_bps)):
            click.echo(text)
        for each in judged:
            click.echo(each.sentence)


class JsonLines:
    """JSON lines on standard output. Args: as of Lines. with_probes: a line for each probe too."""

    def __init__(
        self, watch: Watch, target: Target, probe: str, *, interval_ns: int, rate_bps: int | None, with_probes: bool
    ) -> None:
        self._watch, self._target, self._probe = watch, target, probe
        self._interval_ns, self._rate_bps, self._with_probes = interval_ns, rate_bps, with_probes

    def begin(self) -> None:
        """Says what is probed."""
        values = {
            "host": self._target.name,
            "address": self._target.number,
            "probe": self._probe,
            "interval_ns": self._interval_ns,
            "timeout_ns": self._watch.probes.timeout_ns,
            "window_ns": self._watch.windows.length_ns,
        }
        click.echo(line("start", values))

    def show(self, news: News) -> None:
        """A line for a window or an event, and for a probe where that is asked for."""
        text = json_line(news, self._watch.start_ns, with_probes=self._with_probes)
        if text is not None:
            click.echo(text)

    def end(self, ended_ns: int, judged: list[Judged]) -> None:
        """The last line."""
        found = expectations(self._watch, self._target, self._rate_bps)
        thresholds = [each.as_dict() for each in judged]
        click.echo(end_line(self._watch.total(), found, thresholds, ended_ns - self._watch.start_ns))


def expectations(watch: Watch, target: Target, rate_bps: int | None) -> list[Expectation]:
    """What TCP can get, by all probes so far."""
    return expectations_of(watch.probes.between(0, watch.probes.sent), family=target.family_name, rate_bps=rate_bps)
