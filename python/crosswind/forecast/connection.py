"""How fast a connection over a path is: what losses, windows and links cost, as far as parameters alone can tell.

Formulas of forecasts, for TCP from the hosts' settings, and for QUIC from RFC 9002.
"""

import math
from dataclasses import dataclass

from crosswind.catalog import TRANSPORTS
from crosswind.study.cells import Parameters
from crosswind.study.path import DirectionParameters

EXCHANGE_NS = 100_000
"""What a round trip takes on a path without delay."""

FASTEST_BPS = 2_000_000_000
"""What stands for an unlimited link."""

SYN_TIMEOUT_NS = 1_000_000_000  # RFC 6298, section 2.1; RFC 9002, section 6.2.2: a third less, and doubled
QUIC_TIMEOUT_NS = 30_000_000  # RFC 9002, section 6.2.1: max_ack_delay of 25 ms and some variance, beyond the round trip
TCP_BYTES = 32  # RFC 9293: 20; RFC 7323: timestamps, 12 with their padding
QUIC_BYTES = 37  # RFC 768: 8; RFC 9000, section 17.3: 1, an ID of 8 and a number of 2; 16 of authentication; a frame 2
MOST_LOSS = 0.9  # beyond, no formula means anything, and nothing arrives


def waits_ns(loss: float, timer_ns: float, limit_ns: float) -> tuple[float, float]:
    """Mean and standard deviation of what losses of one packet cost, resent on a doubling timer until `limit_ns`.

    k losses in a row cost timer x (2^k - 1), with probability (1 - loss) loss^k (models/ping_pong.py, where nothing is
    ever given up and the mean is timer x loss / (1 - 2 loss)); here it is finite for every loss.
    """
    mean = square = 0.0
    reached, wait_ns = 1.0, 0.0
    while wait_ns < limit_ns:
        mean += reached * (1 - loss) * wait_ns
        square += reached * (1 - loss) * wait_ns**2
        reached *= loss
        wait_ns = 2 * wait_ns + timer_ns
    mean += reached * limit_ns
    square += reached * limit_ns**2
    return mean, math.sqrt(max(0.0, square - mean**2))


@dataclass(frozen=True)
class Host:
    """What of the hosts' settings decides how fast tcp is, and what stands for them under QUIC."""

    rtt_ns: float
    min_rto_ns: int
    initial_window: int
    window_segments: float
    probes: bool
    ignores_loss: bool

    @property
    def timeout_ns(self) -> float:
        """First retransmission timeout, as Linux has it: the round trip and the smallest; of QUIC a probe timeout."""
        return self.rtt_ns + self.min_rto_ns

    def timeout_share(self, loss: float, window: float) -> float:
        """Share of losses that end in a timeout: 3 / window (PFTK), and where a tail loss probe helps out 2 x loss.

        For then it takes a loss of what is resent. That is a fit by eye: CUBIC over 100 Mbit/s and 1.5 ms reached 93,
        64, 21 and 3.4 Mbit/s at 1, 2, 5 and 10 % loss. The exact share of PFTK is larger and fits FreeBSD's times less.
        """
        if window <= 3:
            return 1.0
        return min(1.0, 2 * loss if self.probes else 3 / window)

    def recovery_ns(self, loss: float) -> float:
        """What a run of doubling timeouts costs, six doublings at most (PFTK, equation 27)."""
        doubled = 1 + sum((2 * loss) ** n / 2 for n in range(1, 7))
        return self.timeout_ns * doubled / (1 - loss)

    def segment_ns(self, loss: float) -> float:
        """Time for each segment that arrives, in the long run, as loss has it, with an ACK for each segment.

        Source: Padhye, Firoiu, Towsley & Kurose 2000, section V, as in models/pftk.py, which what runs cells must not
        know; tests hold this against it.
        """
        limit = self.window_segments
        free = 1 + math.sqrt(8 * (1 - loss) / (3 * loss) + 1)
        window = min(free, limit)
        rounds = window / 2 + 1 if free < limit else limit / 8 + (1 - loss) / (loss * limit) + 2
        share = self.timeout_share(loss, window)
        period_ns = self.rtt_ns * rounds + share * self.recovery_ns(loss)
        return period_ns / ((1 - loss) / loss + window / 2 + share)


@dataclass(frozen=True)
class Way:
    """One direction: its loss, and how long bytes occupy its link."""

    loss: float
    rate_bps: int
    unlimited: bool
    frame_bytes: int

    def link_ns(self, size_bytes: float, packets: float) -> float:
        """How long some packets of so many bytes in all occupy the link."""
        return (size_bytes + self.frame_bytes * packets) * 8e9 / self.rate_bps


def resend_waits(host: Host, way: Way, parts: int, limit_ns: float) -> tuple[float, float]:
    """What loss adds to one message of so many segments: mean and standard deviation."""
    loss = min(way.loss, MOST_LOSS)
    mean_ns, sd_ns = waits_ns(loss, host.timeout_ns, limit_ns)
    if loss and parts > 1:
        mean_ns += (parts - 1) * host.segment_ns(loss)
    return mean_ns, sd_ns


def opening_waits(forward: Way, reverse: Way, limit_ns: float) -> tuple[float, float]:
    """What lost SYNs, and lost answers to them, add to one connection."""
    return waits_ns(1 - (1 - forward.loss) * (1 - reverse.loss), SYN_TIMEOUT_NS, limit_ns)


def loss_ns(host: Host, data: Way, link_ns: float) -> float:
    """Time for each segment in the long run, as loss has it; 0 without loss."""
    if not data.loss:
        return 0.0
    loss = min(data.loss, MOST_LOSS)
    return link_ns / (1 - loss) if host.ignores_loss else host.segment_ns(loss)


def sending_ns(host: Host, data: Way, segments: float, link_ns: float, steady_ns: float) -> float:
    """From the first segment of a transfer to its last: slow start, the first loss, then the steady rate."""
    if not data.loss or host.ignores_loss:
        return max(slow_start_ns(host, segments, link_ns), segments * steady_ns if data.loss else 0.0)
    loss = min(data.loss, MOST_LOSS)
    hit = 1 - math.pow(1 - loss, segments)
    before = min(segments, hit * (1 - loss) / loss + 1)
    window = min(host.window_segments, host.initial_window + before / 2)
    share = host.timeout_share(loss, min(window, segments))
    first_ns = hit * (share * host.recovery_ns(loss) + (1 - share) * host.rtt_ns)
    return slow_start_ns(host, before, link_ns) + first_ns + (segments - before) * steady_ns


def slow_start_ns(host: Host, segments: float, link_ns: float) -> float:
    """A window a round trip, doubling, until window or link leave no more room."""
    window, sent, taken_ns = float(host.initial_window), 0.0, 0.0
    while True:
        window = min(window, host.window_segments)
        if sent + window >= segments:
            return taken_ns + (segments - sent) * link_ns
        full = window >= host.window_segments or window * link_ns >= host.rtt_ns
        if full:
            return taken_ns + (segments - sent) * max(link_ns, host.rtt_ns / window)
        taken_ns += host.rtt_ns
        sent += window
        window *= 2


def host_of(parameters: Parameters) -> Host:
    """The hosts of a cell, as far as its transport heeds them: QUIC brings its own congestion control and buffers."""
    rtt_ns = float(parameters.path.rtt_ns + EXCHANGE_NS)
    if _quic(parameters):
        return Host(rtt_ns, QUIC_TIMEOUT_NS, 10, math.inf, probes=True, ignores_loss=False)
    host = parameters.host
    old = host.get("profile") == "freebsd-8"
    limits = [host[key] for key in ("send_buffer", "receive_buffer") if key in host]
    if not host.get("window_scaling", not old):
        limits.append(65_535)  # RFC 9293: what the window field holds
    room = room_of(parameters)[0]
    return Host(
        rtt_ns=rtt_ns,
        min_rto_ns=host.get("min_rto", 230_000_000 if old else 200_000_000),
        initial_window=host.get("initial_window", 3 if old else 10),
        window_segments=max(1.0, min(limits) / room) if limits else math.inf,
        probes=bool(host.get("tail_loss_probe", not old) and host.get("sack", True)),
        ignores_loss=str(host.get("congestion_control", "")).startswith("bbr"),
    )


def room_of(parameters: Parameters) -> tuple[int, int]:
    """Payload of a full TCP segment with timestamps, and the bytes of its headers; of a QUIC packet likewise."""
    header_bytes = (40 if parameters.path.family == "ipv6" else 20) + (QUIC_BYTES if _quic(parameters) else TCP_BYTES)
    return parameters.path.mtu_bytes - header_bytes, header_bytes


def way_of(direction: DirectionParameters) -> Way:
    """One direction of a cell's path."""
    rate_bps = direction.rate_bps
    return Way(
        loss=float(direction.loss),
        rate_bps=min(rate_bps or FASTEST_BPS, FASTEST_BPS),
        unlimited=rate_bps is None,
        frame_bytes=38 if direction.count == "ethernet" else 0,
    )


def _quic(parameters: Parameters) -> bool:
    known = TRANSPORTS.get(parameters.workload.transport or "")
    return known is not None and known.quic
