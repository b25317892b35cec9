"""What one run of one cell will cost: time, packets, bytes, processors. From the cell's parameters alone.

For admission, the display and `crosswind plan`; no claim about the protocol. Meant to be right within a factor of two
or three, loss included. What the parameters cannot tell, how fast this machine is, starts from the constants below;
whoever runs cells corrects them by what it measures.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from crosswind.cells import Cell, DirectionParameters, Parameters

SETUP_NS = 60_000_000
SETUP_CPU_NS = 15_000_000
"""Of one cell, whatever it does: its process, namespaces, devices, and their end."""

CPU_PER_PACKET_NS = 12_000
"""Emulator and both hosts together, for each packet that enters the path. An initial value: what runs tells more."""

MOST_LOAD = 2.0
"""One cell keeps no more processors busy: the emulator has one, and its hosts hardly fill another."""

HEAVY = 0.25
"""A run that keeps more processors busy than this runs alone: it would disturb others, and they it."""

EXCHANGE_NS = 100_000
"""What a round trip takes on a path without delay."""

FASTEST_BPS = 2_000_000_000
"""What stands for an unlimited link."""

PROGRAM_NS = 10_000_000_000
"""What a program is taken to need, of which nothing is known."""

# What the kernel sends beside the messages, counted on it: a connection's handshake and closing, and while it is young
# the ACKs that do not wait for data to ride on.
CONNECTION_PACKETS = 6
YOUNG_ACKS = 5
DELAYED_ACK_NS = 40_000_000
# What follows a loss in a ping-pong: both ends repeat, and one of them is told that it need not have.
PACKETS_PER_LOSS = 3

SYN_TIMEOUT_NS = 1_000_000_000  # RFC 6298, section 2.1
MOST_LOSS = 0.9  # beyond, no formula means anything, and nothing arrives

SAMPLE_BYTES = 50  # a row of samples.parquet, about 100 bytes before zstd
RESULT_BYTES = 6_000  # result.json
PACKET_RECORD_BYTES = 40  # a row of packets.parquet
CAPTURE_BYTES = 32  # a pcapng block around each packet


@dataclass(frozen=True)
class Forecast:
    """One run of one cell.

    Attributes: duration_ns: wall time, set-up included. packets: entering the path, both directions; 0 of a program,
        which may send any number. bytes: IP bytes of those. load: processors kept busy while it runs.
    """

    duration_ns: int
    packets: int
    bytes: int
    load: float


def forecast(cell: Cell) -> Forecast:
    """What one run of this cell will cost.

    With R the round trip plus 0.1 ms, an unlimited link taken as 2 Gbit/s, and headers counted on the link:

    - echo, closed: exchanges of a connection x (R + time on the link + R again for a new connection + what loss
                    costs: of tcp in each direction p T / (1 - 2p), T being R plus the smallest retransmission timeout;
                    of udp the timeout); of several connections the slowest counts
    - echo, open:   messages / rate + R + one such wait
    - transfer:     its duration; or 2 R, slow start up to the first loss, and the rest at the rate that loss, window
                    and link allow (Cardwell, Savage & Anderson, INFOCOM 2000, with PFTK's rate)
    - connect:      connections one after another x (R + 1 s, doubling, for a lost SYN or its answer)
    - program:      10 s, one processor
    """
    parameters = cell.parameters
    traffic = _TRAFFIC[parameters.workload.kind](parameters)
    duration_ns = SETUP_NS + traffic.wall_ns
    load = min(MOST_LOAD, (SETUP_CPU_NS + traffic.packets * CPU_PER_PACKET_NS) / duration_ns)
    return Forecast(
        duration_ns=round(duration_ns),
        packets=round(traffic.packets),
        bytes=round(traffic.bytes),
        load=max(1.0, load) if traffic.flat_out else load,
    )


def disk_bytes(cell: Cell, *, packets: bool, capture: bool) -> int:
    """What one run of this cell leaves on the disk, roughly. What programs print is not counted."""
    work, costs = cell.parameters.workload, forecast(cell)
    rows = work.messages or work.count or 0
    total = RESULT_BYTES + SAMPLE_BYTES * rows
    if packets:
        total += PACKET_RECORD_BYTES * costs.packets
    if capture:
        total += 2 * (costs.bytes + CAPTURE_BYTES * costs.packets)  # each host keeps what it sent and received
    return total


def makespan_ns(forecasts: Sequence[Forecast], *, capacity: float, most: int) -> int:
    """How long runs take side by side, started in the given order as soon as there is room.

    At any time at most `most` are under way and their loads add up to at most `capacity` processors; a run that is more
    than that starts when nothing else runs. What is HEAVY runs alone, after all others.

    Raises: ValueError when there is no room for anything.
    """
    if capacity <= 0 or most < 1:
        raise ValueError(f"nothing can run on {capacity} processors, {most} at once")
    # Whole billionths of a processor, so that what is added and taken away leaves nothing behind.
    room = round(capacity * 1e9)
    now_ns = used = 0
    under_way: list[tuple[int, int]] = []
    for one in forecasts:
        if one.load > HEAVY:
            continue
        load = round(one.load * 1e9)
        while under_way and (len(under_way) >= most or used + load > room):
            now_ns, ended = heapq.heappop(under_way)
            used -= ended
        heapq.heappush(under_way, (now_ns + one.duration_ns, load))
        used += load
    end_ns = max((end for end, _ in under_way), default=now_ns)
    return end_ns + sum(one.duration_ns for one in forecasts if one.load > HEAVY)


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
class _Traffic:
    """What a workload does to the path: how long, how much, and whether only the processors hold it back."""

    wall_ns: float
    packets: float
    bytes: float
    flat_out: bool


@dataclass(frozen=True)
class _Host:
    """What of the hosts' settings decides how fast tcp is."""

    rtt_ns: float
    min_rto_ns: int
    initial_window: int
    window_segments: float
    probes: bool
    ignores_loss: bool

    @property
    def timeout_ns(self) -> float:
        """First retransmission timeout, as Linux has it: the round trip and the smallest."""
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
class _Way:
    """One direction: its loss, and how long bytes occupy its link."""

    loss: float
    rate_bps: int
    unlimited: bool
    frame_bytes: int

    def link_ns(self, size_bytes: float, packets: float) -> float:
        return (size_bytes + self.frame_bytes * packets) * 8e9 / self.rate_bps


def _echo(parameters: Parameters) -> _Traffic:
    work, path = parameters.workload, parameters.path
    forward, reverse = _way(path.forward), _way(path.reverse)
    rtt_ns = float(path.rtt_ns + EXCHANGE_NS)
    messages, size_bytes = work.messages or 0, work.size_bytes or 0
    connections = min(work.connections, messages)
    udp = work.transport == "udp"
    parts, on_link = _parts(parameters, size_bytes)
    links_ns = (forward.link_ns(on_link, parts), reverse.link_ns(on_link, parts))
    lost_there, lost_back = (1 - (1 - way.loss) ** parts for way in (forward, reverse))
    lost = 1 - (1 - lost_there) * (1 - lost_back)

    limit_ns = float(work.timeout_ns or 0)
    host = _host(parameters)
    if udp:
        sent = messages * parts * (2 - lost_there)
        carried = messages * on_link * (2 - lost_there)
        wait_ns, wait_sd_ns = lost * limit_ns, limit_ns * math.sqrt(lost * (1 - lost))
    else:
        sent = _echo_packets(parameters, messages, connections, parts)
        carried = 2 * messages * size_bytes / (1 - min(MOST_LOSS, lost / 2)) + sent * _room(parameters)[1]
        there, back = (_tcp_waits(host, way, parts, limit_ns) for way in (forward, reverse))
        wait_ns, wait_sd_ns = there[0] + back[0], math.hypot(there[1], back[1])
    if work.mode == "open":
        last_ns = (limit_ns if udp else host.timeout_ns) if lost else 0.0
        paced_ns = messages * max(1e9 / (work.rate_per_s or 1), *links_ns)
        return _Traffic(paced_ns + rtt_ns + last_ns, sent, carried, flat_out=False)

    each_ns, each_sd_ns = rtt_ns + sum(links_ns), 0.0
    if work.connection == "new" and not udp:
        syn_ns, each_sd_ns = _syn_waits(forward, reverse, limit_ns)
        each_ns += rtt_ns + syn_ns
    # Messages of all connections share the links.
    each_ns = max(each_ns, connections * max(links_ns)) + wait_ns
    wall_ns = _slowest(each_ns, math.hypot(each_sd_ns, wait_sd_ns), messages, connections)
    # Without a delay the processors set the pace, unless most of the time goes by waiting for what was lost.
    unhindered = path.rtt_ns == 0 and sum(links_ns) <= EXCHANGE_NS
    return _Traffic(wall_ns, sent, carried, flat_out=unhindered and rtt_ns > HEAVY * each_ns)


def _transfer(parameters: Parameters) -> _Traffic:
    work, path = parameters.workload, parameters.path
    data, back = (_way(path.forward), _way(path.reverse))
    if work.direction == "download":
        data, back = back, data
    host = _host(parameters)
    count = work.count or 1
    lanes = min(work.connections, count)
    room, header_bytes = _room(parameters)
    link_ns = data.link_ns(room + header_bytes, 1) * lanes
    opening_ns = 2 * host.rtt_ns + _syn_waits(data, back, float(work.timeout_ns or 0))[0]
    steady_ns = max(link_ns, host.rtt_ns / host.window_segments, _loss_ns(host, data, link_ns))
    if work.duration_ns is not None:
        sending_ns = float(work.duration_ns)
        segments = sending_ns / steady_ns
        payload: float = segments * room
    else:
        payload = work.size_bytes or 0
        segments = float(math.ceil(payload / room))
        sending_ns = _sending_ns(host, data, segments, link_ns, steady_ns)
    kept = 1 - min(data.loss, MOST_LOSS)
    packets = count * (1.5 * segments / kept + CONNECTION_PACKETS + YOUNG_ACKS)
    unhindered = data.unlimited and steady_ns == link_ns
    return _Traffic(
        wall_ns=math.ceil(count / lanes) * (opening_ns + sending_ns),
        packets=packets,
        bytes=count * payload / kept + packets * header_bytes,
        flat_out=unhindered and segments * link_ns > host.rtt_ns,
    )


def _connect(parameters: Parameters) -> _Traffic:
    work, path = parameters.workload, parameters.path
    forward, reverse = _way(path.forward), _way(path.reverse)
    count = work.count or 1
    header_bytes = _room(parameters)[1]
    syn_ns, syn_sd_ns = _syn_waits(forward, reverse, float(work.timeout_ns or 0))
    wall_ns = _slowest(path.rtt_ns + EXCHANGE_NS + syn_ns, syn_sd_ns, count, min(work.connections, count))
    packets = CONNECTION_PACKETS * count / (1 - min(MOST_LOSS, (forward.loss + reverse.loss) / 2))
    unhindered = path.rtt_ns == 0 and HEAVY * (EXCHANGE_NS + syn_ns) < EXCHANGE_NS
    return _Traffic(wall_ns, packets, packets * header_bytes, flat_out=unhindered)


def _program(parameters: Parameters) -> _Traffic:  # noqa: ARG001
    return _Traffic(PROGRAM_NS, 0, 0, flat_out=True)


_TRAFFIC = {"echo": _echo, "transfer": _transfer, "connect": _connect, "program": _program}


def _slowest(each_ns: float, sd_ns: float, exchanges: int, connections: int) -> float:
    """When the slowest of some connections is through with its share of exchanges, one after another.

    The expected largest of k normal sums by Blom's approximation (Statistical Estimates and Transformed Beta-Variables,
    1958); of one, their mean.
    """
    share = math.ceil(exchanges / connections)
    largest = NormalDist().inv_cdf((connections - 0.375) / (connections + 0.25))
    return share * each_ns + largest * sd_ns * math.sqrt(share)


def _echo_packets(parameters: Parameters, messages: int, connections: int, parts: int) -> float:
    """TCP segments of an echo, both ways. A reply acknowledges its message, and the next message that reply."""
    work, path = parameters.workload, parameters.path
    opened, carried = (messages, 1) if work.connection == "new" else (connections, messages // connections)
    packets = messages * (2 * parts + (parts - 1)) + opened * (CONNECTION_PACKETS + min(YOUNG_ACKS, 2 * carried))
    if work.mode == "open" and 1e9 * connections / (work.rate_per_s or 1) > DELAYED_ACK_NS:
        packets += messages  # The next message comes too late to carry the ACK.
    loss = min(MOST_LOSS, float(path.forward.loss + path.reverse.loss) / 2)
    return packets * (1 + PACKETS_PER_LOSS * loss / (1 - loss))


def _tcp_waits(host: _Host, way: _Way, parts: int, limit_ns: float) -> tuple[float, float]:
    """What loss adds to one message of so many segments: mean and standard deviation."""
    loss = min(way.loss, MOST_LOSS)
    mean_ns, sd_ns = waits_ns(loss, host.timeout_ns, limit_ns)
    if loss and parts > 1:
        mean_ns += (parts - 1) * host.segment_ns(loss)
    return mean_ns, sd_ns


def _syn_waits(forward: _Way, reverse: _Way, limit_ns: float) -> tuple[float, float]:
    """What lost SYNs, and lost answers to them, add to one connection."""
    return waits_ns(1 - (1 - forward.loss) * (1 - reverse.loss), SYN_TIMEOUT_NS, limit_ns)


def _loss_ns(host: _Host, data: _Way, link_ns: float) -> float:
    """Time for each segment in the long run, as loss has it; 0 without loss."""
    if not data.loss:
        return 0.0
    loss = min(data.loss, MOST_LOSS)
    return link_ns / (1 - loss) if host.ignores_loss else host.segment_ns(loss)


def _sending_ns(host: _Host, data: _Way, segments: float, link_ns: float, steady_ns: float) -> float:
    """From the first segment of a transfer to its last: slow start, the first loss, then the steady rate."""
    if not data.loss or host.ignores_loss:
        return max(_slow_start_ns(host, segments, link_ns), segments * steady_ns if data.loss else 0.0)
    loss = min(data.loss, MOST_LOSS)
    hit = 1 - math.pow(1 - loss, segments)
    before = min(segments, hit * (1 - loss) / loss + 1)
    window = min(host.window_segments, host.initial_window + before / 2)
    share = host.timeout_share(loss, min(window, segments))
    first_ns = hit * (share * host.recovery_ns(loss) + (1 - share) * host.rtt_ns)
    return _slow_start_ns(host, before, link_ns) + first_ns + (segments - before) * steady_ns


def _slow_start_ns(host: _Host, segments: float, link_ns: float) -> float:
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


def _host(parameters: Parameters) -> _Host:
    host = parameters.host
    old = host.get("profile") == "freebsd-8"
    limits = [host[key] for key in ("send_buffer", "receive_buffer") if key in host]
    if not host.get("window_scaling", not old):
        limits.append(65_535)  # RFC 9293: what the window field holds
    room = _room(parameters)[0]
    return _Host(
        rtt_ns=float(parameters.path.rtt_ns + EXCHANGE_NS),
        min_rto_ns=host.get("min_rto", 230_000_000 if old else 200_000_000),
        initial_window=host.get("initial_window", 3 if old else 10),
        window_segments=max(1.0, min(limits) / room) if limits else math.inf,
        probes=bool(host.get("tail_loss_probe", not old) and host.get("sack", True)),
        ignores_loss=str(host.get("congestion_control", "")).startswith("bbr"),
    )


def _room(parameters: Parameters) -> tuple[int, int]:
    """Payload of a full TCP segment with timestamps, and the bytes of its headers."""
    header_bytes = (60 if parameters.path.family == "ipv6" else 40) + 12
    return parameters.path.mtu_bytes - header_bytes, header_bytes


def _parts(parameters: Parameters, size_bytes: int) -> tuple[int, int]:
    """Packets that one message takes, and its IP bytes in all."""
    if parameters.workload.transport == "udp":
        size_bytes += 8  # The first fragment has the UDP header.
        header_bytes = 40 if parameters.path.family == "ipv6" else 20
        room = parameters.path.mtu_bytes - header_bytes
    else:
        room, header_bytes = _room(parameters)
    parts = max(1, math.ceil(size_bytes / room))
    return parts, size_bytes + parts * header_bytes


def _way(direction: DirectionParameters) -> _Way:
    rate_bps = direction.rate_bps
    return _Way(
        loss=float(direction.loss),
        rate_bps=min(rate_bps or FASTEST_BPS, FASTEST_BPS),
        unlimited=rate_bps is None,
        frame_bytes=38 if direction.count == "ethernet" else 0,
    )
