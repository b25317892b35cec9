"""Times that follow from the protocol alone: computing takes none, so that there is nothing to tolerate."""

import sys

import polars as pl
import pytest

from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

DELAY: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}
ROUND_TRIP_NS = ms(20)

# System calls that fail, or find nothing in a loop, take 1 us each in virtual time: the only time that programs take.
FEW_CALLS_NS = 5_000
HANDSHAKE_CALLS_NS = 10_000


def round_trips_ns(ran: VirtualRun) -> list[int]:
    samples = ran.samples()
    assert set(samples["outcome"]) == {"ok"}
    return (samples["received_ns"] - samples["sent_ns"]).to_list()


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_round_trips_are_twice_the_delay_and_a_few_system_calls(cells: VirtualCells, transport: str) -> None:
    ran = cells.run({"kind": "echo", "transport": transport, "messages": 100}, **DELAY)
    times = round_trips_ns(ran)
    assert ROUND_TRIP_NS <= min(times) <= max(times) <= ROUND_TRIP_NS + FEW_CALLS_NS
    # All but those in which a connection or a thread was set up make the same calls.
    assert len(set(times)) <= 4


def test_packets_leave_the_path_when_they_are_due(cells: VirtualCells) -> None:
    ran = cells.run({"kind": "echo", "transport": "tcp", "messages": 100}, **DELAY)
    late_ns = ran.packets().select(pl.col("out_ns") - pl.col("due_ns")).to_series()
    assert late_ns.min() >= 0
    assert late_ns.max() <= FEW_CALLS_NS
    assert ran.finished.virtual_time
    assert (ran.finished.cpu, ran.finished.fidelity.starvation, ran.finished.fidelity.probe_starvation) == (None,) * 3


def test_a_rate_serialises_packets_exactly(cells: VirtualCells) -> None:
    # 1000 bytes of payload are 1028 on the wire: 8.224 ms at 1 Mbit/s.
    link: Object = {"delay_ns": ms(10), "rate_bps": 1_000_000}
    ran = cells.run(
        {"kind": "echo", "transport": "udp", "messages": 10, "size_bytes": 1000}, forward=link, reverse=link
    )
    packets = ran.packets("forward").filter(pl.col("payload_bytes") == 1000)
    assert len(packets) == 10
    assert set((packets["due_ns"] - packets["in_ns"]).to_list()) == {ms(10) + 8_224_000}


@pytest.mark.parametrize(("transport", "round_trips"), [("tcp", 1), ("tls", 2), ("websocket", 2), ("wss", 3)])
def test_a_handshake_takes_whole_round_trips(cells: VirtualCells, transport: str, round_trips: int) -> None:
    ran = cells.run({"kind": "connect", "transport": transport, "count": 5}, **DELAY)
    for took_ns in ran.samples()["connect_ns"].to_list():
        assert round_trips * ROUND_TRIP_NS <= took_ns <= round_trips * (ROUND_TRIP_NS + HANDSHAKE_CALLS_NS)


def losing(cells: VirtualCells, workload: Object, wanted: set[int]) -> VirtualRun:
    """A cell whose path loses just these packets to the server, of those before the last of them."""
    path = {"forward": {"delay_ns": ms(10), "loss": 0.1}, "reverse": {"delay_ns": ms(10)}}
    for seed in range(1, 300):
        ran = cells.run(workload, seed=seed, **path)
        packets = ran.packets("forward")
        dropped = set(packets.filter(pl.col("verdict") == "dropped")["index"].to_list())
        if dropped == wanted:
            return ran
    raise AssertionError(f"no seed loses {wanted} and nothing else")


def test_a_lost_syn_is_sent_again_after_one_second(cells: VirtualCells) -> None:
    ran = losing(cells, {"kind": "connect", "transport": "tcp", "count": 1}, {0})
    first, second, *_ = ran.packets("forward")["in_ns"].to_list()
    # RFC 6298: the first retransmission timeout is 1 s. Linux counts it in ticks of 1 ms here, and its timer wheel
    # keeps timers of 512 to 4095 ticks in slots of 64, which expire at their ends (kernel/time/timer.c).
    assert ms(1000) <= second - first <= ms(1000 + 64 + 1)
    (took_ns,) = ran.samples()["connect_ns"].to_list()
    assert second - first + ROUND_TRIP_NS <= took_ns <= second - first + ROUND_TRIP_NS + HANDSHAKE_CALLS_NS


def test_nagles_algorithm_waits_for_the_delayed_acknowledgement(cells: VirtualCells) -> None:
    # A program that writes a message in two pieces and waits for the answer: with Nagle's algorithm the second piece
    # waits for the acknowledgement of the first, which the server delays by 40 ms, TCP_DELACK_MIN.
    took_ns = {nodelay: two_pieces_ns(cells, nodelay=nodelay) for nodelay in (True, False)}
    assert ROUND_TRIP_NS <= took_ns[True] <= ROUND_TRIP_NS + ms(1)
    assert took_ns[False] - took_ns[True] >= ms(20)
    assert took_ns[False] == two_pieces_ns(cells, nodelay=False)


SERVER = """
import socket
connection, _ = socket.create_server(("", 80)).accept()
while True:
    received = b""
    while len(received) < 200:
        received += connection.recv(200) or exit()
    connection.sendall(b"answer")
"""
CLIENT = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 80))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[2]))
for _ in range(20):
    begun = time.monotonic_ns()
    connection.sendall(b"x" * 100)
    connection.sendall(b"y" * 100)
    connection.recv(100)
    print(time.monotonic_ns() - begun)
"""


def two_pieces_ns(cells: VirtualCells, *, nodelay: bool) -> int:
    """How long the last of 20 exchanges takes: at the start of a connection Linux acknowledges at once."""
    python = [sys.executable, "-IS", "-c"]
    client = [*python, CLIENT, "{server}", str(int(nodelay))]
    ran = cells.run({"kind": "program", "client": client, "server": [*python, SERVER]}, **DELAY)
    assert ran.finished.program is not None and ran.finished.program.ok, ran.text("client.err")
    return int(ran.text("client.out").splitlines()[-1])


def test_timers_fire_at_the_same_nanosecond_each_time(cells: VirtualCells) -> None:
    workload: Object = {"kind": "connect", "transport": "tcp", "count": 1}
    first, again = (losing(cells, workload, {0}).packets()["in_ns"].to_list() for _ in range(2))
    assert first == again
