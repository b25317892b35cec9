"""All knowledge about a host: probes, their windows, and events. No clock is read here."""

from collections.abc import Iterator
from dataclasses import dataclass

from crosswind.live.events import LiveEvent, Outages, Routes, Steps
from crosswind.live.one_way import Located
from crosswind.live.probes import ProbeOutcome, Probes
from crosswind.live.summary import Summary, summarise


@dataclass(frozen=True)
class ProbeWindow:
    """An ended window. start_ns, end_ns: on the probes' clock. first, last: its probes, `last` excluded."""

    start_ns: int
    end_ns: int
    first: int
    last: int


class Windows:
    """Cuts verdicts, in sending order, into windows. Args: length_ns: a window's. start_ns: the first one's."""

    def __init__(self, *, length_ns: int, start_ns: int) -> None:
        self.length_ns = length_ns
        self.start_ns = start_ns
        self.first = 0
        """The open window's first probe."""
        self._next = 0

    def handle_verdict(self, verdict: ProbeOutcome) -> ProbeWindow | None:
        """The window ended by this verdict, the first in a later window."""
        ended = self.poll_window(verdict.sent_ns)
        self._next = verdict.sequence + 1
        return ended

    def poll_window(self, sent_ns: int) -> ProbeWindow | None:
        """The ended window, if every later probe is sent at `sent_ns` or after; None for an open one.

        A window without a probe, as in a pause, is passed over.
        """
        passed = (sent_ns - self.start_ns) // self.length_ns
        if passed < 1:
            return None
        window = ProbeWindow(self.start_ns, self.start_ns + self.length_ns, self.first, self._next)
        self.start_ns += passed * self.length_ns
        self.first = self._next
        return window if window.last > window.first else None

    def close(self, now_ns: int) -> ProbeWindow | None:
        """The open window, cut off; None without a verdict in it."""
        window = ProbeWindow(self.start_ns, min(now_ns, self.start_ns + self.length_ns), self.first, self._next)
        self.first = self._next
        self.start_ns = now_ns
        return window if window.last > window.first else None

    def change_length(self, length_ns: int, now_ns: int) -> ProbeWindow | None:
        """Changes the length of windows from now on. Returns the one cut off."""
        ended = self.close(now_ns)
        self.length_ns = length_ns
        return ended


@dataclass(frozen=True)
class WindowReport:
    """An ended window, with its summary."""

    window: ProbeWindow
    summary: Summary


News = ProbeOutcome | WindowReport | LiveEvent | Located


class Watch:
    """Args: as of Probes, Windows and Probe. outage: how many probes in a row without an answer are one."""

    def __init__(
        self,
        *,
        interval_ns: int,
        timeout_ns: int,
        window_ns: int,
        start_ns: int,
        outage: int,
        keeps_order: bool,
        tells_ways: bool = False,
        can_be_refused: bool = False,
    ) -> None:
        self.start_ns = start_ns
        self.keeps_order, self.tells_ways, self.can_be_refused = keeps_order, tells_ways, can_be_refused
        self.probes = Probes(interval_ns=interval_ns, timeout_ns=timeout_ns, start_ns=start_ns)
        self.windows = Windows(length_ns=window_ns, start_ns=start_ns)
        self._outages, self._routes, self._steps = Outages(least=outage), Routes(), Steps()
        self._answered = 0

    @property
    def has_answered(self) -> bool:
        """Whether the host ever did."""
        return self._answered > 0

    @property
    def is_out(self) -> bool:
        """Whether there is an outage now."""
        return self._outages.is_out

    @property
    def is_settled(self) -> bool:
        """Whether every sent probe has a verdict."""
        return self.probes.decided == self.probes.sent

    def handle_time(self, now_ns: int) -> Iterator[News]:
        """News at a time, in order. New replies are to be handed to `probes` before."""
        self.probes.handle_time(now_ns)
        while (verdict := self.probes.poll_verdict()) is not None:
            yield from self._of_window(self.windows.handle_verdict(verdict))
            self._answered += verdict.is_answered
            yield verdict
            while (located := self.probes.poll_located()) is not None:
                yield located
            yield from filter(None, (self._outages.handle_verdict(verdict), self._routes.handle_verdict(verdict)))
        yield from self._of_window(self.windows.poll_window(self.probes.horizon(now_ns)))

    def change_window(self, length_ns: int, now_ns: int) -> Iterator[News]:
        """Changes the length of windows from now on."""
        yield from self._of_window(self.windows.change_length(length_ns, now_ns))

    def close(self, now_ns: int) -> Iterator[News]:
        """The last window, cut off."""
        yield from self._of_window(self.windows.close(now_ns))

    def current(self) -> Summary:
        """The open window."""
        return self.summary(self.windows.first, self.probes.sent, jitter_ns=self.probes.jitter_ns)

    def total(self) -> Summary:
        """All probes so far."""
        return self.summary(0, self.probes.sent, jitter_ns=self.probes.jitter_ns)

    def summary(self, first: int, last: int, *, jitter_ns: float) -> Summary:
        """Some probes, `last` excluded. Args: jitter_ns: as it was at their end."""
        part = self.probes.between(first, last)
        return summarise(
            part, jitter_ns=jitter_ns, keeps_order=self.keeps_order, tells_ways=self.tells_ways,
            can_be_refused=self.can_be_refused,
        )  # fmt: skip

    def _of_window(self, window: ProbeWindow | None) -> Iterator[News]:
        if window is None:
            return
        summary = self.summary(window.first, window.last, jitter_ns=self.probes.jitter_ns)
        yield WindowReport(window, summary)
        if summary.median is not None:
            step = self._steps.handle_median(summary.median, window.start_ns)
            if step is not None:
                yield step
