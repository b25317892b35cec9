"""What one run of one cell will cost: time, packets, bytes, processors. From the cell's parameters alone.

For admission, the display and `crosswind plan`; no claim about the protocol. Meant to be right within a factor of two
or three, loss included. What the parameters cannot tell, how fast this machine is, starts from the constants below;
whoever runs cells corrects them by what it measures.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crosswind.forecast import streams as traffic_streams
from crosswind.forecast import traffic
from crosswind.forecast.traffic import HEAVY, Traffic
from crosswind.study.cells import Cell, Parameters

__all__ = ["HEAVY", "Forecast", "disk_bytes", "forecast", "makespan_ns"]

SETUP_NS = 60_000_000
SETUP_CPU_NS = 15_000_000
"""Of one cell, whatever it does: its process, namespaces, devices, and their end."""

CPU_PER_PACKET_NS = 12_000
"""Emulator and both hosts together, for each packet that enters the path. An initial value: what runs tells more."""

MOST_LOAD = 2.0
"""One cell keeps no more processors busy: the emulator has one, and its hosts hardly fill another."""

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
    """

    duration_ns: int
    packets: int
    bytes: int
    load: float


def forecast(cell: Cell) -> Forecast:
    """What one run of this cell will cost.

    With R the round trip plus 0.1 ms, an unlimited link taken as 2 Gbit/s, headers counted on the link, and S the
    set-up of a connection: so many R as its transport needs (`transports.py`; 2 more with polling, 1 less with 0-RTT),
    and for its first packets 1 s, doubling, where one of them is lost:

    - echo, closed: exchanges of a connection x (R + time on the link + S for a new connection + what loss costs: in
                    each direction p T / (1 - 2p), T being R plus the smallest retransmission timeout, or QUIC's probe
                    timeout; of datagrams the timeout); of several connections the slowest counts
    - echo, open:   messages / rate + R + one such wait
    - transfer:     S + R + its duration; or slow start up to the first loss, and the rest at the rate that loss, window
                    and link allow (Cardwell, Savage & Anderson, INFOCOM 2000, with PFTK's rate)
    - connect:      connections one after another x S
    - multiplex:    S + messages / (streams x rate) + R + one wait as of an echo
    - page:         pages x (S + R for the HTML + R for the rest, or as many as HTTP/1 has rounds, + S of its further
                    connections + both parts sent as transfers are)
    - program:      10 s, one processor
    """
    parameters = cell.parameters
    made = _TRAFFIC[parameters.workload.kind](parameters)
    duration_ns = SETUP_NS + made.wall_ns
    cpu_ns = SETUP_CPU_NS + made.packets * CPU_PER_PACKET_NS + made.cpu_ns
    load = min(MOST_LOAD, cpu_ns / duration_ns)
    return Forecast(
        duration_ns=round(duration_ns),
        packets=round(made.packets),
        bytes=round(made.bytes),
        load=max(1.0, load) if made.flat_out else load,
    )


def disk_bytes(cell: Cell, *, packets: bool, capture: bool) -> int:
    """What one run of this cell leaves on the disk, roughly. What programs print is not counted."""
    work, costs = cell.parameters.workload, forecast(cell)
    rows = work.messages or work.count or 0
    total = RESULT_BYTES + SAMPLE_BYTES * rows
    if work.page is not None:
        total += OBJECT_BYTES * rows * (1 + work.page.scripts + work.page.images)
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


_TRAFFIC: Mapping[str, Callable[[Parameters], Traffic]] = {
    "echo": traffic.echo,
    "transfer": traffic.transfer,
    "connect": traffic.connect,
    "multiplex": traffic_streams.multiplex,
    "page": traffic_streams.page,
    "program": traffic.program,
}
