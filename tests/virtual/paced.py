"""A sender of numbered datagrams at times of its own, and a receiver that says what has come, when and how marked.

Both run over any path, so that what became of each packet can be compared.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import crosswind
from crosswind.cell.result import Finished

# Packets of several flows at times of their own; those of odd flows take marks. Between two packets there is no time,
# the time that one takes at the load, or twice that.
CLIENT = """
import random, socket, subprocess, sys, time
server, payload, flows, phases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[6:]
codepoints, hosts = [int(codepoint) for codepoint in sys.argv[4].split(",")], int(sys.argv[5])
for host in range(1, hosts):
    subprocess.run(["ip", "address", "add", f"192.0.2.{host}", "dev", "lo"], check=True)
draws = random.Random(1)
sockets = []
for flow in range(flows):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)  # SO_SNDBUFFORCE
    codepoint = codepoints[flow % len(codepoints)]
    sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, codepoint << 2 | (2 if flow % 2 else 0))
    sender.bind((f"192.0.2.{flow % hosts}" if flow % hosts else "", 6000 + flow))
    sender.connect((server, 5001))
    sockets.append(sender)
at, number = time.monotonic_ns() + 100_000_000, 0
for phase in phases:
    count, load = map(int, phase.split(":"))
    for _ in range(count):
        wait = at - time.monotonic_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        sockets[draws.randrange(flows)].send(
            number.to_bytes(4, "big") + time.monotonic_ns().to_bytes(8, "big") + bytes(payload - 12)
        )
        number += 1
        at += 1_000_000 * 100 // load * draws.randrange(3)
time.sleep(30)
"""

# A queue may drop any packet, also one that would say that it is the last. Virtual time waits for nothing.
SERVER = """
import socket, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 28)  # SO_RCVBUFFORCE
receiver.setsockopt(socket.IPPROTO_IP, 13, 1)  # IP_RECVTOS
receiver.bind(("", 5001))
receiver.settimeout(30)
try:
    while True:
        data, control, _, _ = receiver.recvmsg(2000, 100)
        took = time.monotonic_ns() - int.from_bytes(data[4:12], "big")
        print(int.from_bytes(data[:4], "big"), control[0][2][0] & 3, took)
except TimeoutError:
    pass
"""

PACKET_BYTES = 1000
"""On the wire: 1 ms at 8 Mbit/s."""

HEADERS = 28

PHASES = ((3000, 150), (300, 20), (2000, 105), (1000, 300))
"""Numbers of packets, and the load of a link of 8 Mbit/s in percent."""


@dataclass(frozen=True)
class Traffic:
    """So many flows, how many packets they send together at which load, and their codepoints and sources in turn."""

    flows: int = 1
    phases: tuple[tuple[int, int], ...] = PHASES
    codepoints: tuple[int, ...] = (0,)
    hosts: int = 1

    @property
    def packets(self) -> int:
        """All packets."""
        return sum(count for count, _ in self.phases)

    def flow_of(self) -> npt.NDArray[np.int64]:
        """The flow of each packet, as the client draws it."""
        draws = random.Random(1)
        return np.array([(draws.randrange(self.flows), draws.randrange(3))[0] for _ in range(self.packets)])


@dataclass(frozen=True)
class Fates:
    """What became of so many packets: numbers in the order of arrival, how long each took, and which were marked."""

    sent: int
    arrived: tuple[int, ...]
    marked: frozenset[int]
    took_ns: tuple[int, ...]

    @property
    def dropped(self) -> frozenset[int]:
        """The packets that did not arrive."""
        return frozenset(range(self.sent)) - frozenset(self.arrived)


@dataclass(frozen=True)
class Paced:
    """The programs."""

    client: Path
    server: Path

    def arguments(self, traffic: Traffic, size: int) -> list[str]:
        """Of the client, behind the server's address: packets of `size` bytes."""
        phases = (f"{count}:{load}" for count, load in traffic.phases)
        codepoints = ",".join(map(str, traffic.codepoints))
        return [str(size - HEADERS), str(traffic.flows), codepoints, str(traffic.hosts), *phases]

    def over(self, path: dict[str, Any], traffic: Traffic, *, seed: int = 1) -> tuple[Fates, Finished]:
        """What becomes of the packets over a path, whose cell has to be valid."""
        cell = crosswind.virtual(
            path,
            ["{python}", str(self.client), "{server}", *self.arguments(traffic, PACKET_BYTES)],
            ["{python}", "-u", str(self.server)],
            seed=seed,
        )
        assert cell.result.valid, cell.result.reasons
        return fates(cell.output["server"], traffic), cell.result


def fates(output: str, traffic: Traffic) -> Fates:
    """What the receiver has said."""
    rows = [tuple(map(int, line.split())) for line in output.splitlines()]
    marked = frozenset(number for number, ecn, _ in rows if ecn == 3)
    arrived = tuple(number for number, _, _ in rows)
    return Fates(traffic.packets, arrived, marked, tuple(took for _, _, took in rows))


def written(home: Path) -> Paced:
    """The programs, in a directory."""
    for name, text in (("client.py", CLIENT), ("server.py", SERVER)):
        (home / name).write_text(text)
    return Paced(home / "client.py", home / "server.py")
