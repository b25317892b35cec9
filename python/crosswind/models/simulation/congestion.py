"""Congestion control of simulated transfers, as Linux has it: Reno, and CUBIC with HyStart."""

import math

_CUBIC_BETA = 717 / 1024
_CUBIC_C = 410 / 1024
_CUBIC_RENO_EIGHTHS = 15  # segments for one of Reno's: 8 (1 + beta) / (3 (1 - beta)), rounded down
_CUBIC_TICKS = 31
CUBIC_FIRST = 20
"""Segments for at most one segment of window growth until the first loss, after slow start."""
_RECOVERY_S = 1.0
"""How long after a reduction round trips are not taken in."""
_HYSTART_LOW_WINDOW = 16
_HYSTART_SAMPLES = 8
_HYSTART_TRAIN_GAP_S = 0.002
_HYSTART_BURST_S = 0.001
_MICROSECOND_S = 1e-6  # the kernel's unit for such times
TICK_S = 0.001
"""The kernel clock's."""


class Reno:
    """RFC 5681 with byte counting: a segment acknowledged is a segment more in slow start, 1/cwnd of one after it."""

    def __init__(self, initial_window: int) -> None:
        self.cwnd = initial_window
        self.ssthresh = math.inf
        self._credit = 0

    def reduced(self) -> int:
        """The slow-start threshold after a loss."""
        return max(self.cwnd // 2, 2)

    def handle_loss(self) -> None:
        """A loss has been found."""
        self.ssthresh = self.reduced()
        self._credit = 0

    def handle_timeout(self) -> None:
        """The retransmission timer has expired."""
        self._credit = 0

    def handle_ack(self, acked: int, now_s: float) -> None:
        """Grows the window after an acknowledgement."""
        if self.cwnd < self.ssthresh:
            grown = int(min(acked, self.ssthresh - self.cwnd))
            self.cwnd += grown
            acked -= grown
        if acked:
            self._avoid(acked, self._segments_for_one(acked, now_s))

    def handle_round_trip(self, rtt_s: float, now_s: float, una: int, nxt: int) -> None:
        """A round trip was measured."""

    def _segments_for_one(self, acked: int, now_s: float) -> int:  # noqa: ARG002
        return self.cwnd

    def _avoid(self, acked: int, for_one: int) -> None:
        if self._credit >= for_one:
            self._credit = 0
            self.cwnd += 1
        self._credit += acked
        if self._credit >= for_one:
            self.cwnd += self._credit // for_one
            self._credit %= for_one


class Cubic(Reno):
    """RFC 9438 and HyStart (Ha & Rhee 2011), with the constants and update times in Linux."""

    def __init__(self, initial_window: int) -> None:
        super().__init__(initial_window)
        self._restart()

    def _restart(self) -> None:
        self._last_max = 0
        self._least_rtt_s = math.inf
        self._epoch_s = -1.0
        self._origin, self._k_s = 0, 0.0
        self._for_one, self._computed_for, self._computed_tick = 2, 0, 0
        self._acked = 0
        self._reno = 0
        self._found = False
        self._round_end = 0
        self._round_start_s = self._last_ack_s = 0.0
        self._round_samples = 0
        self._round_rtt_s = math.inf

    def reduced(self) -> int:
        """The slow-start threshold after a loss."""
        return max(int(self.cwnd * _CUBIC_BETA), 2)

    def handle_loss(self) -> None:
        """A loss has been found."""
        self._epoch_s = -1.0
        converging = self.cwnd < self._last_max
        self._last_max = int(self.cwnd * (1 + _CUBIC_BETA) / 2) if converging else self.cwnd
        super().handle_loss()

    def handle_timeout(self) -> None:
        """The retransmission timer has expired."""
        super().handle_timeout()
        self._restart()

    def handle_round_trip(self, rtt_s: float, now_s: float, una: int, nxt: int) -> None:
        """A round trip was measured. HyStart ends slow start when those of a round grow, or its ACKs last long."""
        if self._epoch_s >= 0 and now_s - self._epoch_s < _RECOVERY_S:
            return
        least = self._least_rtt_s = min(self._least_rtt_s, rtt_s)
        if self._found or self.cwnd >= self.ssthresh:
            return
        if una > self._round_end:
            self._round_end, self._round_start_s, self._last_ack_s = nxt, now_s, now_s
            self._round_samples, self._round_rtt_s = 0, math.inf
        if self.cwnd < _HYSTART_LOW_WINDOW:
            return
        if now_s - self._last_ack_s < _HYSTART_TRAIN_GAP_S + _MICROSECOND_S:
            self._last_ack_s = now_s
            self._found = now_s - self._round_start_s > (least + _HYSTART_BURST_S) / 2
        self._round_rtt_s = min(self._round_rtt_s, rtt_s)
        if self._round_samples < _HYSTART_SAMPLES:
            self._round_samples += 1
        else:
            self._found = self._found or self._round_rtt_s > least + _longer(least)
        if self._found:
            self.ssthresh = self.cwnd

    def _segments_for_one(self, acked: int, now_s: float) -> int:
        """How many segments must be acknowledged for the window to grow by one.

        It is computed anew when the window has changed, and else every 31 ms: with a short round trip the window stays
        as it is for some.
        """
        cwnd, tick = self.cwnd, int(now_s / TICK_S)
        self._acked += acked
        if self._computed_for == cwnd and tick - self._computed_tick <= _CUBIC_TICKS:
            return self._for_one
        for_one = self._for_one
        if self._epoch_s < 0 or tick != self._computed_tick:
            self._computed_for, self._computed_tick = cwnd, tick
            if self._epoch_s < 0:
                self._epoch_s, self._reno, self._acked = tick * TICK_S, cwnd, acked
                self._k_s = max(0.0, (self._last_max - cwnd) / _CUBIC_C) ** (1 / 3)
                self._origin = max(self._last_max, cwnd)
            for_one = self._by_cubic(tick * TICK_S - self._epoch_s)
        a_segment = cwnd * _CUBIC_RENO_EIGHTHS >> 3
        self._reno += max(0, self._acked - 1) // a_segment
        self._acked -= max(0, self._acked - 1) // a_segment * a_segment
        if self._reno > cwnd:
            for_one = min(for_one, cwnd // (self._reno - cwnd))
        self._for_one = max(for_one, 2)
        return self._for_one

    def _by_cubic(self, elapsed_s: float) -> int:
        cwnd = self.cwnd
        least_s = math.ceil(self._least_rtt_s / TICK_S) * TICK_S if self._least_rtt_s < math.inf else 0.0
        offset_s = elapsed_s + least_s - self._k_s
        grown = int(_CUBIC_C * abs(offset_s) ** 3)
        target = self._origin + (grown if offset_s >= 0 else -grown)
        for_one = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
        return for_one if self._last_max else min(for_one, CUBIC_FIRST)


def hystart_window(initial_window: int, rtt_s: float, serialisation_s: float) -> float:
    """The window at HyStart's exit from slow start on a link without loss, segments; inf on an unlimited one.

    Each round trip acknowledges a window of segments, spaced by the link; each segment adds one. It ends within a round
    whose ACKs come close together for half a round trip, or whose first ones have waited. Each segment has its own ACK,
    as long as the receiver's window grows.

    Args: rtt_s: without the link, s. serialisation_s: a segment's, s.
    """
    if serialisation_s == 0:
        return math.inf
    least = rtt_s + serialisation_s
    half = math.ceil((least + _HYSTART_BURST_S) / 2 / serialisation_s)
    window, waited_s = initial_window, 0.0
    while True:
        begins = max(0, _HYSTART_LOW_WINDOW - window)
        windows = []
        if max(1, begins) * serialisation_s <= _HYSTART_TRAIN_GAP_S and window >= max(half, begins):
            windows.append(max(half, begins))
        if waited_s > _longer(least) and window >= begins:
            windows.append(begins + _HYSTART_SAMPLES)
        if windows:
            return window + min(windows)
        window, waited_s = 2 * window, max(0.0, window * serialisation_s - least)


def _longer(least_s: float) -> float:
    """By how much a round trip must exceed the least one for HyStart, s."""
    return min(max(least_s / 8, 0.004), 0.016)
