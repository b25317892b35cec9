"""A session's windows and events, for a page."""

from dataclasses import dataclass, field

from crosswind.live.events import LiveEvent
from crosswind.live.summary import Summary
from crosswind.live.watch import News, Watch, WindowReport

MOST_PERIODS = 120
"""Maximum periods in a chart."""


@dataclass
class History:
    """Collects a session's windows and events."""

    windows: list[WindowReport] = field(default_factory=list)
    events: list[LiveEvent] = field(default_factory=list)

    def handle_news(self, news: News) -> None:
        """Keeps everything but single probes."""
        if isinstance(news, WindowReport):
            self.windows.append(news)
        elif isinstance(news, LiveEvent):
            self.events.append(news)


@dataclass(frozen=True)
class WindowPeriod:
    """A window, or several in a row. start_ns, end_ns: since the start of the session."""

    start_ns: int
    end_ns: int
    summary: Summary


@dataclass(frozen=True)
class Outage:
    """An outage. Times since the start of the session; end_ns: None where it had not ended."""

    start_ns: int
    end_ns: int | None


def periods_of(history: History, watch: Watch) -> tuple[list[WindowPeriod], int]:
    """A session's windows; beyond MOST_PERIODS, several in a row are merged.

    Returns: (periods, windows in each but the last).
    """
    windows, together = history.windows, -(-len(history.windows) // MOST_PERIODS) or 1
    groups = [windows[at : at + together] for at in range(0, len(windows), together)]
    return [_period(group, watch) for group in groups], together


def outages_of(history: History, watch: Watch) -> list[Outage]:
    """The outages, one after another."""
    outages: list[Outage] = []
    for event in history.events:
        at_ns = event.at_ns - watch.start_ns
        if event.kind == "outage begins":
            outages.append(Outage(at_ns, None))
        elif event.kind == "outage ends" and outages:
            outages[-1] = Outage(outages[-1].start_ns, at_ns)
    return outages


def _period(group: list[WindowReport], watch: Watch) -> WindowPeriod:
    first, last = group[0], group[-1]
    # The jitter is the last window's, at the period's end.
    jitter_ns = last.summary.jitter_ns or 0.0
    summary = first.summary
    if len(group) > 1:
        summary = watch.summary(first.window.first, last.window.last, jitter_ns=jitter_ns)
    return WindowPeriod(first.window.start_ns - watch.start_ns, last.window.end_ns - watch.start_ns, summary)
