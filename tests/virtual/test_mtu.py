"""Packets that are larger than the path's MTU: dropped for that cause, and said so by ICMP or not at all."""

import re
import sys

import polars as pl
import pytest

from conftest import requires
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

DELAY_NS = ms(10)
MTU = 1400


def narrow(*, black_hole: bool = False) -> Object:
    there = {"delay_ns": DELAY_NS, "link_mtu_bytes": MTU, "mtu_black_hole": black_hole}
    return {"forward": there, "reverse": {"delay_ns": DELAY_NS}}


def sizes(ran: VirtualRun, verdict: str) -> list[int]:
    return ran.packets("forward").filter(pl.col("verdict") == verdict)["size_bytes"].to_list()


@pytest.mark.parametrize(("family", "headers"), [("ipv4", 20), ("ipv6", 40)])
def test_a_sender_of_too_large_packets_learns_the_mtu(cells: VirtualCells, family: str, headers: int) -> None:
    path: Object = {**narrow(), "family": family}
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 100_000}
    ran = cells.run(workload, **path)
    (outcome,) = ran.samples()["outcome"]
    ledger = ran.finished.ledger
    assert ledger is not None
    assert (outcome, ledger.closed) == ("ok", True)
    # All of the first window is on its way when the first message comes; none that is too large after it.
    dropped = sizes(ran, "dropped")
    assert dropped == [1500] * ledger.forward.dropped["mtu"]
    assert ledger.forward.icmp == len(dropped)
    assert max(sizes(ran, "delivered")) == MTU
    assert set(ran.dropped("reverse")) == set()


def test_a_black_hole_tells_nobody(cells: VirtualCells) -> None:
    send = "import socket, time; c = socket.create_connection(('server', 7)); c.sendall(bytes(14480)); time.sleep(20)"
    listen = "import socket; c, _ = socket.create_server(('', 7)).accept(); print(len(c.recv(100_000)), flush=True)"
    python = [sys.executable, "-I", "-S", "-c"]
    workload = {"kind": "program", "client": [*python, send], "server": [*python, listen], "port": 7}
    ran = cells.run(workload, **narrow(black_hole=True))
    ledger = ran.finished.ledger
    assert ledger is not None
    assert ran.text("client.err") == ""
    # Nothing arrives but the handshake: what is retransmitted is as large as before.
    assert (ran.text("server.out"), ledger.closed, ledger.forward.icmp) == ("", True, 0)
    assert set(sizes(ran, "dropped")) == {1500}
    assert max(sizes(ran, "delivered")) < 100


def test_ping_says_the_mtu_that_the_path_has(cells: VirtualCells) -> None:
    ping = [requires("ping"), "-n", "-c", "3", "-W", "1"]
    ran = cells.run({"kind": "program", "client": [*ping, "-M", "do", "-s", "1472", "{server}"]}, **narrow())
    assert f"Frag needed and DF set (mtu = {MTU})" in ran.text("client.out")
    fits = cells.run({"kind": "program", "client": [*ping, "-M", "do", "-s", str(MTU - 28), "{server}"]}, **narrow())
    assert "3 received" in fits.text("client.out")
    assert sizes(fits, "dropped") == []


def test_a_device_that_takes_more_than_the_path(cells: VirtualCells) -> None:
    # A packet of 9000 bytes is one packet, is counted with all its bytes, and is dropped.
    script = f"ip link set path0 mtu 9000 && {requires('ping')} -n -c 1 -W 1 -M do -s 8972 $1"
    requires("ip")
    ran = cells.run({"kind": "program", "client": ["sh", "-c", script, "sh", "{server}"]})
    ledger = ran.finished.ledger
    assert ledger is not None
    assert ledger.closed
    assert (ledger.forward.in_, ledger.forward.in_bytes, ledger.forward.dropped["mtu"]) == (1, 9000, 1)
    assert re.search(r"mtu = 1500", ran.text("client.out"))
    assert sizes(ran, "dropped") == [9000]
