"""What a pattern of traffic takes: how long, how many packets and bytes, and what work for the processors.

The formulas are in the docstring of `forecast.cost.forecast`. Here are exchanges, transfers and handshakes; patterns of
many streams are in `streams.py`.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from crosswind.catalog import Carrier, Transport
from crosswind.forecast.connection import (
    EXCHANGE_NS,
    GREATEST_LOSS,
    Connection,
    Sender,
    loss_ns,
    opening_waits,
    resend_waits,
    sending_ns,
    slow_start_ns,
)
from crosswind.forecast.demand import Demand, Exchanges, Handshakes, Surroundings, Transfers

UNDELAYED_NS = 1_000_000
"""Round trips of one packet shorter than this are mostly what processors take."""

HEAVY = 0.25
"""A run that keeps more processors busy than this runs alone: it would disturb others, and they it."""

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
UDP_HEADER_BYTES = 8  # RFC 768


@dataclass(frozen=True)
class Usage:
    """What traffic takes.

    Attributes: flat_out: only the processors hold it back. cpu_ns: of both hosts, beyond what each packet costs.
        undelayed: the path takes no time that counts beside that of the processors.
    """

    wall_ns: float
    packets: float
    bytes: float
    flat_out: bool
    cpu_ns: float = 0.0
    undelayed: bool = False


@dataclass(frozen=True)
class Opening:
    """What one connection costs until it carries messages, and at its end."""

    wall_ns: float
    sd_ns: float
    packets: float
    cpu_ns: float


@dataclass(frozen=True)
class Carriage:
    """How messages are carried in a cell: over which transport, by what connections, and what opening one costs."""

    transport: Transport
    connection: Connection
    opening: Opening
    ipv6: bool
    mtu_bytes: int

    @classmethod
    def of(cls, demand: Demand, surroundings: Surroundings, transport: Transport) -> "Carriage":
        """The carriage of a cell that has a transport."""
        connection = Connection.of(demand, surroundings)
        opening = _opening(connection, transport, polling=demand.polling, early_data=demand.early_data)
        return cls(transport, connection, opening, surroundings.ipv6, surroundings.mtu_bytes)

    @property
    def undelayed(self) -> bool:
        """Whether a packet and its reply take so little time on the path that the processors decide."""
        links = (self.connection.forward, self.connection.reverse)
        return self.connection.propagation_ns + sum(link.time_ns(self.mtu_bytes, 1) for link in links) < UNDELAYED_NS

    @property
    def framing_bytes(self) -> int:
        """What the transport adds to a message, beyond the headers of packets."""
        transport = self.transport
        record_bytes = RECORD_BYTES if transport.secure and transport.carrier is not Carrier.QUIC else 0
        return (HTTP_BYTES if transport.http else 0) + record_bytes

    def cpu_ns(self, messages: float, packets: float) -> float:
        """What messages and packets of the transport cost beyond those of TCP."""
        http_ns = HTTP_MESSAGE_CPU_NS if self.transport.http else 0
        return http_ns * messages + (QUIC_PACKET_CPU_NS if self.transport.carrier is Carrier.QUIC else 0) * packets

    def packets_of(self, size_bytes: int) -> tuple[int, int]:
        """Packets that one message of so many bytes takes, its framing included, and its IP bytes in all."""
        payload_bytes, header_bytes = self.connection.segment_bytes, self.connection.header_bytes
        size_bytes += self.framing_bytes
        if self.transport.carrier is Carrier.UDP:
            size_bytes += UDP_HEADER_BYTES  # Only the first fragment has it.
            header_bytes = 40 if self.ipv6 else 20
            payload_bytes = self.mtu_bytes - header_bytes
        packets = max(1, math.ceil(size_bytes / payload_bytes))
        return packets, size_bytes + packets * header_bytes

    def with_retransmissions(self, packets: float) -> float:
        """Packets of a ping-pong, with those that losses add."""
        loss = min(GREATEST_LOSS, self.connection.mean_loss)
        return packets * (1 + PACKETS_PER_LOSS * loss / (1 - loss))


def _opening(connection: Connection, transport: Transport, *, polling: bool, early_data: bool) -> Opening:
    """Round trips of the set-up, and what loss adds: a second or more to the first packets, a resend to the others."""
    if not transport.connects:
        return Opening(0.0, 0.0, 0.0, 0.0)
    trips = transport.setup_round_trips + (2 if polling else 0) - (1 if early_data else 0)
    links = (connection.forward, connection.reverse)
    first_ns, sd_ns = opening_waits(connection)
    later_ns = sum(resend_waits(connection.sender, link, 1, connection.timeout_ns)[0] for link in links)
    further = max(0, trips - 1)
    secure_bytes = HANDSHAKE_BYTES if transport.secure else 0
    packets = CONNECTION_PACKETS + ROUND_TRIP_PACKETS * further + secure_bytes / connection.segment_bytes
    return Opening(
        wall_ns=trips * connection.sender.rtt_ns
        + first_ns
        + further * later_ns
        + connection.forward.time_ns(secure_bytes, 0),
        sd_ns=sd_ns,
        packets=packets,
        cpu_ns=HANDSHAKE_CPU_NS if transport.secure else 0.0,
    )


def exchanges(traffic: Exchanges, carriage: Carriage) -> Usage:
    """Requests and their replies, one after another or at a rate."""
    connection, transport, opening = carriage.connection, carriage.transport, carriage.opening
    forward, reverse, sender = connection.forward, connection.reverse, connection.sender
    count, connections = traffic.count, min(traffic.connections, traffic.count)
    packets_there, bytes_there = carriage.packets_of(traffic.request_bytes)
    packets_back, bytes_back = carriage.packets_of(traffic.reply_bytes)
    links_ns = (forward.time_ns(bytes_there, packets_there), reverse.time_ns(bytes_back, packets_back))
    lost_there = 1 - (1 - forward.loss) ** packets_there
    lost_back = 1 - (1 - reverse.loss) ** packets_back
    lost = 1 - (1 - lost_there) * (1 - lost_back)
    limit_ns = connection.timeout_ns
    if transport.datagram:
        packets = count * (packets_there + packets_back * (1 - lost_there))
        size_bytes = count * (bytes_there + bytes_back * (1 - lost_there))
        wait_ns, wait_sd_ns = lost * limit_ns, limit_ns * math.sqrt(lost * (1 - lost))
    else:
        packets = _exchange_packets(traffic, carriage, connections, packets_there, packets_back)
        payload_bytes = count * (traffic.request_bytes + traffic.reply_bytes)
        size_bytes = payload_bytes / (1 - min(GREATEST_LOSS, lost / 2)) + packets * connection.header_bytes
        there_ns, there_sd_ns = resend_waits(sender, forward, packets_there, limit_ns)
        back_ns, back_sd_ns = resend_waits(sender, reverse, packets_back, limit_ns)
        wait_ns, wait_sd_ns = there_ns + back_ns, math.hypot(there_sd_ns, back_sd_ns)
    new_each = traffic.new_connections and transport.connects
    opened = count if new_each else connections
    cpu_ns = carriage.cpu_ns(count, packets) + opened * opening.cpu_ns
    set_up = opened * max(0.0, opening.packets - CONNECTION_PACKETS)
    packets, size_bytes = packets + set_up, size_bytes + set_up * connection.header_bytes
    if traffic.rate_per_s is not None:
        last_ns = (limit_ns if transport.datagram else sender.timeout_ns) if lost else 0.0
        wall_ns = count * max(1e9 / traffic.rate_per_s, *links_ns) + sender.rtt_ns + last_ns
        return Usage(wall_ns, packets, size_bytes, flat_out=False, cpu_ns=cpu_ns)

    each_ns, each_sd_ns = sender.rtt_ns + sum(links_ns), 0.0
    if new_each:
        each_sd_ns = opening.sd_ns
        each_ns += opening.wall_ns + _young_ns(sender, packets_there, links_ns[0])
        each_ns += _young_ns(sender, packets_back, links_ns[1])
    # Messages of all connections share the links.
    each_ns = max(each_ns, connections * max(links_ns)) + wait_ns
    wall_ns = slowest(each_ns, math.hypot(each_sd_ns, wait_sd_ns), count, connections)
    # Without a delay the processors set the pace, unless most of the time goes by waiting for what was lost.
    quick_links = sum(links_ns) <= EXCHANGE_NS * max(1, packets_there, packets_back)
    flat_out = connection.propagation_ns == 0 and quick_links and sender.rtt_ns > HEAVY * each_ns
    return Usage(wall_ns, packets, size_bytes, flat_out=flat_out, cpu_ns=cpu_ns)


def transfers(traffic: Transfers, carriage: Carriage) -> Usage:
    """One way, a size or for a time, each on a new connection."""
    connection, opening = carriage.connection, carriage.opening
    sender = connection.sender
    data = connection.forward if traffic.upload else connection.reverse
    count, lanes = traffic.count, min(traffic.connections, traffic.count)
    segment_bytes, header_bytes = connection.segment_bytes, connection.header_bytes
    link_ns = data.time_ns(segment_bytes + header_bytes, 1) * lanes
    steady_ns = max(link_ns, sender.rtt_ns / sender.window_segments, loss_ns(sender, data, link_ns))
    if traffic.duration_ns is not None:
        lasting_ns = float(traffic.duration_ns)
        segments = lasting_ns / steady_ns
        payload: float = segments * segment_bytes
    else:
        payload = traffic.size_bytes or 0
        segments = float(math.ceil(payload / segment_bytes))
        lasting_ns = sending_ns(sender, data, segments, link_ns, steady_ns)
    kept = 1 - min(data.loss, GREATEST_LOSS)
    packets = count * (1.5 * segments / kept + opening.packets + YOUNG_ACKS)
    unhindered = data.unlimited and steady_ns == link_ns
    return Usage(
        wall_ns=math.ceil(count / lanes) * (opening.wall_ns + sender.rtt_ns + lasting_ns),
        packets=packets,
        bytes=count * payload / kept + packets * header_bytes,
        flat_out=unhindered and segments * link_ns > sender.rtt_ns,
        cpu_ns=carriage.cpu_ns(count, packets) + count * opening.cpu_ns,
    )


def handshakes(traffic: Handshakes, carriage: Carriage) -> Usage:
    """Connections, one after another on each lane."""
    connection, opening = carriage.connection, carriage.opening
    count = traffic.count
    wall_ns = slowest(opening.wall_ns, opening.sd_ns, count, min(traffic.connections, count))
    packets = opening.packets * count / (1 - min(GREATEST_LOSS, connection.mean_loss))
    trips_ns = EXCHANGE_NS * max(1, carriage.transport.setup_round_trips)
    return Usage(
        wall_ns,
        packets,
        packets * connection.header_bytes + count * (HANDSHAKE_BYTES if opening.cpu_ns else 0),
        flat_out=connection.propagation_ns == 0 and HEAVY * opening.wall_ns < trips_ns,
        cpu_ns=count * opening.cpu_ns + carriage.cpu_ns(0, packets),
    )


def slowest(each_ns: float, sd_ns: float, exchanges: int, connections: int) -> float:
    """When the slowest of some connections is through with its share of exchanges, one after another.

    The expected largest of k normal sums by Blom's approximation (Statistical Estimates and Transformed Beta-Variables,
    1958); of one, their mean.
    """
    share = math.ceil(exchanges / connections)
    largest = NormalDist().inv_cdf((connections - 0.375) / (connections + 0.25))
    return share * each_ns + largest * sd_ns * math.sqrt(share)


def _exchange_packets(traffic: Exchanges, carriage: Carriage, connections: int, there: int, back: int) -> float:
    """Packets of exchanges, both ways. A reply acknowledges its request, and the next request that reply."""
    count = traffic.count
    opened, carried = (count, 1) if traffic.new_connections else (connections, count // connections)
    packets = count * (there + back + (max(there, back) - 1))
    packets += opened * (CONNECTION_PACKETS + min(YOUNG_ACKS, 2 * carried))
    if traffic.rate_per_s is not None and 1e9 * connections / traffic.rate_per_s > DELAYED_ACK_NS:
        packets += count  # The next request comes too late to carry the ACK.
    return carriage.with_retransmissions(packets)


def _young_ns(sender: Sender, packets: int, link_ns: float) -> float:
    """What slow start adds to a message that a new connection carries, beyond the link's own time."""
    return max(0.0, slow_start_ns(sender, packets, link_ns / packets) - link_ns)
