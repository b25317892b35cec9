"""What one run of one cell will cost: time, packets, bytes, processors. From the cell's demand alone.

For admission, the display and `crosswind plan`; no claim about the protocol. Meant to be right within a factor of two
or three, loss included. What a cell cannot tell, how fast this machine is, starts from the constants below; whoever
runs cells corrects them by what it measures.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from crosswind.forecast.demand import (
    Demand,
    Exchanges,
    Handshakes,
    Pages,
    Streams,
    Surroundings,
    Transfers,
    Unknown,
)
from crosswind.forecast.streams import pages, streams
from crosswind.forecast.traffic import HEAVY, Carriage, Usage, exchanges, handshakes, transfers

__all__ = ["HEAVY", "PROGRAM_NS", "Forecast", "deadline_ns", "disk_bytes", "forecast", "makespan_ns", "virtual_wall_ns"]

SETUP_NS = 60_000_000
SETUP_CPU_NS = 15_000_000
"""Of one cell, whatever it does: its process, namespaces, devices, and their end."""

CPU_PER_PACKET_NS = 12_000
"""Emulator and both hosts together, for each packet that enters the path. An initial value: what runs tells more."""

AWAKE_NS = 60_000
"""A packet keeps the emulator awake for so long, until it may go on; packets that come meanwhile share that time.
Measured: 57 to 140 us a packet at 600 packets a second, 32 to 53 us at 12,000, 7 to 11 us at 100,000."""

LARGEST_LOAD = 2.0
"""One cell keeps no more processors busy: the emulator has one, and its hosts hardly fill another."""

VIRTUAL_START_NS = 100_000_000
VIRTUAL_PACKET_NS = 110_000
"""Of the machine's time, for a guest and its cell, and for each packet: measured on a quiet processor."""
VIRTUAL_PEER_START_NS = {"chromium": 13_000_000_000}
VIRTUAL_OTHER_START_NS = 3_000_000_000
"""Of the machine's time, for the start of a peer in a guest, and of one that is not listed."""

PEER_START_NS = 1_500_000_000
PEER_CPU_NS = 1_000_000_000
"""Of a program that takes the place of a client or server: a browser's on a quiet processor."""
PEER_DEADLINE_NS = 60_000_000_000
"""How much longer a cell with peers may take: it gives up by itself one that does not start or does not end."""

PROGRAM_NS = 3_000_000_000
"""What a program is taken to need, of which nothing is known: those of the built-in studies take 0.6 to 2.3 s."""

SHORTEST_DEADLINE_NS = 60 * 10**9
LONGEST_DEADLINE_NS = 3600 * 10**9

SAMPLE_BYTES = 50  # a row of samples.parquet, about 100 bytes before zstd
OBJECT_BYTES = 25  # a row of objects.parquet
RESULT_BYTES = 6_000  # result.json
PACKET_RECORD_BYTES = 40  # a row of packets.parquet
CAPTURE_BYTES = 32  # a pcapng block around each packet


@dataclass(frozen=True)
class Forecast:
    """One run of one cell.

    Attributes: duration_ns: wall time, set-up included. packets: entering the path, both directions; 0 of a program,
        which may send any number. bytes: IP bytes of those. load: processors kept busy while it runs.
        undelayed: whether processors and not the path decide how long its exchanges take, so that whatever runs beside
        it makes them longer. alone: whether it runs alone whatever it takes, as over a real network.
    """

    duration_ns: int
    packets: int
    bytes: int
    load: float
    undelayed: bool = False
    alone: bool = False

    @property
    def runs_alone(self) -> bool:
        """Whether it would disturb others, or they it."""
        return self.alone or self.undelayed or self.load > HEAVY


def forecast(demand: Demand, surroundings: Surroundings) -> Forecast:
    """What one run of a cell will cost.

    With R the round trip plus 0.1 ms, an unlimited link taken as 2 Gbit/s, headers counted on the link, and S the
    set-up of a connection: so many R as its transport needs (2 more with polling, 1 less with data in the first
    flight), and for its first packets 1 s, doubling, where one of them is lost:

    - exchanges, one after another: those of a connection x (R + time on the link + S for a new connection + what loss
                    costs: in each direction p T / (1 - 2p), T being R plus the smallest retransmission timeout, or
                    QUIC's probe timeout; of datagrams the timeout); of several connections the slowest counts
    - exchanges at a rate: their number / rate + R + one such wait
    - transfers:    S + R + the duration; or slow start up to the first loss, and the rest at the rate that loss, window
                    and link allow (Cardwell, Savage & Anderson, INFOCOM 2000, with PFTK's rate)
    - handshakes:   connections one after another x S
    - streams:      S + messages / (streams x rate) + R + one wait as of an exchange
    - pages:        pages x (S + R for the HTML + R for the rest, or as many as HTTP/1 has rounds, + S of its further
                    connections + both parts sent as transfers are)
    - unknown:      3 s, one processor

    Each peer takes 1.5 s more to start, and its cell runs alone: the start of a browser keeps every processor busy.
    """
    usage = _usage(demand, surroundings)
    peers = surroundings.peers
    duration_ns = SETUP_NS + usage.wall_ns + peers * PEER_START_NS
    awake_ns = usage.packets * AWAKE_NS
    emulator_ns = usage.wall_ns * awake_ns / (usage.wall_ns + awake_ns) if awake_ns else 0.0
    packets_ns = usage.packets * CPU_PER_PACKET_NS + emulator_ns
    cpu_ns = SETUP_CPU_NS + packets_ns + usage.cpu_ns + peers * PEER_CPU_NS
    load = min(LARGEST_LOAD, cpu_ns / duration_ns)
    return Forecast(
        duration_ns=round(duration_ns),
        packets=round(usage.packets),
        bytes=round(usage.bytes),
        load=max(1.0, load) if usage.flat_out else load,
        undelayed=usage.undelayed or peers > 0,
    )


def _usage(demand: Demand, surroundings: Surroundings) -> Usage:
    transport, traffic = surroundings.transport, demand.traffic
    if transport is None or isinstance(traffic, Unknown):
        return Usage(PROGRAM_NS, 0, 0, flat_out=True)
    carriage = Carriage.of(demand, surroundings, transport)
    match traffic:
        case Transfers():
            return transfers(traffic, carriage)
        case Exchanges():
            usage = exchanges(traffic, carriage)
        case Handshakes():
            usage = handshakes(traffic, carriage)
        case Streams():
            usage = streams(traffic, carriage)
        case Pages():
            usage = pages(traffic, carriage)
    return replace(usage, undelayed=carriage.undelayed)


def disk_bytes(demand: Demand, costs: Forecast, *, packets: bool, capture: bool) -> int:
    """What one run of a cell leaves on the disk, roughly. What programs print is not counted."""
    match demand.traffic:
        case Unknown():
            total = RESULT_BYTES + SAMPLE_BYTES
        case Streams(messages=rows):
            total = RESULT_BYTES + SAMPLE_BYTES * rows
        case Pages(count=rows, objects=objects):
            total = RESULT_BYTES + SAMPLE_BYTES * rows + OBJECT_BYTES * rows * (1 + objects)
        case Exchanges(count=rows) | Transfers(count=rows) | Handshakes(count=rows):
            total = RESULT_BYTES + SAMPLE_BYTES * rows
    if packets:
        total += PACKET_RECORD_BYTES * costs.packets
    if capture:
        total += 2 * (costs.bytes + CAPTURE_BYTES * costs.packets)  # each host keeps what it sent and received
    return total


def deadline_ns(demand: Demand, costs: Forecast, *, peers: int = 0) -> int:
    """When a run is given up, in nanoseconds: ten times what is expected, at least a minute, at most an hour.

    One exchange more may time out, which is a result: TCP's server forgets a connection whose handshake lost too much,
    and a client that only listens then waits for ever. Never later than when every exchange would have timed out (and
    its connection, where each has a new one); beyond an hour only where the study itself asks for that long, and then
    at twice what is expected. A program has a minute more than its timeout. Peers have a minute more each.
    """
    if isinstance(demand.traffic, Unknown):
        # Its own timeout is to end a program, not the deadline, which would leave no result.
        return LONGEST_DEADLINE_NS if demand.timeout_ns is None else demand.timeout_ns + SHORTEST_DEADLINE_NS
    generous_ns = max(min(10 * costs.duration_ns, LONGEST_DEADLINE_NS), 2 * costs.duration_ns)
    waits = _waits(demand)
    if waits is not None and demand.timeout_ns is not None:
        generous_ns = min(generous_ns + demand.timeout_ns, waits * demand.timeout_ns)
    return max(generous_ns, SHORTEST_DEADLINE_NS) + peers * PEER_DEADLINE_NS


def _waits(demand: Demand) -> int | None:
    """How many timeouts one after another a cell can take at most; None where its traffic goes by the clock."""
    match demand.traffic:
        case Exchanges(rate_per_s=None, count=count, new_connections=new):
            return count * (2 if new else 1)
        case Transfers(duration_ns=None, count=count, connections=connections):
            return count * connections
        case Handshakes(count=count, connections=connections) | Pages(count=count, connections=connections):
            return count * connections
    return None


def virtual_wall_ns(run: Forecast, peers: Iterable[str]) -> int:
    """The machine's time that one run takes in virtual time: what is computed, whatever it waits for.

    Args: peers: the names of those in the place of its client and its server.
    """
    starts_ns = sum(VIRTUAL_PEER_START_NS.get(name, VIRTUAL_OTHER_START_NS) for name in peers)
    return VIRTUAL_START_NS + VIRTUAL_PACKET_NS * run.packets + starts_ns


def makespan_ns(forecasts: Sequence[Forecast], *, capacity: float, most: int) -> int:
    """How long runs take side by side, started in the given order as soon as processors are free.

    At any time at most `most` are under way and their loads add up to at most `capacity` processors; a run that is more
    than that starts when nothing else runs. What runs alone does so after all others.

    Raises: ValueError when nothing can ever run.
    """
    if capacity <= 0 or most < 1:
        raise ValueError(f"nothing can run on {capacity} processors, {most} at once")
    # Whole billionths of a processor, so that what is added and taken away leaves nothing behind.
    available = round(capacity * 1e9)
    now_ns = used = 0
    under_way: list[tuple[int, int]] = []
    for run in forecasts:
        if run.runs_alone:
            continue
        load = round(run.load * 1e9)
        while under_way and (len(under_way) >= most or used + load > available):
            now_ns, ended = heapq.heappop(under_way)
            used -= ended
        heapq.heappush(under_way, (now_ns + run.duration_ns, load))
        used += load
    end_ns = max((end for end, _ in under_way), default=now_ns)
    return end_ns + sum(run.duration_ns for run in forecasts if run.runs_alone)
