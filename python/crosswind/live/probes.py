"""A host's probes: their schedule, and each one's outcome.

A probe has a sequence number, from 0. It is answered or refused if its reply came within the timeout, and lost
otherwise; a later reply is late and changes nothing (RFC 7680 calls the timeout the waiting time). Times are
nanoseconds on one monotonic clock.
"""

from array import array
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.live.one_way import UNKNOWN, Located, OneWay
from crosswind.live.probe import Reply
from crosswind.stats.arrays import Array

Flags = npt.NDArray[np.bool_]

LOST_RTT = -1
PENDING = -2
"""Placeholder for a round-trip time."""

_SMOOTHING = 16
"""RFC 3550, section 6.4.1: the interarrival jitter's gain is 1/16."""


@dataclass(frozen=True)
class ProbeOutcome:
    """One probe's outcome.

    rtt_ns: until the answer or the refusal; None if lost. ttl: the reply's, None if unknown.
    """

    sequence: int
    sent_ns: int
    rtt_ns: int | None
    ttl: int | None = None
    is_refused: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether it is neither lost nor refused."""
        return self.rtt_ns is not None and not self.is_refused


@dataclass(frozen=True)
class Slice:
    """Outcomes of the probes first <= sequence < last, in sending order.

    Attributes:
        rtt_ns: float64, shape (decided,): round-trip times; NaN for lost or refused probes. sent: all probes, undecided
            ones included. late, duplicates: replies after the timeout, and second ones.
            is_reordered: bool, shape (decided,): whether the reply came after one with a higher number (RFC 4737).
            is_refused: bool, shape (decided,). way: int8, shape (decided,): a lost probe's direction, as in `one_way`.
    """

    rtt_ns: Array
    sent: int
    late: int
    duplicates: int
    is_reordered: Flags
    is_refused: Flags
    way: npt.NDArray[np.int8]

    @property
    def answered(self) -> Array:
        """Round-trip times, ns, shape (answered,)."""
        return self.rtt_ns[self.is_answered]

    @property
    def is_answered(self) -> Flags:
        """Shape (decided,)."""
        return ~np.isnan(self.rtt_ns)

    @property
    def is_lost(self) -> Flags:
        """Shape (decided,): without any reply within the timeout."""
        return np.isnan(self.rtt_ns) & ~self.is_refused

    @property
    def lost(self) -> int:
        """Probes without any reply within the timeout."""
        return int(self.is_lost.sum())

    @property
    def refused(self) -> int:
        """Probes refused by the host."""
        return int(self.is_refused.sum())

    @property
    def reordered(self) -> int:
        """Replies out of order."""
        return int(self.is_reordered.sum())

    @property
    def delay_variation(self) -> Array:
        """RFC 3393's IPDV: round-trip time minus the previous probe's, ns; for answered pairs."""
        steps = np.diff(self.rtt_ns)
        return steps[~np.isnan(steps)]


class Probes:
    """The state of all probes. Commands and replies go in, verdicts come out in sending order.

    Args: interval_ns: between two probes. timeout_ns: for a reply. start_ns: the first probe's.
    """

    def __init__(self, *, interval_ns: int, timeout_ns: int, start_ns: int) -> None:
        self.interval_ns = interval_ns
        self.timeout_ns = timeout_ns
        self.is_sending = True
        self.jitter_ns = 0.0
        """RFC 3550's interarrival jitter, over round trips in order of arrival."""
        self._next_send_ns = start_ns
        self._sent_ns = array("q")
        self._rtt_ns = array("q")
        self._late, self._duplicates, self._reordered = bytearray(), bytearray(), bytearray()
        self._refused, self._way = bytearray(), bytearray()
        self._replies: dict[int, Reply] = {}
        self._one_way = OneWay()
        self._located: deque[Located] = deque()
        self._waiting: deque[int] = deque()
        self._expected = 0
        self._decided = 0
        self._last_rtt_ns: int | None = None

    @property
    def sent(self) -> int:
        """How many were sent."""
        return len(self._sent_ns)

    @property
    def decided(self) -> int:
        """The number of verdicts handed out by `poll_verdict`: all earlier probes are decided."""
        return self._decided

    def next_wakeup(self) -> int | None:
        """When to call `poll_send` or `handle_time` again; None where nothing is waited for."""
        self._forget_decided()
        deadline = self._sent_ns[self._waiting[0]] + self.timeout_ns if self._waiting else None
        if not self.is_sending:
            return deadline
        return self._next_send_ns if deadline is None else min(deadline, self._next_send_ns)

    def poll_send(self, now_ns: int) -> int | None:
        """The number of a probe to send now, if one is due.

        After a delay, because the machine slept, it is one probe and no burst.
        """
        if not self.is_sending or now_ns < self._next_send_ns:
            return None
        self._next_send_ns += self.interval_ns * (1 + (now_ns - self._next_send_ns) // self.interval_ns)
        number = self.sent
        self._sent_ns.append(now_ns)
        self._rtt_ns.append(PENDING)
        for marks in (self._late, self._duplicates, self._reordered, self._refused, self._way):
            marks.append(0)
        self._waiting.append(number)
        return number

    def handle_sent(self, sequence: int, sent_ns: int) -> None:
        """Records a probe's actual sending time."""
        self._sent_ns[sequence] = sent_ns

    def handle_reply(self, reply: Reply) -> None:
        """Handles a reply. One to an unsent probe is ignored."""
        sequence = reply.sequence
        if not 0 <= sequence < self.sent:
            return
        if self._rtt_ns[sequence] >= 0 or self._late[sequence]:
            self._duplicates[sequence] = min(255, self._duplicates[sequence] + 1)
            return
        rtt_ns = max(0, reply.received_ns - self._sent_ns[sequence])
        if self._rtt_ns[sequence] == LOST_RTT or rtt_ns > self.timeout_ns:
            self._late[sequence], self._way[sequence] = 1, UNKNOWN  # It has gone both ways.
            return
        self._rtt_ns[sequence] = rtt_ns
        self._replies[sequence] = reply
        if reply.is_refusal:
            self._refused[sequence] = 1
            return
        if sequence < self._expected:
            self._reordered[sequence] = 1
        self._expected = max(self._expected, sequence + 1)
        if self._last_rtt_ns is not None:
            self.jitter_ns += (abs(rtt_ns - self._last_rtt_ns) - self.jitter_ns) / _SMOOTHING
        self._last_rtt_ns = rtt_ns

    def handle_failure(self, sequence: int) -> None:
        """Marks a probe as lost at once: sending failed, or it is known not to have arrived."""
        if 0 <= sequence < self.sent and self._rtt_ns[sequence] == PENDING:
            self._rtt_ns[sequence] = LOST_RTT

    def handle_time(self, now_ns: int) -> None:
        """Gives up probes after their timeout. New replies are to be handed in before."""
        self._forget_decided()
        while self._waiting and now_ns >= self._sent_ns[self._waiting[0]] + self.timeout_ns:
            self.handle_failure(self._waiting.popleft())
            self._forget_decided()

    def poll_verdict(self) -> ProbeOutcome | None:
        """The next verdict, in sending order."""
        number = self._decided
        if number == self.sent or self._rtt_ns[number] == PENDING:
            return None
        self._decided += 1
        rtt_ns, reply = self._rtt_ns[number], self._replies.pop(number, None)
        if reply is None:
            self._one_way.handle_lost(number)
            return ProbeOutcome(number, self._sent_ns[number], None)
        for lost in self._one_way.handle_answered(reply.arrivals):
            if not self._late[lost.sequence]:
                self._way[lost.sequence] = lost.way
                self._located.append(lost)
        return ProbeOutcome(number, self._sent_ns[number], rtt_ns, reply.ttl, reply.is_refusal)

    def poll_located(self) -> Located | None:
        """The next located lost probe."""
        return self._located.popleft() if self._located else None

    def horizon(self, now_ns: int) -> int:
        """The earliest possible sending time of an undecided probe."""
        return self._sent_ns[self._decided] if self._decided < self.sent else now_ns

    def pause(self) -> None:
        """Sends nothing until `resume`."""
        self.is_sending = False

    def resume(self, now_ns: int) -> None:
        """Goes on sending."""
        self.is_sending = True
        self._next_send_ns = max(self._next_send_ns, now_ns)

    def between(self, first: int, last: int) -> Slice:
        """Some probes' outcomes so far. Undecided ones are only counted as sent."""
        rtt_ns = np.array(self._rtt_ns[first:last], dtype=np.float64)
        is_decided = rtt_ns != PENDING
        rtt_ns = rtt_ns[is_decided]
        rtt_ns[rtt_ns == LOST_RTT] = np.nan
        is_reordered, is_refused = (
            np.frombuffer(bytes(marks[first:last]), dtype=np.bool_)[is_decided]
            for marks in (self._reordered, self._refused)
        )
        rtt_ns[is_refused] = np.nan
        late, duplicates = (sum(marks[first:last]) for marks in (self._late, self._duplicates))
        way = np.frombuffer(bytes(self._way[first:last]), dtype=np.int8)[is_decided]
        return Slice(rtt_ns, min(last, self.sent) - first, late, duplicates, is_reordered, is_refused, way)

    def sent_between(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Some probes' sending times, ns, shape (last - first,)."""
        return np.array(self._sent_ns[first:last], dtype=np.int64)

    def _forget_decided(self) -> None:
        while self._waiting and self._rtt_ns[self._waiting[0]] != PENDING:
            self._waiting.popleft()
