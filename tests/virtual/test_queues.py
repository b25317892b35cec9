"""Queue disciplines beside the kernel's own, in the same guests, for the same packets; and what TCP makes of marks.

The kernel's discipline stands behind a token bucket (tbf), and ours before a link with the same burst: both take a
packet from the queue as soon as the one before has gone, and keep it until there are tokens for it. The kernel's timers
are up to half a microsecond late, CoDel's clock ticks every 1.024 us, and its root is one step of Newton's method at
each drop (50 ms in place of 70.7 ms after the second): numbers of drops and marks have to be alike, not the packets.
PIE draws from the guest's randomness. RED is left out: tbf asks it for packets in a way in which it never idles.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import crosswind
from captures import tshark
from conftest import requires
from crosswind.cell.guests import Template
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun, run_script

HOSTS = """
set -e
ip netns add a
ip netns add b
ip link add v netns a type veth peer name v netns b
for host in a b; do
    ip -n $host link set lo up
    ip -n $host link set v address 02:00:00:00:00:0$host up
done
ip -n a addr add 10.0.0.1/24 dev v
ip -n b addr add 10.0.0.2/24 dev v
ip -n a neigh add 10.0.0.2 lladdr 02:00:00:00:00:0b dev v
ip -n b neigh add 10.0.0.1 lladdr 02:00:00:00:00:0a dev v
ip netns exec a tc qdisc add dev v root handle 1: tbf rate 8mbit burst 2000 limit 100000000
ip netns exec a tc qdisc add dev v parent 1: handle 2: $1
"""

# Packets of several flows at times of their own; those of odd flows take marks. Between two packets there is no time,
# the time that one takes at the load, or twice that.
CLIENT = """
import random, socket, sys, time
server, payload, flows, phases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
draws = random.Random(1)
sockets = []
for flow in range(flows):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2 if flow % 2 else 0)
    sender.bind(("", 6000 + flow))
    sender.connect((server, 5001))
    sockets.append(sender)
at, number = time.monotonic_ns() + 100_000_000, 0
for phase in phases:
    count, load = map(int, phase.split(":"))
    for _ in range(count):
        wait = at - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        sockets[draws.randrange(flows)].send(number.to_bytes(4, "big") + bytes(payload - 4))
        number += 1
        at += 1_000_000 * 100 // load * draws.randrange(3)
time.sleep(30)
sockets[0].send(b"end.")
"""

SERVER = """
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
receiver.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
receiver.bind(("", 5001))
while True:
    data, control, _, _ = receiver.recvmsg(2000, 100)
    if data == b"end.":
        break
    print(int.from_bytes(data[:4], "big"), control[0][2][0] & 3)
"""

PACKET_BYTES = 1000
"""On the wire: 1 ms at 8 Mbit/s. The kernel counts the 14 bytes of the Ethernet header, we the IP packet."""

HEADERS = 28
ETHERNET = 14

PHASES = [(3000, 150), (300, 20), (2000, 105), (1000, 300)]
PACKETS = sum(count for count, _ in PHASES)


@dataclass(frozen=True)
class Fates:
    """What became of the packets, by number."""

    dropped: set[int]
    marked: set[int]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sender and the receiver."""
    home = tmp_path_factory.mktemp("programs")
    for name, text in (("client.py", CLIENT), ("server.py", SERVER)):
        (home / name).write_text(text)
    return home / "client.py", home / "server.py"


def by_kernel(template: Template, programs: tuple[Path, Path], qdisc: str, flows: int, seed: int = 1) -> Fates:
    for program in ("ip", "tc"):
        requires(program)
    client, server = programs
    phases = " ".join(f"{count}:{load}" for count, load in PHASES)
    payload = PACKET_BYTES - HEADERS - ETHERNET
    script = f"""
    ip netns exec b {sys.executable} {server} &
    sleep 1
    ip netns exec a {sys.executable} {client} 10.0.0.2 {payload} {flows} {phases}
    wait
    """
    ran = run_script(template, HOSTS + script, qdisc, seed=seed)
    assert ran.status == 0, ran.errors
    return fates(ran.output)


def by_path(programs: tuple[Path, Path], settings: Object, flows: int, seed: int = 1) -> Fates:
    client, server = programs
    phases = [f"{count}:{load}" for count, load in PHASES]
    cell = crosswind.virtual(
        {"forward": {"rate": "8mbit", "burst": 2000, **settings}},
        ["{python}", str(client), "{server}", str(PACKET_BYTES - HEADERS), str(flows), *phases],
        ["{python}", str(server)],
        seed=seed,
    )
    return fates(cell.output["server"])


def fates(output: str) -> Fates:
    received = dict(tuple(map(int, line.split())) for line in output.splitlines())
    return Fates(set(range(PACKETS)) - set(received), {number for number, ecn in received.items() if ecn == 3})


@pytest.mark.parametrize(("discipline", "flows"), [("codel", 1), ("codel", 4), ("fq_codel", 4)])
def test_codel_drops_and_marks_as_many_as_the_kernels(
    template: Template, programs: tuple[Path, Path], discipline: str, flows: int
) -> None:
    theirs = by_kernel(template, programs, f"{discipline} limit 10000 target 5ms interval 100ms ecn", flows)
    ours = by_path(programs, {"discipline": discipline, "queue": "10000p"}, flows)
    assert len(ours.dropped) == pytest.approx(len(theirs.dropped), rel=0.05)
    assert len(ours.marked) == pytest.approx(len(theirs.marked), rel=0.05)
    # Until the second drop nobody needs a root.
    assert min(ours.dropped) == min(theirs.dropped)
    assert min(ours.marked, default=None) == min(theirs.marked, default=None)


def test_pie_drops_as_many_as_the_kernels(template: Template, programs: tuple[Path, Path]) -> None:
    qdisc = "pie limit 10000 target 15ms tupdate 15ms ecn"
    seeds = range(1, 4)
    theirs = [len(by_kernel(template, programs, qdisc, 4, seed).dropped) for seed in seeds]
    ours = [len(by_path(programs, {"discipline": "pie", "queue": "10000p"}, 4, seed).dropped) for seed in seeds]
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.05)


TRANSFER = {"kind": "transfer", "transport": "tcp", "size_bytes": 3_000_000}


def bottleneck(**settings: Object | str) -> Object:
    forward: Object = {"delay_ns": ms(10), "rate_bps": 10_000_000, **settings}
    return {"forward": forward, "reverse": {"delay_ns": ms(10)}}


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_tcp_with_ecn_is_marked_and_slows_down_without_a_drop(cells: VirtualCells, family: str) -> None:
    ran = cells.run(TRANSFER, host={"ecn": True}, **bottleneck(discipline="codel"), family=family)
    ledger = ran.finished.ledger
    assert ledger is not None
    assert (ran.samples()["outcome"].to_list(), set(ledger.forward.dropped.values())) == (["ok"], {0})
    packets = ran.packets("forward")
    assert ledger.forward.marked == packets["marked"].sum() > 3
    # The receiver gets the marks in headers whose checksums are right; the sender says that it has reduced its window.
    ecn, checked = ("ip.dsfield.ecn", ["-o", "ip.check_checksum:TRUE"]) if family == "ipv4" else ("ipv6.tclass.ecn", [])
    assert len(tshark(ran, "server", ["frame.number"], f"{ecn} == 3")) == ledger.forward.marked
    assert len(tshark(ran, "client", ["frame.number"], f"{ecn} == 3")) == 0
    assert len(tshark(ran, "server", ["frame.number"], "ip.checksum.status == 0", *checked)) == 0
    assert len(tshark(ran, "client", ["frame.number"], "tcp.flags.cwr == 1 and tcp.flags.syn == 0")) > 3


def test_marks_and_drops_of_codel_keep_the_queue_short(cells: VirtualCells) -> None:
    def median_ms(ran: VirtualRun) -> float:
        return float(ran.packets("forward").filter(pl.col("size_bytes") > 1000)["queueing_ns"].median()) / 1e6

    marked = cells.run(TRANSFER, host={"ecn": True}, **bottleneck(discipline="codel"))
    dropped = cells.run(TRANSFER, **bottleneck(discipline="codel"))
    full = cells.run(TRANSFER, **bottleneck())
    ledgers = [ran.finished.ledger.forward for ran in (marked, dropped, full) if ran.finished.ledger]
    assert [ledger.dropped["aqm"] > 0 for ledger in ledgers] == [False, True, False]
    assert [ledger.marked > 0 for ledger in ledgers] == [True, False, False]
    assert max(median_ms(marked), median_ms(dropped)) < 30
    assert median_ms(full) > 60
