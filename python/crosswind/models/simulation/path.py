"""A simulated transfer's path, and the receiver at its end.

Both are passive and keep order. So a segment's outcome, and its acknowledgement's arrival, are known at its sending;
only a delayed acknowledgement may still be overtaken by the next segment.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from crosswind.models.slow_start import QUICK_ACKS

ACK_BYTES = 52  # RFC 791, 9293 and 7323: headers of IPv4 and TCP with timestamps
_DELAYED_ACK_S = 0.040
_ROUNDING_S = 1e-9


@dataclass(frozen=True)
class PathSettings:
    """The path, both ways. Rates are inf for an unlimited link, the queue for one without overflow.

    `serialisation_s`: a full segment's; `last_s`: the last one's; `ack_s`: an acknowledgement's. `tuned`: whether the
    receiver's window grows.
    """

    rtt_s: float
    loss: float
    loss_back: float
    serialisation_s: float
    last_s: float
    ack_s: float
    queue_packets: float = 1000
    tuned: bool = False


class _TunedWindow:
    """Linux's receive window until the first loss, in Ethernet segments: it grows by two with each segment.

    Its limit, at first 128 kB of buffer, follows the largest number of segments in a round trip.
    """

    def __init__(self, round_trip_s: float) -> None:
        self._round_trip_s = round_trip_s + _ROUNDING_S
        self._window, self._limit, self._most = 45.0, 57.0, 10
        self._since_s, self._counted = -math.inf, 0

    def grows(self, received: int, now_s: float) -> bool:
        """Whether the latest segment in order lets it grow; Linux acknowledges such a segment at once."""
        growing = self._window < self._limit
        self._window += 2 * growing
        if now_s - self._since_s > self._round_trip_s:
            came = received - self._counted
            if came > self._most:
                limit = (2 * came + 16) * (1 + 2 * (came - self._most) / self._most)
                self._limit, self._most = max(self._limit, limit), came
            self._since_s, self._counted = now_s, received
        return growing


class SimulatedPath:
    """A link with a queue, loss before it, and a receiver behind it.

    `received`: segments by first arrival. `acks`: acknowledgements on their way back, as arrival time and number of
    `received` covered (all selective blocks fit). `excess_losses`: lost segments beyond the expected number;
    `excess_last`: the last segment's. `lost`: packets lost at random, acknowledgements among them.
    """

    def __init__(self, settings: PathSettings, segments: int, random: Callable[[], float]) -> None:
        """`random`: numbers in [0, 1), one for each packet entering the path, for its random loss."""
        self.settings = settings
        self.segments = segments
        self.received: list[int] = []
        self.acks: deque[tuple[float, int]] = deque()
        self.first_arrival_s = math.inf
        self.last_arrival_s = math.inf
        self.excess_losses = self.excess_last = 0.0
        self.lost = 0
        self._random = random
        self._arrived = bytearray(self.segments)
        self._leaving: deque[float] = deque()
        self._free_s = 0.0
        self._back_free_s = 0.0
        self._expected = 0  # the first missing segment
        self._quick_acks = QUICK_ACKS
        round_trip_s = settings.rtt_s + settings.serialisation_s
        self._window = _TunedWindow(round_trip_s) if settings.tuned else None
        self._delayed_until_s = math.inf

    def send(self, segment: int, now_s: float) -> None:
        """Lets a segment enter the path. Times must not go back."""
        settings, leaving = self.settings, self._leaving
        lost, is_last = self._random() < settings.loss, segment == self.segments - 1
        self.excess_losses += lost - settings.loss
        if is_last:
            self.excess_last += lost - settings.loss
        if lost:
            self.lost += 1
            return
        while leaving and leaving[0] <= now_s + _ROUNDING_S:
            leaving.popleft()
        if len(leaving) > settings.queue_packets:  # one is in transmission
            return
        takes_s = settings.last_s if is_last else settings.serialisation_s
        arrival_s = (self._free_s if self._free_s > now_s else now_s) + takes_s
        self._free_s = arrival_s
        leaving.append(arrival_s)
        if self._delayed_until_s < arrival_s:
            self._acknowledge(self._delayed_until_s)
        self._receive(segment, arrival_s)

    def delayed_ack_s(self) -> float:
        """Arrival time of the delayed acknowledgement, unless something is sent before; inf for none."""
        return self._delayed_until_s + self.settings.ack_s + self.settings.rtt_s

    def send_delayed_ack(self) -> None:
        """Sends the delayed acknowledgement: it is now among `acks`, or lost."""
        self._acknowledge(self._delayed_until_s)

    def failure(self, segment: int) -> float:
        """Probability of no answer to a segment sent alone; for the only one missing, of its loss."""
        arrives = 1 - self.settings.loss
        if len(self.received) == self.segments - 1 and not self._arrived[segment]:
            return 1 - arrives
        return 1 - arrives * (1 - self.settings.loss_back)

    def _receive(self, segment: int, arrival_s: float) -> None:
        received, expected = self.received, self._expected
        if self._arrived[segment]:
            self._quick_acks = QUICK_ACKS
            self._acknowledge(arrival_s)
            return
        self._arrived[segment] = 1
        in_order = segment == expected == len(received)
        received.append(segment)
        if in_order:
            self._expected = expected + 1
        elif segment == expected:
            hole = self._arrived.find(0, expected)
            self._expected = hole if hole >= 0 else self.segments
        if len(received) == 1:
            self.first_arrival_s = arrival_s
        if len(received) == self.segments:
            self.last_arrival_s = arrival_s
        if not in_order:
            self._window = None
        elif self._window and self._window.grows(len(received), arrival_s):
            self._quick_acks |= 1
        if not in_order or self._quick_acks or self._delayed_until_s < math.inf:
            self._acknowledge(arrival_s)
        else:
            self._delayed_until_s = arrival_s + _DELAYED_ACK_S

    def _acknowledge(self, time_s: float) -> None:
        self._delayed_until_s = math.inf
        if self._quick_acks:
            self._quick_acks -= 1
        if self._random() < self.settings.loss_back:
            self.lost += 1
            return
        free_s = self._back_free_s
        free_s = (free_s if free_s > time_s else time_s) + self.settings.ack_s
        self._back_free_s = free_s
        self.acks.append((free_s + self.settings.rtt_s, len(self.received)))
