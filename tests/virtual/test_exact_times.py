"""Times that follow from the protocol alone: computing takes none, so that there is nothing to tolerate."""

import sys

import polars as pl
import pytest

from crosswind.catalog import catalog
from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells, round_trips_ms

DELAY: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}


@pytest.mark.parametrize("transport", catalog().transports)
def test_round_trips_are_twice_the_delay(cells: VirtualCells, transport: str) -> None:
    assert round_trips_ms(cells.run({"kind": "echo", "transport": transport, "messages": 100}, **DELAY)) == [20] * 100


def test_packets_leave_the_path_when_they_are_due(cells: VirtualCells) -> None:
    ran = cells.run({"kind": "echo", "transport": "tcp", "messages": 100}, **DELAY)
    late_ns = ran.packets().select(pl.col("out_ns") - pl.col("due_ns")).to_series()
    assert late_ns.min() >= 0
    assert late_ns.max() <= ADDED_NS
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


def test_the_first_connection_takes_no_longer_than_the_next(cells: VirtualCells) -> None:
    # 60 bytes each way are 9.6 us at 100 Mbit/s. The next connection's packets come behind the end of the one before,
    # 52 bytes: 8.32 us more. A reading of the clock takes 1 ns.
    link: Object = {"rate_bps": 100_000_000}
    ran = cells.run({"kind": "connect", "transport": "tcp", "count": 4}, forward=link, reverse=link)
    first_ns, *others = ran.samples().sort("exchange")["connect_ns"].to_list()
    assert 0 <= first_ns - 9_600 <= 20
    (other_ns,) = set(others)
    assert 0 <= other_ns - 17_920 <= 20


@pytest.mark.parametrize("transport", ["tcp", "quic", "webtransport"])
def test_a_path_without_delay_takes_no_time(cells: VirtualCells, transport: str) -> None:
    # The emulator holds packets back where a machine's speed is the limit, which virtual time does not have.
    ran = cells.run({"kind": "echo", "transport": transport, "messages": 100})
    assert ran.finished.fidelity is not None
    assert (ran.finished.fidelity.held_ns, ran.finished.warnings) == (0, ())
    assert ran.samples().select((pl.col("received_ns") - pl.col("sent_ns")).max()).item() <= ADDED_NS


def test_nagles_algorithm_waits_for_the_delayed_acknowledgement(cells: VirtualCells) -> None:
    # A program that writes a message in two pieces and waits for the answer: with Nagle's algorithm the second piece
    # waits for the acknowledgement of the first, which the server delays by 40 ms, TCP_DELACK_MIN: a round trip more,
    # and 41 ticks, because the first of them has begun.
    assert two_pieces_ns(cells, nodelay=True) // 1000 == 20_000
    assert two_pieces_ns(cells, nodelay=False) // 1000 == 20_000 + 20_000 + 41_000


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
    first, again = (cells.run_losing(workload, {"forward": {0}}, among=20, **DELAY) for _ in range(2))
    assert first.packets()["in_ns"].to_list() == again.packets()["in_ns"].to_list()
