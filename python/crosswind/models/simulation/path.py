"""The path of a simulated transfer and the receiver at its end.

Both are passive and keep order. So what becomes of a segment, and when its acknowledgement is back, is known as soon as
it is sent; only an acknowledgement that is delayed may still be overtaken by the next segment.
"""

import math
from collections import deque
from dataclasses import dataclass
from random import Random

ACK_BYTES = 52  # RFC 791, 9293 and 7323: headers of IPv4 and TCP with timestamps
_DELAYED_ACK_S = 0.040
_QUICK_ACKS = 16  # of a new connection, and after something that came twice: Linux's TCP_MAX_QUICKACKS


@dataclass(frozen=True)
class PathSettings:
    """The path, both ways. Rates are inf where the link is unlimited, the queue where it never overflows.

    `serialisation_s`: of a full segment; `last_s`: of the last one; `ack_s`: of an acknowledgement.
    """

    rtt_s: float
    loss: float
    loss_back: float
    serialisation_s: float
    last_s: float
    ack_s: float
    queue_packets: float = 1000


class Path:
    """A link with a queue, loss before it, and a receiver behind it.

    `received` are the segments in the order in which they arrived for the first time; an acknowledgement is a time
    and how many of them it tells of (all its selective blocks fit).
    """

    def __init__(self, settings: PathSettings, segments: int, random: Random) -> None:
        self.settings = settings
        self.segments = segments
        self.received: list[int] = []
        self.first_arrival_s = math.inf
        self.last_arrival_s = math.inf
        self._acks: deque[tuple[float, int]] = deque()
        self._random = random.random
        self._arrived = bytearray(segments)
        self._leaving: deque[float] = deque()
        self._free_s = 0.0
        self._back_free_s = 0.0
        self._expected = 0  # the first segment that has not arrived
        self._quick_acks = _QUICK_ACKS
        self._delayed_since_s = math.inf

    def send(self, segment: int, now_s: float) -> None:
        """Lets a segment enter the path. Times must not go back."""
        settings, leaving = self.settings, self._leaving
        if self._random() < settings.loss:
            return
        while leaving and leaving[0] <= now_s:
            leaving.popleft()
        if len(leaving) > settings.queue_packets:  # one of them is in transmission
            return
        takes_s = settings.last_s if segment == self.segments - 1 else settings.serialisation_s
        self._free_s = max(self._free_s, now_s) + takes_s
        leaving.append(self._free_s)
        self._receive(segment, self._free_s)

    def next_ack_s(self) -> float:
        """When the next acknowledgement is back, unless something is sent before; inf when none is on its way."""
        if self._acks:
            return self._acks[0][0]
        return self._delayed_since_s + _DELAYED_ACK_S + self.settings.ack_s + self.settings.rtt_s

    def take_ack(self) -> tuple[float, int] | None:
        """The next acknowledgement: when it is back, and of how many of `received` it tells; None when it was lost."""
        if not self._acks:
            self._acknowledge(self._delayed_since_s + _DELAYED_ACK_S)
        return self._acks.popleft() if self._acks else None

    def _receive(self, segment: int, arrival_s: float) -> None:
        if self._delayed_since_s + _DELAYED_ACK_S < arrival_s:
            self._acknowledge(self._delayed_since_s + _DELAYED_ACK_S)
        new = not self._arrived[segment]
        holes_before = len(self.received) > self._expected
        if new:
            self._note(segment, arrival_s)
        else:
            self._quick_acks = _QUICK_ACKS
        second = self._delayed_since_s < math.inf
        if not new or holes_before or len(self.received) > self._expected or second or self._quick_acks:
            self._acknowledge(arrival_s)
        else:
            self._delayed_since_s = arrival_s

    def _note(self, segment: int, arrival_s: float) -> None:
        self._arrived[segment] = 1
        self.received.append(segment)
        while self._expected < self.segments and self._arrived[self._expected]:
            self._expected += 1
        if len(self.received) == 1:
            self.first_arrival_s = arrival_s
        if len(self.received) == self.segments:
            self.last_arrival_s = arrival_s

    def _acknowledge(self, time_s: float) -> None:
        self._delayed_since_s = math.inf
        self._quick_acks = max(0, self._quick_acks - 1)
        if self._random() >= self.settings.loss_back:
            self._back_free_s = max(self._back_free_s, time_s) + self.settings.ack_s
            self._acks.append((self._back_free_s + self.settings.rtt_s, len(self.received)))
