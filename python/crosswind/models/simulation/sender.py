"""A simulated transfer's sender: TCP with selective acknowledgements, RACK, PRR and tail loss probes, as in Linux.

RFC 6298 (timer), RFC 6675 and 8985 (SACK, RACK-TLP), RFC 6937 (PRR); Linux's rules where it differs. Nothing in it is
fitted to measurements.
"""

import math
from collections import deque
from dataclasses import dataclass

from crosswind.models.simulation.congestion import TICK_S, Cubic, Reno
from crosswind.models.simulation.path import SimulatedPath

_DUPLICATES = 3  # segments known to be received behind a hole before it counts as a loss at once
_IN_FLIGHT, _LOST, _DELIVERED = 0, 1, 2
_OPEN, _RECOVERY, _LOSS = 0, 1, 2  # known losses: none, one under repair, a timeout

_LONGEST_S = 120.0


@dataclass(frozen=True)
class SenderSettings:
    """A host's TCP. `window_segments`: of the receiver or the buffers, inf where they are tuned."""

    cubic: bool
    initial_window: int
    window_segments: float
    min_rto_s: float
    probes: bool
    handshake_s: float


class Sender:
    """Sends one transfer's segments over a path, until all have arrived.

    `excess_wait_s`: how much longer than expected consecutive timeouts took. A segment sent alone after a timeout is
    acknowledged or not, whatever came before. So the expected wait is known, and the excess has mean 0 over all
    transfers.
    """

    def __init__(self, settings: SenderSettings, path: SimulatedPath) -> None:
        self._settings = settings
        self._path = path
        self._control: Reno = (Cubic if settings.cubic else Reno)(settings.initial_window)
        self._segments = path.segments
        self._fate = bytearray(self._segments)
        self._sent_s = [0.0] * self._segments
        self._times_sent = bytearray(self._segments)
        self._una = self._nxt = 0
        self._known = 0  # the acknowledged part of the path's `received`
        self._flying = self._lost = 0
        self._sacked = 0
        self._state = _OPEN
        self._recover = 0  # the segment whose acknowledgement ends the repair
        self._prr_delivered = self._prr_out = self._prr_before = 0
        self._in_order: deque[tuple[float, int]] = deque()  # sent segments and their times; also those arrived since
        self._rack = (-1.0, -1)  # sending time and index of the latest arrived segment
        self._rack_rtt_s = 0.0
        self._rto = RetransmissionTimeout(settings.handshake_s, settings.min_rto_s)
        self._timer_s = math.inf
        self._timer_is_probe = False
        self._reordering_s = math.inf
        self._probe_end = -1
        self._most_out = 0
        self._limited = False
        self._alone = False  # consecutive timeouts, for a segment sent alone
        self._timed_out_s = 0.0
        self.excess_wait_s = 0.0

    def run(self) -> None:
        """Sends everything. The path then knows when the first and the last segment arrived."""
        path, acks = self._path, self._path.acks
        self._transmit(0.0)
        while path.last_arrival_s == math.inf:
            timer_s = self._timer_s if self._timer_s < self._reordering_s else self._reordering_s
            if acks and acks[0][0] <= timer_s:
                now_s, known = acks.popleft()
                self._handle_ack(now_s, known)
                self._transmit(now_s)
            elif not acks and path.delayed_ack_s() <= timer_s:
                path.send_delayed_ack()
            else:
                self._handle_timer(timer_s)

    def _handle_timer(self, now_s: float) -> None:
        if self._reordering_s <= self._timer_s:
            self._reordering_s = math.inf
            if self._mark_losses(now_s) and self._state != _RECOVERY:
                self._enter_recovery()
                self._reduce(1, advanced=False, lost=True)
        elif self._timer_is_probe:
            self._probe(now_s)
            return
        else:
            self._handle_timeout(now_s)
        self._transmit(now_s)

    def _arm(self, now_s: float) -> None:
        """Restarts the timer: for a probe if nothing is under repair, else for a retransmission."""
        out = self._nxt - self._una
        if not out:
            self._timer_s = math.inf
            return
        timeout_s = self._rto.seconds()
        self._timer_is_probe = self._settings.probes and self._state == _OPEN and self._probe_end < 0
        if self._timer_is_probe:
            patience_s = 2 * self._rto.srtt_s + (self._settings.min_rto_s if out == 1 else 2 * TICK_S)
            timeout_s = min(timeout_s, patience_s)
        self._timer_s = now_s + timeout_s

    def _handle_ack(self, now_s: float, known: int) -> None:
        una, out = self._una, self._nxt - self._una
        delivered = self._deliver(now_s, known)
        advanced = self._una > una
        if advanced:
            self._rto.backoff = 0
            self._alone = False
        if self._probe_end >= 0 and self._una >= self._probe_end:
            self._end_probe()
        lost = self._mark_losses(now_s)
        if self._state != _OPEN and self._una >= self._recover:
            if self._state == _RECOVERY:
                self._control.cwnd = int(self._control.ssthresh)
            self._state = _OPEN
        if self._lost and (self._state == _OPEN or (self._state == _LOSS and lost == 2)):
            self._enter_recovery()
        if self._state == _RECOVERY:
            if delivered:
                self._reduce(delivered, advanced=advanced, lost=bool(lost))
        elif advanced and self._may_grow(out):
            self._control.handle_ack(delivered, now_s)
        if advanced:
            self._arm(now_s)

    def _may_grow(self, out: int) -> bool:
        """An unused window does not grow; in slow start it may reach twice the flight size."""
        self._most_out = max(self._most_out, out)
        return self._limited or (
            self._control.cwnd < self._control.ssthresh and self._control.cwnd < 2 * self._most_out
        )

    def _deliver(self, now_s: float, known: int) -> int:
        """Notes an acknowledgement's segments. Returns: the number of newly acknowledged ones."""
        fate, rtt_s = self._fate, math.inf
        rack_s, rack_segment = self._rack
        for segment in self._path.received[self._known : known]:
            if fate[segment] == _LOST:
                self._lost -= 1
            else:
                self._flying -= 1
            fate[segment] = _DELIVERED
            self._sacked += 1
            sent_s = self._sent_s[segment]
            elapsed_s = now_s - sent_s
            if self._times_sent[segment] == 1:
                rtt_s = elapsed_s if elapsed_s < rtt_s else rtt_s
            elif elapsed_s < self._rto.least_rtt_s:  # the answer to an earlier copy
                continue
            if sent_s > rack_s or (sent_s == rack_s and segment > rack_segment):
                rack_s, rack_segment, self._rack_rtt_s = sent_s, segment, elapsed_s
        self._rack = rack_s, rack_segment
        una = self._una
        while una < self._nxt and fate[una] == _DELIVERED:
            una += 1
        self._sacked -= una - self._una
        self._una = una
        delivered = known - self._known
        self._known += max(0, delivered)
        if rtt_s < math.inf:
            self._rto.measure(rtt_s)
            self._control.handle_round_trip(rtt_s, now_s, self._una, self._nxt)
        return max(0, delivered)

    def _mark_losses(self, now_s: float) -> int:
        """RACK. Returns: 2 for a newly lost segment with an earlier retransmission, 1 for others, 0 for none."""
        self._reordering_s = math.inf
        if not self._sacked and self._state == _OPEN:
            return 0
        if self._rack[1] < 0 or self._flying == 0:
            return 0
        wait_s = 0.0
        if self._state == _OPEN and self._sacked < _DUPLICATES:
            wait_s = min(self._rto.least_rtt_s / 4, self._rto.srtt_s / 8)
        lost = 0
        in_order, fate = self._in_order, self._fate
        while in_order:
            sent_s, segment = in_order[0]
            if fate[segment] == _IN_FLIGHT and self._sent_s[segment] == sent_s:
                if in_order[0] > self._rack:
                    break
                left_s = self._rack_rtt_s + wait_s - (now_s - sent_s)
                if left_s > 1e-9:
                    self._reordering_s = now_s + left_s
                    break
                fate[segment] = _LOST
                self._lost += 1
                self._flying -= 1
                lost = max(lost, min(2, self._times_sent[segment]))
            in_order.popleft()
        return lost

    def _enter_recovery(self) -> None:
        self._prr_before, self._prr_delivered, self._prr_out = self._control.cwnd, 0, 0
        self._control.handle_loss()
        self._state, self._recover, self._probe_end = _RECOVERY, self._nxt, -1

    def _reduce(self, delivered: int, *, advanced: bool, lost: bool) -> None:
        """PRR: the allowance for delivered segments during a repair."""
        threshold = int(self._control.ssthresh)
        self._prr_delivered += delivered
        if self._flying > threshold:
            allowed = -(-self._prr_delivered * threshold // self._prr_before) - self._prr_out
        else:
            allowed = max(self._prr_delivered - self._prr_out, delivered)
            if advanced and not lost:
                allowed += 1
            allowed = min(threshold - self._flying, allowed)
        allowed = max(allowed, 0 if self._prr_out else 1)
        self._control.cwnd = self._flying + allowed

    def _handle_timeout(self, now_s: float) -> None:
        progress = self._state == _LOSS and self._rto.backoff == 0
        if self._state == _OPEN or progress:
            self._control.handle_loss()
        self._control.handle_timeout()
        self._state, self._recover, self._probe_end = _LOSS, self._nxt, -1
        for segment in range(self._una, self._nxt):
            recent = segment != self._una and self._rack_rtt_s - (now_s - self._sent_s[segment]) > 0
            if self._fate[segment] == _IN_FLIGHT and not recent:
                self._fate[segment] = _LOST
                self._lost += 1
                self._flying -= 1
        self._control.cwnd = self._flying + 1
        self._rto.backoff += 1
        self._timer_s = math.inf
        self._count_wait(now_s)

    def _count_wait(self, now_s: float) -> None:
        if self._alone:
            self.excess_wait_s += now_s - self._timed_out_s
        elif not self._flying and self._segments > 1:  # one alone takes no time, whatever it waits
            self._alone = True
            self.excess_wait_s -= self._rto.expected_wait_s(self._path.failure(self._una))
        self._timed_out_s = now_s

    def _probe(self, now_s: float) -> None:
        """A tail loss probe: something new, else the last segment again."""
        if self._nxt < self._segments and self._nxt - self._una < self._settings.window_segments:
            self._send(self._nxt, now_s)
            self._nxt += 1
            self._probe_end = self._nxt
        else:
            last = self._nxt - 1
            if self._fate[last] != _DELIVERED:
                self._flying -= 1
                self._send(last, now_s)
            self._probe_end = self._nxt
        self._arm(now_s)

    def _end_probe(self) -> None:
        """A probe with a lost segment has hidden a loss; it halves the window nevertheless."""
        if self._state == _OPEN and self._times_sent[self._probe_end - 1] > 1:
            self._control.handle_loss()
            self._control.cwnd = int(self._control.ssthresh)
        self._probe_end = -1

    def _transmit(self, now_s: float) -> None:
        """Sends lost segments first, then new ones, within the windows."""
        cwnd, lost_from = self._control.cwnd, self._una
        armed = self._timer_s < math.inf
        end = min(self._segments, self._una + self._settings.window_segments)
        while self._flying < cwnd:
            if self._lost:
                lost_from = self._fate.index(_LOST, lost_from)
                self._fate[lost_from] = _IN_FLIGHT
                self._lost -= 1
                self._send(lost_from, now_s)
                armed = armed and lost_from != self._una
            elif self._nxt < end:
                self._send(self._nxt, now_s)
                self._nxt += 1
            else:
                break
            self._prr_out += 1
        self._limited = self._flying >= cwnd
        if not armed:
            self._arm(now_s)

    def _send(self, segment: int, now_s: float) -> None:
        self._flying += 1
        self._sent_s[segment] = now_s
        if self._times_sent[segment] < 2:  # once, or again
            self._times_sent[segment] += 1
        self._in_order.append((now_s, segment))
        self._path.send(segment, now_s)


class RetransmissionTimeout:
    """The timeout from the round trips so far, doubled with each consecutive timeout.

    Attributes: srtt_s: smoothed round trip. least_rtt_s: the shortest one. backoff: timeouts in a row.
    """

    def __init__(self, handshake_s: float, min_rto_s: float) -> None:
        self._min_rto_s = min_rto_s
        self._variation_s = handshake_s / 2
        self.srtt_s = self.least_rtt_s = handshake_s
        self.backoff = 0

    def measure(self, rtt_s: float) -> None:
        """Takes in a round trip from a segment sent once."""
        self.least_rtt_s = min(self.least_rtt_s, rtt_s)
        self._variation_s += (abs(rtt_s - self.srtt_s) - self._variation_s) / 4
        self.srtt_s += (rtt_s - self.srtt_s) / 8

    def seconds(self) -> float:
        """The timeout now."""
        least_s, varied_s = self._min_rto_s, 4 * self._variation_s
        timeout_s = self.srtt_s + (varied_s if varied_s > least_s else least_s)
        return float(min(timeout_s * 2**self.backoff, _LONGEST_S))

    def expected_wait_s(self, failure: float) -> float:
        """Expected wait in the timeouts after this one, each with the probability `failure` after the one before."""
        expected_s, reached = 0.0, failure
        timeout_s = self.seconds()
        while timeout_s < _LONGEST_S and reached > 0:
            expected_s += reached * timeout_s
            reached *= failure
            timeout_s = min(2 * timeout_s, _LONGEST_S)
        return expected_s + reached * timeout_s / (1 - failure)
