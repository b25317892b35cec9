"""Windows of time, one after another: a window has the probes that were sent in it."""

from dataclasses import dataclass

from crosswind.live.probes import Verdict


@dataclass(frozen=True)
class Window:
    """A window that is over. start_ns, end_ns: on the clock of the probes. first, last: its probes, `last` excluded."""

    start_ns: int
    end_ns: int
    first: int
    last: int


class Windows:
    """Cuts verdicts, which come in the order of sending, into windows.

    Args: length_ns: of a window. start_ns: of the first one.
    """

    def __init__(self, *, length_ns: int, start_ns: int) -> None:
        self.length_ns = length_ns
        self.start_ns = start_ns
        self.first = 0
        """The first probe of the window that is going on."""
        self._next = 0

    def handle_verdict(self, verdict: Verdict) -> Window | None:
        """The window that is over with this verdict, which is the first one of a later window."""
        ended = self.poll_window(verdict.sent_ns)
        self._next = verdict.sequence + 1
        return ended

    def poll_window(self, sent_ns: int) -> Window | None:
        """The window that is over where every later probe is sent at `sent_ns` or after; None where it goes on.

        A window without a probe, as in a pause, is passed over.
        """
        passed = (sent_ns - self.start_ns) // self.length_ns
        if passed < 1:
            return None
        window = Window(self.start_ns, self.start_ns + self.length_ns, self.first, self._next)
        self.start_ns += passed * self.length_ns
        self.first = self._next
        return window if window.last > window.first else None

    def close(self, now_ns: int) -> Window | None:
        """The window that is going on, cut off; None where it has no probe with a verdict."""
        window = Window(self.start_ns, min(now_ns, self.start_ns + self.length_ns), self.first, self._next)
        self.first = self._next
        self.start_ns = now_ns
        return window if window.last > window.first else None

    def change_length(self, length_ns: int, now_ns: int) -> Window | None:
        """Windows of another length from now on. Returns the one that is cut off."""
        ended = self.close(now_ns)
        self.length_ns = length_ns
        return ended
