"""What an impaired path does to protocols: packets lost by index, corrupted, copied and reordered, each counted."""

import re
import sys

import polars as pl
import pytest

from crosswind.cell.result import Reordering
from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells, VirtualRun
from virtual.test_losses import udp_burst

DELAY: Object = {"delay_ns": ms(10)}

RECEIVE = """
import pathlib, socket
with socket.create_server(("", 7)) as listener:
    connection, _ = listener.accept()
    received = b""
    while data := connection.recv(65536):
        received += data
    connection.sendall(b"!")
    print(len(received), received == bytes(range(256)) * (len(received) // 256))
print(pathlib.Path("/proc/net/snmp").read_text())
print(pathlib.Path("/proc/net/netstat").read_text())
"""

SEND = """
import pathlib, socket
with socket.create_connection(("server", 7)) as connection:
    connection.sendall(bytes(range(256)) * 4000)
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b"!"
print(pathlib.Path("/proc/net/snmp").read_text())
print(pathlib.Path("/proc/net/netstat").read_text())
"""


def transfer(cells: VirtualCells, **path: Object) -> VirtualRun:
    """1,024,000 bytes over one connection, after which both ends write down their kernel's counters."""
    python = [sys.executable, "-I", "-S", "-c"]
    return cells.run({"kind": "program", "client": [*python, SEND], "server": [*python, RECEIVE], "port": 7}, **path)


def counter(text: str, table: str, name: str) -> int:
    """A counter of /proc/net/snmp or netstat."""
    names, values = re.findall(rf"^{table}: (.*)$", text, re.MULTILINE)
    return int(values.split()[names.split().index(name)])


def test_a_udp_echo_loses_exactly_the_packets_that_the_script_loses(cells: VirtualCells) -> None:
    ran = cells.run(udp_burst(100), forward={"lose": [0, 7, 8, 99]}, reverse={"lose": [0, 50]})
    assert ran.dropped("forward") == [0, 7, 8, 99]
    assert ran.dropped("reverse") == [0, 50]
    # Message i is packet i on its way there. The replies to those that arrive are numbered anew on their way back.
    arrived = [number for number in range(100) if number not in (0, 7, 8, 99)]
    lost = {0, 7, 8, 99, arrived[0], arrived[50]}
    assert set(ran.samples().filter(pl.col("outcome") == "timeout")["exchange"]) == lost


def test_corrupted_packets_are_dropped_by_the_host_and_sent_again(cells: VirtualCells) -> None:
    ran = transfer(cells, forward={**DELAY, "corrupt": 0.02}, reverse=DELAY)
    server, ledger = ran.text("server.out"), ran.finished.ledger
    assert ledger is not None
    assert server.splitlines()[0] == "1024000 True"
    assert ledger.closed
    assert sum(ledger.forward.dropped.values()) == 0
    packets = ran.packets("forward")
    corrupted = packets.filter(pl.col("flipped_bit").is_not_null())
    assert len(corrupted) == ledger.forward.corrupted > 5
    # The kernel has found each of them: those whose IP header it was, and the others.
    headers = counter(server, "Ip", "InHdrErrors")
    assert headers == len(corrupted.filter(pl.col("flipped_bit") < 160))
    assert counter(server, "Tcp", "InCsumErrors") == len(corrupted) - headers
    # What they carried was sent again, and nothing else.
    again = packets["payload_bytes"].sum() - 1_024_000
    assert again >= corrupted["payload_bytes"].sum() > 0


def test_copies_reach_the_host_which_tells_the_sender_of_each(cells: VirtualCells) -> None:
    # Over a link one arrives after the other: what arrives while a program reads is acknowledged together.
    link = {"rate_bps": 20_000_000, "queue": {"packets": 1000}}
    ran = transfer(cells, forward={**DELAY, **link, "duplicate": 0.05}, reverse=DELAY)
    ledger, packets = ran.finished.ledger, ran.packets("forward")
    assert ledger is not None
    assert (ledger.closed, ran.text("server.out").splitlines()[0]) == (True, "1024000 True")
    copies = packets.filter(pl.col("copy") > 0)
    assert len(copies) == ledger.forward.duplicated > 5
    assert len(packets) == ledger.forward.in_ + ledger.forward.duplicated == ledger.forward.delivered
    # A copy has the bytes of its original, and is told apart from a retransmission (RFC 2883).
    originals = packets.filter(pl.col("copy") == 0).select("index", "size_bytes", "in_ns")
    assert len(copies.join(originals, on=["index", "size_bytes", "in_ns"])) == len(copies)
    with_payload = packets.filter(pl.col("payload_bytes") > 0)
    # The server has written its counters down when the copy of the last one arrives.
    told = with_payload.filter(pl.col("copy") > 0, pl.col("index") < with_payload["index"].max())
    assert counter(ran.text("client.out"), "TcpExt", "TCPDSACKRecv") == len(told)


def overtaken(packets: pl.DataFrame) -> Reordering:
    """Packets that arrived after one that had entered later, by the definitions of RFC 4737."""
    arrivals = packets.filter(verdict="delivered").sort("out_ns", maintain_order=True).select("index", "out_ns").rows()
    found = []
    for place, (index, at) in enumerate(arrivals):
        first = next((it for it, (other, _) in enumerate(arrivals[:place]) if other > index), None)
        if first is not None:
            found.append((place - first, at - arrivals[first][1]))
    extents, offsets = zip(*found, strict=True)
    return Reordering(packets=len(found), extent=max(extents), late_time_offset_ns=max(offsets))


def test_every_fifth_packet_overtakes_the_four_before_it(cells: VirtualCells) -> None:
    # A packet each 2 ms: the fifth arrives after 8 ms, and the fourth after 6 + 9 ms, four arrivals later.
    ran = cells.run(udp_burst(20, rate=500), forward={"delay_ns": ms(9), "reorder_gap": 5})
    ledger = ran.finished.ledger
    assert ledger is not None and ledger.forward.reordering is not None
    assert (ledger.forward.reordering.packets, ledger.forward.reordering.extent) == (16, 4)
    assert ledger.forward.reordering.late_time_offset_ns == pytest.approx(ms(7), abs=ADDED_NS)
    assert ledger.forward.reordering == overtaken(ran.packets("forward"))
    # Answers follow in the order in which the messages came.
    assert ledger.reverse.reordering is None


def test_rack_waits_a_quarter_of_the_round_trip_for_packets_that_were_overtaken(cells: VirtualCells) -> None:
    link = {"rate_bps": 10_000_000, "queue": {"packets": 1000}}
    # One packet in 50 overtakes all that are in flight, by up to 20 ms: more than the quarter of 40 ms that RACK waits.
    far = transfer(cells, forward={**link, "delay_ns": ms(20), "reorder_gap": 50}, reverse={"delay_ns": ms(20)})
    # All are displaced by less than that.
    jitter = {"delay_ns": ms(20), "jitter_ns": ms(3), "reorder": True}
    near = transfer(cells, forward={**link, **jitter}, reverse={"delay_ns": ms(20)})
    for ran in (far, near):
        ledger = ran.finished.ledger
        assert ledger is not None
        assert (ledger.closed, sum(ledger.forward.dropped.values())) == (True, 0)
        counted = overtaken(ran.packets("forward"))
        assert (ledger.forward.reordering, ledger.reverse.reordering) == (counted, None) and counted.packets > 100
        assert counter(ran.text("client.out"), "TcpExt", "TCPSACKReorder") > 100
    # Nothing was lost: all that was sent again was sent in vain, and the receiver says so (RFC 2883).
    sent_again = counter(far.text("client.out"), "Tcp", "RetransSegs")
    assert sent_again == counter(far.text("client.out"), "TcpExt", "TCPDSACKRecv") > 0
    assert counter(near.text("client.out"), "Tcp", "RetransSegs") == 0
