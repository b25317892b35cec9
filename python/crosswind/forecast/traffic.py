"""What each workload does to the path: how long it takes, how many packets and bytes, and work for the processors.

The formulas are in the docstring of `forecast.forecast`; multiplex and page are in `traffic_streams.py`.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from crosswind.catalog import TRANSPORTS, Transport
from crosswind.forecast.connection import (
    EXCHANGE_NS,
    MOST_LOSS,
    Host,
    host_of,
    loss_ns,
    opening_waits,
    resend_waits,
    room_of,
    sending_ns,
    slow_start_ns,
    way_of,
)
from crosswind.study.cells import Parameters

HEAVY = 0.25
"""A run that keeps more processors busy than this runs alone: it would disturb others, and they it."""

PROGRAM_NS = 10_000_000_000
"""What a program is taken to need, of which nothing is known."""

# What the kernel sends beside the messages, counted on it: a connection's handshake and closing, and while it is young
# the ACKs that do not wait for data to ride on.
CONNECTION_PACKETS = 6
YOUNG_ACKS = 5
DELAYED_ACK_NS = 40_000_000
# What follows a loss in a ping-pong: both ends repeat, and one of them is told that it need not have.
PACKETS_PER_LOSS = 3

# Beyond TCP's handshake; initial values that what runs corrects.
ROUND_TRIP_PACKETS = 2  # of each further round trip of a set-up
HANDSHAKE_BYTES = 3_000  # of TLS 1.3 with one ECDSA certificate, both ways together, tickets included
HANDSHAKE_CPU_NS = 700_000  # keys agreed, a signature made and verified
QUIC_PACKET_CPU_NS = 15_000  # both ends, beyond what a packet of TCP costs
HTTP_MESSAGE_CPU_NS = 30_000  # both ends
HTTP_BYTES = 100  # header of a request or of a response
RECORD_BYTES = 22  # TLS 1.3: header 5, type 1, tag 16


@dataclass(frozen=True)
class Traffic:
    """What a workload does to the path.

    Attributes: flat_out: only the processors hold it back. cpu_ns: of both hosts, beyond what each packet costs.
    """

    wall_ns: float
    packets: float
    bytes: float
    flat_out: bool
    cpu_ns: float = 0.0


@dataclass(frozen=True)
class Opening:
    """What one connection costs until it carries messages, and at its end."""

    wall_ns: float
    sd_ns: float
    packets: float
    bytes: float
    cpu_ns: float


def transport_of(parameters: Parameters) -> Transport:
    """The transport of a cell that has one."""
    return TRANSPORTS[parameters.workload.transport or "tcp"]


def opening(parameters: Parameters) -> Opening:
    """Round trips of the set-up, and what loss adds: a second or more to the first packets, a resend to the others."""
    work, transport = parameters.workload, transport_of(parameters)
    trips = transport.set_up + (2 if work.polling else 0) - (1 if work.resumption == "0-rtt" else 0)
    if not transport.connects:
        return Opening(0.0, 0.0, 0.0, 0.0, 0.0)
    host, limit_ns = host_of(parameters), float(work.timeout_ns or 0)
    forward, reverse = way_of(parameters.path.forward), way_of(parameters.path.reverse)
    first_ns, sd_ns = opening_waits(forward, reverse, limit_ns)
    later_ns = sum(resend_waits(host, way, 1, limit_ns)[0] for way in (forward, reverse))
    further = max(0, trips - 1)
    secure = HANDSHAKE_BYTES if transport.secure else 0
    packets = CONNECTION_PACKETS + ROUND_TRIP_PACKETS * further + secure / room_of(parameters)[0]
    return Opening(
        wall_ns=trips * host.rtt_ns + first_ns + further * later_ns + forward.link_ns(secure, 0),
        sd_ns=sd_ns,
        packets=packets,
        bytes=secure + packets * room_of(parameters)[1],
        cpu_ns=HANDSHAKE_CPU_NS if transport.secure else 0.0,
    )


def framing_bytes(transport: Transport) -> int:
    """What a transport adds to a message, beyond the headers of packets."""
    return (HTTP_BYTES if transport.http else 0) + (RECORD_BYTES if transport.secure and not transport.quic else 0)


def message_cpu_ns(transport: Transport, messages: float, packets: float) -> float:
    """What messages and packets of a transport cost beyond those of TCP."""
    return (HTTP_MESSAGE_CPU_NS if transport.http else 0) * messages + (
        QUIC_PACKET_CPU_NS if transport.quic else 0
    ) * packets


def echo(parameters: Parameters) -> Traffic:
    """Messages and their replies, one after another or at a rate."""
    work, path, transport = parameters.workload, parameters.path, transport_of(parameters)
    forward, reverse, host = way_of(path.forward), way_of(path.reverse), host_of(parameters)
    rtt_ns = float(path.rtt_ns + EXCHANGE_NS)
    messages, size_bytes = work.messages or 0, work.size_bytes or 0
    connections = min(work.connections, messages)
    sizes = (1 if work.direction == "download" else size_bytes, 1 if work.direction == "upload" else size_bytes)
    (parts_there, there), (parts_back, back) = (packets_of(parameters, one + framing_bytes(transport)) for one in sizes)
    links_ns = (forward.link_ns(there, parts_there), reverse.link_ns(back, parts_back))
    lost_there = 1 - (1 - forward.loss) ** parts_there
    lost_back = 1 - (1 - reverse.loss) ** parts_back
    lost = 1 - (1 - lost_there) * (1 - lost_back)
    each_own = work.connection == "new" and transport.connects
    opened = opening(parameters)

    limit_ns = float(work.timeout_ns or 0)
    if transport.datagram:
        sent = messages * (parts_there + parts_back * (1 - lost_there))
        carried = messages * (there + back * (1 - lost_there))
        wait_ns, wait_sd_ns = lost * limit_ns, limit_ns * math.sqrt(lost * (1 - lost))
    else:
        sent = _echo_packets(parameters, messages, connections, parts_there, parts_back)
        carried = messages * sum(sizes) / (1 - min(MOST_LOSS, lost / 2)) + sent * room_of(parameters)[1]
        waits = (resend_waits(host, forward, parts_there, limit_ns), resend_waits(host, reverse, parts_back, limit_ns))
        wait_ns, wait_sd_ns = waits[0][0] + waits[1][0], math.hypot(waits[0][1], waits[1][1])
    beyond = (messages if each_own else connections) * max(0.0, opened.packets - CONNECTION_PACKETS)
    cpu_ns = message_cpu_ns(transport, messages, sent) + (messages if each_own else connections) * opened.cpu_ns
    sent, carried = sent + beyond, carried + beyond * room_of(parameters)[1]
    if work.mode == "open":
        last_ns = (limit_ns if transport.datagram else host.timeout_ns) if lost else 0.0
        paced_ns = messages * max(1e9 / (work.rate_per_s or 1), *links_ns)
        return Traffic(paced_ns + rtt_ns + last_ns, sent, carried, flat_out=False, cpu_ns=cpu_ns)

    each_ns, each_sd_ns = rtt_ns + sum(links_ns), 0.0
    if each_own:
        each_sd_ns = opened.sd_ns
        each_ns += opened.wall_ns + _young_ns(host, parts_there, links_ns[0]) + _young_ns(host, parts_back, links_ns[1])
    # Messages of all connections share the links.
    each_ns = max(each_ns, connections * max(links_ns)) + wait_ns
    wall_ns = slowest(each_ns, math.hypot(each_sd_ns, wait_sd_ns), messages, connections)
    # Without a delay the processors set the pace, unless most of the time goes by waiting for what was lost.
    unhindered = path.rtt_ns == 0 and sum(links_ns) <= EXCHANGE_NS * max(1, parts_there, parts_back)
    return Traffic(wall_ns, sent, carried, flat_out=unhindered and rtt_ns > HEAVY * each_ns, cpu_ns=cpu_ns)


def transfer(parameters: Parameters) -> Traffic:
    """One way, a size or for a time, each on a new connection."""
    work, path, transport = parameters.workload, parameters.path, transport_of(parameters)
    data, back = (way_of(path.forward), way_of(path.reverse))
    if work.direction == "download":
        data, back = back, data
    host, opened = host_of(parameters), opening(parameters)
    count = work.count or 1
    lanes = min(work.connections, count)
    room, header_bytes = room_of(parameters)
    link_ns = data.link_ns(room + header_bytes, 1) * lanes
    steady_ns = max(link_ns, host.rtt_ns / host.window_segments, loss_ns(host, data, link_ns))
    if work.duration_ns is not None:
        lasting_ns = float(work.duration_ns)
        segments = lasting_ns / steady_ns
        payload: float = segments * room
    else:
        payload = work.size_bytes or 0
        segments = float(math.ceil(payload / room))
        lasting_ns = sending_ns(host, data, segments, link_ns, steady_ns)
    kept = 1 - min(data.loss, MOST_LOSS)
    packets = count * (1.5 * segments / kept + opened.packets + YOUNG_ACKS)
    unhindered = data.unlimited and steady_ns == link_ns
    return Traffic(
        wall_ns=math.ceil(count / lanes) * (opened.wall_ns + host.rtt_ns + lasting_ns),
        packets=packets,
        bytes=count * payload / kept + packets * header_bytes,
        flat_out=unhindered and segments * link_ns > host.rtt_ns,
        cpu_ns=message_cpu_ns(transport, count, packets) + count * opened.cpu_ns,
    )


def connect(parameters: Parameters) -> Traffic:
    """Connections, one after another on each lane."""
    work, path = parameters.workload, parameters.path
    opened, count = opening(parameters), work.count or 1
    wall_ns = slowest(opened.wall_ns, opened.sd_ns, count, min(work.connections, count))
    lost = float(path.forward.loss + path.reverse.loss) / 2
    packets = opened.packets * count / (1 - min(MOST_LOSS, lost))
    trips_ns = EXCHANGE_NS * max(1, transport_of(parameters).set_up)
    unhindered = path.rtt_ns == 0 and HEAVY * opened.wall_ns < trips_ns
    return Traffic(
        wall_ns,
        packets,
        packets * room_of(parameters)[1] + count * (HANDSHAKE_BYTES if opened.cpu_ns else 0),
        flat_out=unhindered,
        cpu_ns=count * opened.cpu_ns + message_cpu_ns(transport_of(parameters), 0, packets),
    )


def program(parameters: Parameters) -> Traffic:  # noqa: ARG001
    """Nothing is known of it."""
    return Traffic(PROGRAM_NS, 0, 0, flat_out=True)


def slowest(each_ns: float, sd_ns: float, exchanges: int, connections: int) -> float:
    """When the slowest of some connections is through with its share of exchanges, one after another.

    The expected largest of k normal sums by Blom's approximation (Statistical Estimates and Transformed Beta-Variables,
    1958); of one, their mean.
    """
    share = math.ceil(exchanges / connections)
    largest = NormalDist().inv_cdf((connections - 0.375) / (connections + 0.25))
    return share * each_ns + largest * sd_ns * math.sqrt(share)


def resent(parameters: Parameters, packets: float) -> float:
    """Packets of a ping-pong, with those that losses add."""
    loss = min(MOST_LOSS, float(parameters.path.forward.loss + parameters.path.reverse.loss) / 2)
    return packets * (1 + PACKETS_PER_LOSS * loss / (1 - loss))


def packets_of(parameters: Parameters, size_bytes: int) -> tuple[int, int]:
    """Packets that one message takes, and its IP bytes in all."""
    if parameters.workload.transport == "udp":
        size_bytes += 8  # The first fragment has the UDP header.
        header_bytes = 40 if parameters.path.family == "ipv6" else 20
        room = parameters.path.mtu_bytes - header_bytes
    else:
        room, header_bytes = room_of(parameters)
    parts = max(1, math.ceil(size_bytes / room))
    return parts, size_bytes + parts * header_bytes


def _echo_packets(parameters: Parameters, messages: int, connections: int, there: int, back: int) -> float:
    """Packets of an echo, both ways. A reply acknowledges its message, and the next message that reply."""
    work = parameters.workload
    opened, carried = (messages, 1) if work.connection == "new" else (connections, messages // connections)
    packets = messages * (there + back + (max(there, back) - 1))
    packets += opened * (CONNECTION_PACKETS + min(YOUNG_ACKS, 2 * carried))
    if work.mode == "open" and 1e9 * connections / (work.rate_per_s or 1) > DELAYED_ACK_NS:
        packets += messages  # The next message comes too late to carry the ACK.
    return resent(parameters, packets)


def _young_ns(host: Host, parts: int, link_ns: float) -> float:
    """What slow start adds to a message that a new connection carries, beyond the link's own time."""
    return max(0.0, slow_start_ns(host, parts, link_ns / parts) - link_ns)
