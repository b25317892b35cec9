"""How fast a connection over a path is: what losses, windows and links cost, as far as parameters alone can tell.

Formulas of forecasts, for TCP from the hosts' settings, and for QUIC from RFC 9002.
"""

import math
from dataclasses import dataclass

from crosswind.forecast.demand import Demand, Direction, HostSettings, Surroundings

EXCHANGE_NS = 100_000
"""What a round trip takes on a path without delay."""

FASTEST_BPS = 2_000_000_000
"""What stands for an unlimited link."""

SYN_TIMEOUT_NS = 1_000_000_000  # RFC 6298, section 2.1; RFC 9002, section 6.2.2: a third less, and doubled
QUIC_TIMEOUT_NS = 30_000_000  # RFC 9002, section 6.2.1: max_ack_delay of 25 ms and some variance, beyond the round trip
TCP_BYTES = 32  # RFC 9293: 20; RFC 7323: timestamps, 12 with their padding
QUIC_BYTES = 37  # RFC 768: 8; RFC 9000, section 17.3: 1, an ID of 8 and a number of 2; 16 of authentication; a frame 2
GREATEST_LOSS = 0.9  # beyond, no formula means anything, and nothing arrives

# What Linux does where no host setting says otherwise.
KERNEL_INITIAL_WINDOW = 10  # RFC 6928
KERNEL_MIN_RTO_NS = 200_000_000
WINDOW_FIELD_BYTES = 65_535  # RFC 9293: what the window field holds without scaling


def waits_ns(loss: float, timer_ns: float, limit_ns: float) -> tuple[float, float]:
    """Mean and standard deviation of what losses of a packet cost, retransmitted on a doubling timer up to `limit_ns`.

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
class Sender:
    """What of the hosts' settings decides how fast TCP is, and what stands for them under QUIC."""

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

        For then it takes a loss of what is retransmitted. That is a fit by eye: CUBIC over 100 Mbit/s and 1.5 ms
        reached 93, 64, 21 and 3.4 Mbit/s at 1, 2, 5 and 10 % loss. The exact share of PFTK is larger and fits FreeBSD's
        times less.
        """
        if window <= 3:
            return 1.0
        return min(1.0, 2 * loss if self.probes else 3 / window)

    def recovery_ns(self, loss: float) -> float:
        """What a run of doubling timeouts costs, six doublings at most (PFTK, equation 27)."""
        doubled = 1 + sum((2 * loss) ** n / 2 for n in range(1, 7))
        return self.timeout_ns * doubled / (1 - loss)

    def segment_ns(self, loss: float) -> float:
        """Time for each segment that arrives, in the long run at this loss, with an ACK for each segment.

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
class Link:
    """One direction: its loss, and how long bytes occupy it."""

    loss: float
    rate_bps: int
    unlimited: bool
    frame_bytes: int

    @classmethod
    def of(cls, direction: Direction) -> "Link":
        """The link of one direction of a path."""
        rate_bps = direction.rate_bps
        return cls(
            loss=direction.loss,
            rate_bps=min(rate_bps or FASTEST_BPS, FASTEST_BPS),
            unlimited=rate_bps is None,
            frame_bytes=direction.frame_bytes,
        )

    def time_ns(self, size_bytes: float, packets: float) -> float:
        """How long some packets of so many bytes in all occupy the link."""
        return (size_bytes + self.frame_bytes * packets) * 8e9 / self.rate_bps


@dataclass(frozen=True)
class Connection:
    """What every connection of a cell is like.

    Attributes: propagation_ns: both ways. timeout_ns: of one exchange. segment_bytes: payload of a full packet;
        header_bytes: of all its headers.
    """

    sender: Sender
    forward: Link
    reverse: Link
    propagation_ns: int
    timeout_ns: float
    segment_bytes: int
    header_bytes: int

    @classmethod
    def of(cls, demand: Demand, surroundings: Surroundings) -> "Connection":
        """The connections of a cell; of a program, what they would be over TCP."""
        propagation_ns = demand.forward.delay_ns + demand.reverse.delay_ns
        header_bytes = (40 if surroundings.ipv6 else 20) + (QUIC_BYTES if surroundings.quic else TCP_BYTES)
        segment_bytes = surroundings.mtu_bytes - header_bytes
        rtt_ns = float(propagation_ns + EXCHANGE_NS)
        if surroundings.quic:
            # QUIC brings congestion control and buffers of its own.
            sender = Sender(rtt_ns, QUIC_TIMEOUT_NS, 10, math.inf, probes=True, ignores_loss=False)
        else:
            sender = _tcp_sender(surroundings.host, rtt_ns, segment_bytes)
        return cls(
            sender=sender,
            forward=Link.of(demand.forward),
            reverse=Link.of(demand.reverse),
            propagation_ns=propagation_ns,
            timeout_ns=float(demand.timeout_ns or 0),
            segment_bytes=segment_bytes,
            header_bytes=header_bytes,
        )

    @property
    def mean_loss(self) -> float:
        """Loss of a packet that is as likely to go one way as the other."""
        return (self.forward.loss + self.reverse.loss) / 2


def _tcp_sender(host: HostSettings, rtt_ns: float, segment_bytes: int) -> Sender:
    limits = [size for size in (host.send_buffer_bytes, host.receive_buffer_bytes) if size is not None]
    if host.window_scaling is False:
        limits.append(WINDOW_FIELD_BYTES)
    return Sender(
        rtt_ns=rtt_ns,
        min_rto_ns=KERNEL_MIN_RTO_NS if host.min_rto_ns is None else host.min_rto_ns,
        initial_window=KERNEL_INITIAL_WINDOW if host.initial_window is None else host.initial_window,
        window_segments=max(1.0, min(limits) / segment_bytes) if limits else math.inf,
        probes=host.tail_loss_probe is not False and host.sack is not False,
        ignores_loss=(host.congestion_control or "").startswith("bbr"),
    )


def resend_waits(sender: Sender, link: Link, packets: int, limit_ns: float) -> tuple[float, float]:
    """What loss adds to one message of so many packets: mean and standard deviation."""
    loss = min(link.loss, GREATEST_LOSS)
    mean_ns, sd_ns = waits_ns(loss, sender.timeout_ns, limit_ns)
    if loss and packets > 1:
        mean_ns += (packets - 1) * sender.segment_ns(loss)
    return mean_ns, sd_ns


def opening_waits(connection: Connection) -> tuple[float, float]:
    """What lost SYNs, and lost answers to them, add to one connection."""
    lost = 1 - (1 - connection.forward.loss) * (1 - connection.reverse.loss)
    return waits_ns(lost, SYN_TIMEOUT_NS, connection.timeout_ns)


def loss_ns(sender: Sender, data: Link, link_ns: float) -> float:
    """Time for each segment in the long run, as far as losses decide it; 0 without loss."""
    if not data.loss:
        return 0.0
    loss = min(data.loss, GREATEST_LOSS)
    return link_ns / (1 - loss) if sender.ignores_loss else sender.segment_ns(loss)


def sending_ns(sender: Sender, data: Link, segments: float, link_ns: float, steady_ns: float) -> float:
    """From the first segment of a transfer to its last: slow start, the first loss, then the steady rate."""
    if not data.loss or sender.ignores_loss:
        return max(slow_start_ns(sender, segments, link_ns), segments * steady_ns if data.loss else 0.0)
    loss = min(data.loss, GREATEST_LOSS)
    hit = 1 - math.pow(1 - loss, segments)
    before = min(segments, hit * (1 - loss) / loss + 1)
    window = min(sender.window_segments, sender.initial_window + before / 2)
    share = sender.timeout_share(loss, min(window, segments))
    first_ns = hit * (share * sender.recovery_ns(loss) + (1 - share) * sender.rtt_ns)
    return slow_start_ns(sender, before, link_ns) + first_ns + (segments - before) * steady_ns


def slow_start_ns(sender: Sender, segments: float, link_ns: float) -> float:
    """A window a round trip, doubling, until the receiver's window or the link is full."""
    window, sent, taken_ns = float(sender.initial_window), 0.0, 0.0
    while True:
        window = min(window, sender.window_segments)
        if sent + window >= segments:
            return taken_ns + (segments - sent) * link_ns
        full = window >= sender.window_segments or window * link_ns >= sender.rtt_ns
        if full:
            return taken_ns + (segments - sent) * max(link_ns, sender.rtt_ns / window)
        taken_ns += sender.rtt_ns
        sent += window
        window *= 2
