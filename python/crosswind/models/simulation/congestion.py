"""Congestion control of simulated transfers, as Linux has it: Reno, and CUBIC with HyStart."""

import math

_CUBIC_BETA = 717 / 1024
_CUBIC_C = 0.4
_HYSTART_LOW_WINDOW = 16
_HYSTART_SAMPLES = 8
_HYSTART_TRAIN_GAP_S = 0.002


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
        """Grows the window by what was newly acknowledged."""
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
    """RFC 9438 and HyStart (Ha & Rhee 2011), with the constants of Linux."""

    def __init__(self, initial_window: int) -> None:
        super().__init__(initial_window)
        self._last_max = 0.0
        self._least_rtt_s = math.inf
        self._restart()

    def _restart(self) -> None:
        self._epoch_s = -1.0
        self._origin = self._k = 0.0
        self._reno = 0.0
        self._reno_credit = 0.0
        self._round_end = -1
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
        self._last_max = self.cwnd * (1 + _CUBIC_BETA) / 2 if converging else float(self.cwnd)
        super().handle_loss()

    def handle_timeout(self) -> None:
        """The retransmission timer has expired."""
        super().handle_timeout()
        self._last_max = 0.0
        self._restart()

    def handle_round_trip(self, rtt_s: float, now_s: float, una: int, nxt: int) -> None:
        """A round trip was measured. HyStart ends slow start when those of a round grow, or its ACKs last long."""
        self._least_rtt_s = min(self._least_rtt_s, rtt_s)
        if self.cwnd >= self.ssthresh:
            return
        if una >= self._round_end:
            self._round_end, self._round_start_s, self._last_ack_s = nxt, now_s, now_s
            self._round_samples, self._round_rtt_s = 0, math.inf
        least = self._least_rtt_s
        full = False
        if now_s - self._last_ack_s <= _HYSTART_TRAIN_GAP_S:
            self._last_ack_s = now_s
            full = now_s - self._round_start_s > least / 2
        if self._round_samples < _HYSTART_SAMPLES:
            self._round_samples += 1
            self._round_rtt_s = min(self._round_rtt_s, rtt_s)
        else:
            full = full or self._round_rtt_s > least + min(max(least / 8, 0.004), 0.016)
        if full and self.cwnd >= _HYSTART_LOW_WINDOW:
            self.ssthresh = self.cwnd

    def _segments_for_one(self, acked: int, now_s: float) -> int:
        cwnd = self.cwnd
        if self._epoch_s < 0:
            self._epoch_s, self._reno, self._reno_credit = now_s, float(cwnd), 0.0
            self._k = 0.0 if self._last_max <= cwnd else ((self._last_max - cwnd) / _CUBIC_C) ** (1 / 3)
            self._origin = max(self._last_max, float(cwnd))
        elapsed_s = now_s - self._epoch_s + self._least_rtt_s
        target = self._origin + _CUBIC_C * (elapsed_s - self._k) ** 3
        for_one = cwnd / (target - cwnd) if target > cwnd else 100.0 * cwnd
        if not self._last_max:
            for_one = min(for_one, 20.0)
        self._reno_credit += acked
        a_segment = cwnd * (1 + _CUBIC_BETA) / (3 * (1 - _CUBIC_BETA))
        self._reno += self._reno_credit // a_segment
        self._reno_credit %= a_segment
        if self._reno > cwnd:
            for_one = min(for_one, cwnd / (self._reno - cwnd))
        return max(int(for_one), 2)
