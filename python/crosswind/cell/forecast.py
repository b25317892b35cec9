"""Forecasts for one run: time, packets, bytes and processors, from a cell's `demand` (docs/cell-protocol.md).

For admission, the display and `crosswind plan`; no claim about the protocol. The aim is a factor of two or three: round
trips times exchanges, the links' time for the bytes, a timeout for a loss, and a constant for the start. Earlier
durations on this machine replace it (`execution/durations`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crosswind.catalog import Carrier, Transport, catalog
from crosswind.catalog.endpoints import NETWORK, all_peers_of
from crosswind.catalog.path_effect import DirectionEffect

# Measured on a quiet virtual machine with two processors.
SETUP_NS, SETUP_CPU_NS = 60_000_000, 15_000_000  # of a cell, whatever it does: process, namespaces, devices
PEER_START_NS, PEER_CPU_NS = 1_500_000_000, 1_000_000_000  # of a browser or another program
PROGRAM_NS = 3_000_000_000
"""Assumed for a program, without knowing it: built-in studies' take 0.6 to 2.3 s."""
VIRTUAL_START_NS, VIRTUAL_PACKET_NS, VIRTUAL_QUIC_PACKET_NS, VIRTUAL_BLOCK_PACKET_NS = 70_000_000, 40_000, 55_000, 5_000
VIRTUAL_BROWSER_NS, VIRTUAL_PEER_NS = 6_000_000_000, 1_200_000_000
"""The machine's time for a guest and its cell, a packet waking a program, a QUIC packet, a packet in a transfer read by
blocks, a browser's start, another peer's (0.8 to 1.5 s for Deno and Node, 4 to 8 s for Chromium).
"""
IN_BLOCKS = ("tcp", "tls")
"""Transports with transfers read by blocks (docs/virtual-time.md)."""
EXCHANGE_NS = 100_000  # a round trip without delay
FASTEST_BPS = 2_000_000_000  # an unlimited link
CPU_PER_PACKET_NS, QUIC_PACKET_CPU_NS, HANDSHAKE_CPU_NS = 12_000, 15_000, 700_000
AWAKE_NS = 60_000  # one packet keeps the emulator awake so long; packets in between share it
CONNECTION_PACKETS = 8  # handshake, closing, and early ACKs; each further round trip of a set-up has two more
BACKGROUND_SHARE = 0.1  # per packet: nobody reads, writes or receives background traffic
DELAYED_ACK_NS = 40_000_000  # a later message does not carry the previous ACK
HEADER_BYTES, SECURE_BYTES, HTTP_BYTES = 52, 3_000, 100
LARGEST_LOAD = 2.0  # the emulator has one processor, and its hosts hardly fill another

HEAVY = 0.25
"""A run with a higher load runs alone: it would disturb others, and they it."""
UNDELAYED_NS = 1_000_000
"""A one-packet round trip below this is mostly processor time."""
CAPACITY = 0.5
"""Maximum busy share by forecast; beyond it threads wait for each other."""
AT_A_TIME = 3
"""Assumed parallel cells per processor; sessions had means from 1 to 4."""

AROUND_S = 3.0
"""A command's time around its session, with the report: 2.5 to 4.5 s on a virtual machine."""

SYN_TIMEOUT_NS = 1_000_000_000  # RFC 6298, section 2.1
QUIC_TIMEOUT_NS = 30_000_000  # RFC 9002, section 6.2.1
MOST_LOSS = 0.9

MINUTE_NS, HOUR_NS = 60 * 10**9, 3600 * 10**9


def _link_ns(way: DirectionEffect, size_bytes: float, packets: float) -> float:
    """How long packets of this total size occupy the link."""
    return (size_bytes + way.frame_bytes * packets) * 8e9 / min(way.free_bps or FASTEST_BPS, FASTEST_BPS)


@dataclass(frozen=True)
class Traffic:
    """A workload's traffic. A pattern has some keys; the others keep these defaults."""

    pattern: Literal["exchanges", "transfers", "handshakes", "streams", "pages", "unknown"]
    count: int = 0
    connections: int = 1
    request_bytes: int = 0
    reply_bytes: int = 0
    new_connections: bool = False
    rate_per_s: float | None = None
    size_bytes: int | None = None
    duration_ns: int | None = None
    start_after_ns: int = 0
    upload: bool = False
    messages: int = 0
    streams: int = 1
    html_bytes: int = 0
    objects_bytes: int = 0
    objects: int = 0


@dataclass(frozen=True)
class Demand:
    """One cell's traffic, by crosswind-cell."""

    timeout_ns: int | None
    forward: DirectionEffect
    reverse: DirectionEffect
    traffic: Traffic
    polling: bool = False
    early_data: bool = False
    flows: tuple[Traffic, ...] = ()


UNKNOWN_NETWORK = DirectionEffect(delay_ns=25_000_000, rate_bps=10_000_000)
"""Assumed per direction for an unknown real network: 50 ms there and back, 10 Mbit/s."""


@dataclass(frozen=True)
class Forecast:
    """One run.

    Attributes: duration_ns: by its own clock, with set-up. packets: entering the path, both directions; 0 for a
        program, with any number. bytes: their IP bytes. load: busy processors. virtual_ns: the machine's time for
        virtual time.
        fewest_packets: the data packets of exchanges that succeed; 0 where time ends them, or a program does.
        undelayed: whether processors and not the path decide its exchanges' times, so neighbours lengthen them. alone:
            whether it always runs alone, as over a real network.
    """

    duration_ns: int
    packets: int
    bytes: int
    load: float
    virtual_ns: int
    fewest_packets: int = 0
    undelayed: bool = False
    alone: bool = False

    @property
    def packets_per_s(self) -> float:
        """Both ways together."""
        return self.packets * 1e9 / max(1, self.duration_ns)

    @property
    def runs_alone(self) -> bool:
        """Whether it has to run alone on the machine's clock: it would disturb other runs, or they it."""
        return self.alone or self.undelayed or self.load > HEAVY


@dataclass(frozen=True)
class _Needs:
    """A pattern's needs.

    Attributes: turns: serial messages on the busiest lane. messages: in all. opened, opened_in_turn: connections, in
        all and serial. up, down: message bytes. paced_ns: its own clock's time. bulk: packets in one message on a new
        connection.
    """

    lanes: int
    turns: float
    messages: float
    opened: float
    opened_in_turn: float
    up: float
    down: float
    paced_ns: float = 0.0
    bulk: float = 0.0


def _needs(traffic: Traffic, transport: Transport, mtu_bytes: int, segment_ns: float) -> _Needs:
    count, lanes = traffic.count, max(1, min(traffic.connections, traffic.count or traffic.connections))
    each, mss = math.ceil(count / lanes), mtu_bytes - HEADER_BYTES
    if traffic.pattern == "exchanges":
        new = traffic.new_connections
        up, down = count * traffic.request_bytes, count * traffic.reply_bytes
        bulk = max(traffic.request_bytes, traffic.reply_bytes) / mss if new else 0.0
        paced_ns = 1e9 * count / traffic.rate_per_s if traffic.rate_per_s else 0.0
        turns = 1 if paced_ns else each
        return _Needs(lanes, turns, count, count if new else lanes, each if new else 0, up, down, paced_ns, bulk)
    if traffic.pattern == "handshakes":
        return _Needs(lanes, 0, 0, count, each, 0, 0)
    if traffic.pattern == "streams":
        messages, size_bytes = traffic.messages, traffic.messages * (traffic.size_bytes or 0)
        paced_ns = 1e9 * messages / (traffic.streams * (traffic.rate_per_s or 1))
        return _Needs(traffic.connections, 1, messages, traffic.connections, 1, size_bytes, size_bytes, paced_ns)
    if traffic.pattern == "pages":
        lanes, requests = traffic.connections, count * (1 + traffic.objects)
        rounds = 1 if transport.shares_connection else math.ceil(traffic.objects / lanes)
        in_turn = count * (2 if lanes > 1 else 1)
        size_bytes = traffic.html_bytes + traffic.objects_bytes
        up, bulk = requests * traffic.request_bytes, size_bytes / lanes / mss
        return _Needs(lanes, count * (1 + rounds), requests, count * lanes, in_turn, up, count * size_bytes, bulk=bulk)
    lasting_ns = float(traffic.duration_ns or 0)
    segments = lasting_ns / segment_ns / lanes if lasting_ns else (traffic.size_bytes or 0) / mss
    up_bytes, down_bytes = (count * segments * mss, 0.0) if traffic.upload else (0.0, count * segments * mss)
    return _Needs(
        lanes, each, count, count, each, up_bytes, down_bytes, each * lasting_ns, 0.0 if lasting_ns else segments
    )


def forecast(demand: Demand, cell: Mapping[str, Any]) -> Forecast:
    """One run's forecast. With R the round trip plus 0.1 ms, an unlimited link taken as 2 Gbit/s:

    a connection's messages x (R + the cost for losing their first packet)
    + serial connections x (R for each set-up round trip + 1 s, doubling, for a lost SYN)
    + R for each slow-start window + further packets x PFTK's time per segment at this loss
    + the links' time for all bytes; or the workload's own clock, if longer;
    + an outage's delay. Transfers beside the workload fill their link direction throughout, and messages at a rate go
    on throughout.

    Args: cell: with every default filled in.
    """
    traffic, transport = demand.traffic, catalog().transports.get(cell["workload"].get("transport"))
    if transport is None or traffic.pattern == "unknown":
        return _forecast(cell, PROGRAM_NS, 0, 0, cpu_ns=0, flat_out=True)
    there, back, quic = demand.forward, demand.reverse, transport.carrier is Carrier.QUIC
    if cell["path"]["backend"] == NETWORK:
        there = back = UNKNOWN_NETWORK
    mtu_bytes, timeout_ns = cell["path"]["mtu_bytes"], demand.timeout_ns or HOUR_NS
    host: Mapping[str, Any] = {} if quic else cell["host"]
    rtt_ns = there.delay_ns + back.delay_ns + EXCHANGE_NS
    rto_ns = rtt_ns + (QUIC_TIMEOUT_NS if quic else host.get("min_rto_ns") or catalog().kernel["min_rto_ns"])
    ways = [(way, _link_ns(way, mtu_bytes, 1)) for way in (there, back)]
    window_ns = rtt_ns / _window(host, mtu_bytes)
    ignores_loss = (host.get("congestion_control") or "").startswith("bbr")
    slow = [
        max(window_ns, link_ns / (1 - min(way.loss, MOST_LOSS)) if ignores_loss else _loss_ns(way.loss, rtt_ns, rto_ns))
        for way, link_ns in ways
    ]
    data = 0 if traffic.upload else 1
    needs = _needs(traffic, transport, mtu_bytes, max(slow[data], ways[data][1]))

    secure_bytes = SECURE_BYTES * needs.opened if transport.secure else 0
    framing = HTTP_BYTES if transport.http else 0
    sizes = (needs.up + framing * needs.messages, needs.down + framing * needs.messages + secure_bytes)
    packets = [max(needs.messages, math.ceil(size / (mtu_bytes - HEADER_BYTES))) for size in sizes]
    links_ns = [
        _link_ns(way, size + HEADER_BYTES * count, count)
        for (way, _), size, count in zip(ways, sizes, packets, strict=True)
    ]
    setup_trips = 0
    if transport.connects:
        setup_trips = transport.setup_round_trips + (2 if demand.polling else 0) - (1 if demand.early_data else 0)
    lost = 1 - (1 - there.loss) * (1 - back.loss)
    wait_ns = lost * timeout_ns if transport.datagram else _wait_ns(lost, rto_ns, timeout_ns)
    syn_ns = _wait_ns(lost, SYN_TIMEOUT_NS, timeout_ns) if setup_trips else 0.0
    windows = math.log2(1 + min(needs.bulk, rtt_ns / ways[data][1]) / 10) if needs.bulk else 0.0
    trips = needs.turns + needs.opened_in_turn * (max(0, setup_trips) + windows)
    further_ns = sum((count - needs.messages) * each for count, each in zip(packets, slow, strict=True)) / needs.lanes
    waits_ns = needs.turns * wait_ns + needs.opened_in_turn * syn_ns
    carried_ns = max(further_ns, sum(links_ns) / needs.lanes, *links_ns)
    # A transfer shares its direction with those beside it.
    rivals = [sum(flow.pattern == "transfers" and flow.upload == up for flow in demand.flows) for up in (True, False)]
    carried_ns *= 1 + rivals[data] if traffic.size_bytes and traffic.pattern == "transfers" else 1
    wall_ns = trips * rtt_ns + waits_ns + max(carried_ns, needs.paced_ns)
    wall_ns += traffic.start_after_ns + _held_up_ns(max(there.outage_ns, back.outage_ns), needs, timeout_ns)

    loss = min(MOST_LOSS, (there.loss + back.loss) / 2)
    late_acks = needs.messages if needs.paced_ns * needs.lanes > DELAYED_ACK_NS * needs.messages else 0
    on_the_way = (sum(packets) + abs(packets[0] - packets[1]) / 2 + late_acks) / (1 - loss)
    for (_, link_ns), own, count in zip(ways, packets, rivals, strict=True):
        # Every second packet filling a link is acknowledged.
        on_the_way += 1.5 * max(0.0, wall_ns / link_ns - own) if count else 0.0
    on_the_way += wall_ns / 1e9 * sum(_paced_packets_per_s(flow, mtu_bytes) for flow in demand.flows)
    if setup_trips:
        on_the_way += needs.opened * (CONNECTION_PACKETS + 2 * max(0, setup_trips - 1)) / (1 - loss)
    processors_ns = trips * EXCHANGE_NS + sum(
        time_ns for (way, _), time_ns in zip(ways, links_ns, strict=True) if way.rate_bps is None
    )
    background = wall_ns / 1e9 * (there.background_packets_per_s + back.background_packets_per_s)
    return _forecast(
        cell,
        wall_ns,
        on_the_way,
        sum(sizes) + HEADER_BYTES * on_the_way,
        background=background,
        cpu_ns=(QUIC_PACKET_CPU_NS * on_the_way if quic else 0)
        + (HANDSHAKE_CPU_NS * needs.opened if transport.secure else 0),
        flat_out=processors_ns > HEAVY * wall_ns,
        fewest=0 if traffic.duration_ns else sum(packets),
        undelayed=traffic.pattern != "transfers"
        and there.delay_ns + back.delay_ns + sum(link_ns for _, link_ns in ways) < UNDELAYED_NS,
    )


def _forecast(
    cell: Mapping[str, Any],
    wall_ns: float,
    packets: float,
    size_bytes: float,
    *,
    background: float = 0.0,
    cpu_ns: float,
    flat_out: bool,
    fewest: float = 0.0,
    undelayed: bool = False,
) -> Forecast:
    peers = all_peers_of(cell)
    duration_ns = round(SETUP_NS + wall_ns + len(peers) * PEER_START_NS)
    awake_ns = packets * AWAKE_NS
    cpu_ns += SETUP_CPU_NS + (packets + BACKGROUND_SHARE * background) * CPU_PER_PACKET_NS + len(peers) * PEER_CPU_NS
    cpu_ns += wall_ns * awake_ns / (wall_ns + awake_ns) if awake_ns else 0.0
    load = min(LARGEST_LOAD, cpu_ns / duration_ns)
    return Forecast(
        duration_ns=duration_ns,
        packets=round(packets),
        bytes=round(size_bytes),
        load=max(1.0, load) if flat_out else load,
        virtual_ns=virtual_wall_ns(cell, round(packets + BACKGROUND_SHARE * background)),
        fewest_packets=round(fewest),
        undelayed=undelayed or bool(peers),
        alone=cell["path"]["backend"] == NETWORK,
    )


def _paced_packets_per_s(flow: Traffic, mtu_bytes: int) -> float:
    """Packets/s, in both directions together, for a flow with messages at a rate; 0 for other flows."""
    sizes = (flow.size_bytes or 0,) * 2 if flow.pattern == "streams" else (flow.request_bytes, flow.reply_bytes)
    packets = sum(max(1, math.ceil(size / (mtu_bytes - HEADER_BYTES))) for size in sizes)
    return (flow.rate_per_s or 0.0) * flow.streams * packets


def _wait_ns(loss: float, timer_ns: float, limit_ns: float) -> float:
    """A packet's mean cost for losses, retransmitted on a doubling timer (models/ping_pong.py), up to a limit."""
    return limit_ns * loss if loss > 0.45 else min(limit_ns, timer_ns * loss / (1 - 2 * loss))


def _held_up_ns(outage_ns: float, needs: _Needs, timeout_ns: float) -> float:
    """An outage's delay to a run, once.

    A retransmission is due within the outage's length after its end, after half on average. An exchange given up
    earlier is followed by another, also given up.
    """
    return min(1.5 * outage_ns, outage_ns + timeout_ns, max(1.0, needs.turns, needs.opened_in_turn) * timeout_ns)


def _loss_ns(loss: float, rtt_ns: float, rto_ns: float) -> float:
    """Time for each packet of a long transfer at this loss, with an ACK for each; 0 without loss.

    Source: Padhye, Firoiu, Towsley & Kurose 2000, equation 30.
    """
    loss = min(loss, MOST_LOSS)
    timeouts_ns = rto_ns * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return rtt_ns * math.sqrt(2 * loss / 3) + timeouts_ns


def _window(host: Mapping[str, Any], mtu_bytes: int) -> float:
    limits = [size for key in ("send_buffer_bytes", "receive_buffer_bytes") if (size := host.get(key)) is not None]
    limits += [65_535] if host.get("window_scaling") is False else []
    return max(1.0, min(limits) / mtu_bytes) if limits else math.inf


def virtual_wall_ns(cell: Mapping[str, Any], packets: int) -> int:
    """The machine's time for one run in virtual time: computation, without waits.

    Most per packet goes to waking programs.
    """
    workload = cell.get("workload", {})
    transport = catalog().transports.get(workload.get("transport"))
    packet_ns = VIRTUAL_PACKET_NS
    if workload.get("kind") == "transfer" and workload.get("transport") in IN_BLOCKS:
        packet_ns = VIRTUAL_BLOCK_PACKET_NS
    elif transport is not None and transport.carrier is Carrier.QUIC:
        packet_ns = VIRTUAL_QUIC_PACKET_NS
    peers = all_peers_of(cell).values()
    starts_ns = sum(VIRTUAL_BROWSER_NS if name == "chromium" else VIRTUAL_PEER_NS for name in peers)
    return VIRTUAL_START_NS + packet_ns * packets + starts_ns


def disk_bytes(demand: Demand, costs: Forecast, *, packets: bool, capture: bool) -> int:
    """One run's bytes on the disk, roughly, without programs' output."""
    rows = max(1, demand.traffic.count, demand.traffic.messages)
    total = 6_000 + 50 * rows  # result.json, and a row of samples.parquet
    if demand.traffic.pattern == "pages":
        total += 25 * rows * (1 + demand.traffic.objects)
    if packets:
        total += 40 * costs.packets
    if capture:
        total += 2 * (costs.bytes + 32 * costs.packets)  # each host keeps its own packets, in pcapng blocks
    return total


def deadline_ns(demand: Demand, costs: Forecast, *, peers: int = 0) -> int:
    """A run's deadline, in nanoseconds: ten times the forecast, at least a minute, at most an hour.

    One further exchange may time out, as a result: TCP's server forgets a connection after too many handshake losses,
    and a listening client then waits for ever. Ten may under bursty loss, within an hour: a forecast's means say little
    about them. Never later than one timeout after every exchange (and its connection, if each has a new one) has timed
    out; beyond an hour only for a study asking for it, and then at twice the forecast. Messages at a rate have this
    timeout on changing paths: forecasts omit outages. On other paths a connection and then an exchange may time out,
    within an hour. A program has a minute beyond its timeout. Peers have a minute more each. A day at most.
    """
    traffic, timeout_ns = demand.traffic, demand.timeout_ns
    if traffic.pattern == "unknown":
        # Its own timeout ends a program, not the deadline: this would leave no result.
        return HOUR_NS if timeout_ns is None else timeout_ns + MINUTE_NS
    generous_ns = max(min(10 * costs.duration_ns, HOUR_NS), 2 * costs.duration_ns)
    is_bounded = traffic.rate_per_s is not None or traffic.duration_ns is not None
    if timeout_ns is not None and (not is_bounded or demand.forward.changes or demand.reverse.changes):
        in_turn = 1 if traffic.pattern == "exchanges" else traffic.connections
        waits = traffic.count * (2 if traffic.new_connections else in_turn)
        if any(direction.loss_after_loss > direction.loss for direction in (demand.forward, demand.reverse)):
            generous_ns += max(0, min(9 * timeout_ns, HOUR_NS - timeout_ns))
        generous_ns = min(generous_ns, waits * timeout_ns) + timeout_ns
    elif timeout_ns is not None:
        generous_ns = max(generous_ns, min(costs.duration_ns + 2 * timeout_ns, HOUR_NS))
    return min(max(generous_ns, MINUTE_NS) + peers * MINUTE_NS, 24 * HOUR_NS)


def packed_s(runs: Sequence[tuple[Forecast, int]], processors: int, *, virtual: bool = False) -> float:
    """How long runs take side by side, in seconds. In virtual time each keeps one processor busy.

    Args: runs: each with how often it is.
    """
    if virtual:
        whole_ns = sum(run.virtual_ns * times for run, times in runs)
        return max(whole_ns / processors, max((run.virtual_ns for run, _ in runs), default=0)) / 1e9
    alone_ns = sum(run.duration_ns * times for run, times in runs if run.runs_alone)
    beside = [(run, times) for run, times in runs if not run.runs_alone]
    work_ns = sum(run.duration_ns * run.load * times for run, times in beside) / (CAPACITY * processors)
    places_ns = sum(run.duration_ns * times for run, times in beside) / (AT_A_TIME * processors)
    return (alone_ns + max(work_ns, places_ns, max((run.duration_ns for run, _ in beside), default=0))) / 1e9
