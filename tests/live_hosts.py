"""A host that answers `crosswind live` as it is told, on a clock that is a number."""

from collections.abc import Container, Iterator

from crosswind.live.events import LiveEvent
from crosswind.live.probe import Reply
from crosswind.live.probes import ProbeOutcome
from crosswind.live.watch import News, Watch, WindowReport

MS = 10**6


class Host:
    """A host that answers as it is told, and the watch of it, on a clock that is a number. Times are milliseconds.

    Args: refused: probes that it refuses.
    """

    def __init__(
        self,
        *,
        interval: int = 100,
        timeout: int = 1000,
        window: int = 1000,
        outage: int = 3,
        refused: Container[int] = (),
    ) -> None:
        self.watch = Watch(
            interval_ns=interval * MS, timeout_ns=timeout * MS, window_ns=window * MS, start_ns=0, outage=outage,
            keeps_order=True, can_be_refused=bool(refused),
        )  # fmt: skip
        self.refused = refused
        self.now = 0
        self.replies: list[tuple[int, int, int | None]] = []
        self.news: list[News] = []

    def run(self, until: int, rtts: dict[int, int | None], *, default: int | None = 20, ttl: int = 64) -> None:
        """Sends and answers until a time. Args: rtts: by probe; None: no reply."""
        for now in range(self.now, until):
            self.now = now
            sequence = self.watch.probes.poll_send(self.now * MS)
            if sequence is not None:
                rtt = rtts.get(sequence, default)
                if rtt is not None:
                    self.replies.append((self.now + rtt, sequence, ttl))
            for reply in sorted(reply for reply in self.replies if reply[0] == self.now):
                self.watch.probes.handle_reply(
                    Reply(reply[1], reply[0] * MS, reply[2], is_refusal=reply[1] in self.refused)
                )
            self.news += self.watch.handle_time(self.now * MS)
        self.now = until

    @property
    def verdicts(self) -> list[tuple[int, float | None]]:
        """(number, round trip in ms) in the order of sending."""
        found = (each for each in self.news if isinstance(each, ProbeOutcome))
        return [(each.sequence, None if each.rtt_ns is None else each.rtt_ns / MS) for each in found]

    @property
    def windows(self) -> list[WindowReport]:
        return [each for each in self.news if isinstance(each, WindowReport)]

    @property
    def events(self) -> Iterator[tuple[str, float]]:
        return ((each.kind, each.at_ns / MS) for each in self.news if isinstance(each, LiveEvent))
