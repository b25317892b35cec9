"""A cell that is called exact runs once: it has to come out the same with every seed."""

import json
import subprocess
from typing import Any

import pytest

from conftest import requires_binary
from crosswind.catalog import catalog
from linux.lab import Object, cell_of, ms
from virtual.lab import VirtualCells

LINK: Object = {"delay_ns": ms(10), "rate_bps": 5_000_000, "queue": {"packets": 20}}
PATH: Object = {"forward": LINK, "reverse": LINK}
SHORT_QUEUE: Object = {**LINK, "queue": {"packets": 5}}

SMALL: dict[str, Object] = {
    "echo": {"messages": 10, "size_bytes": 2000},
    "transfer": {"size_bytes": 100_000},
    "connect": {"count": 5},
    "multiplex": {"streams": 3, "messages": 9, "size_bytes": 500},
    "page": {
        "count": 1,
        "html_bytes": 5000,
        "scripts_bytes": 20_000,
        "scripts": 2,
        "images_bytes": 50_000,
        "images": 5,
    },
}
ONE_PACKET: Object = {"size_bytes": 1000}

# The only thing in the packet table that the seed decides: a port says nothing about times.
PORTS = ("source_port", "destination_port")


def cell_with(kind: str, transport: str, **changes: Any) -> Object:
    """A small workload."""
    one_packet = ONE_PACKET if kind == "echo" and catalog().transports[transport].datagram else {}
    return {"kind": kind, "transport": transport, **SMALL[kind], **one_packet, **changes}


def is_exact(workload: Object, **sections: Any) -> bool:
    """Whether crosswind-cell calls a cell exact."""
    host = {**sections.pop("host", {}), "clock": "virtual"}
    cell = json.dumps(cell_of(workload, host=host, **{**PATH, **sections}))
    answer = subprocess.run([requires_binary(), "--check"], input=cell, capture_output=True, text=True, check=True)
    return bool(json.loads(answer.stdout)["exact"])


def assert_same_with_every_seed(cells: VirtualCells, workload: Object, **sections: Any) -> None:
    assert is_exact(workload, **sections)
    first, other = (cells.run(workload, seed=seed, **{**PATH, **sections}) for seed in (1, 2))
    assert len(first.samples()) > 0
    assert set(first.samples()["outcome"]) == {"ok"}
    # Which ports the kernel gives clients is left to chance.
    assert first.samples().drop("client_port").equals(other.samples().drop("client_port"))
    assert first.packets().drop(PORTS).equals(other.packets().drop(PORTS))
    assert first.finished.elapsed_ns == other.finished.elapsed_ns


WORKLOADS = [(kind, transport) for kind in SMALL for transport in catalog().workloads[kind].transports]
IS_QUIC = {name: transport.carrier == "quic" for name, transport in catalog().transports.items()}


@pytest.mark.parametrize(
    ("kind", "transport"), [(kind, transport) for kind, transport in WORKLOADS if not IS_QUIC[transport]]
)
def test_an_exact_cell_is_the_same_with_every_seed(cells: VirtualCells, kind: str, transport: str) -> None:
    assert_same_with_every_seed(cells, cell_with(kind, transport))


def test_no_cell_with_quic_is_called_exact() -> None:
    over_quic = [(kind, transport) for kind, transport in WORKLOADS if IS_QUIC[transport]]
    assert {transport for _, transport in over_quic} >= {"quic", "http3", "webtransport"}
    assert [pair for pair in over_quic if is_exact(cell_with(*pair))] == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 100.0},
        {"kind": "echo", "transport": "tcp", "connection": "new"},
        {"kind": "echo", "transport": "tcp", "direction": "upload"},
        {"kind": "echo", "transport": "websocket", "direction": "download", "payload": "text"},
        {"kind": "echo", "transport": "udp", "connections": 4},
        {"kind": "echo", "transport": "websocket", "connections": 4},
        {"kind": "echo", "transport": "http1", "connections": 3, "connection": "new"},
        {"kind": "echo", "transport": "h2c", "connections": 4},
        {"kind": "echo", "transport": "socketio-websocket", "polling": True, "payload": "text"},
        {"kind": "connect", "transport": "socketio-websocket", "polling": True, "connections": 2},
        {"kind": "transfer", "transport": "tcp", "direction": "download", "connections": 4},
        {"kind": "transfer", "transport": "h2c", "count": 3},
        {"kind": "multiplex", "transport": "h2c", "rate_per_s": 500.0},
        {"kind": "echo", "transport": "tls", "connection": "new", "connections": 3},
        {"kind": "echo", "transport": "tls", "connection": "new", "resumption": "session"},
        {"kind": "echo", "transport": "tls", "connection": "new", "resumption": "0-rtt"},
        {"kind": "echo", "transport": "wss", "connections": 4},
        {"kind": "transfer", "transport": "http2", "count": 3},
        {"kind": "page", "transport": "https1", "connections": 6},
        {"kind": "page", "transport": "http1", "connections": 6},
    ],
    ids=lambda changes: " ".join(map(str, changes.values())),
)
def test_settings_of_a_workload_leave_nothing_to_chance(cells: VirtualCells, changes: Object) -> None:
    assert_same_with_every_seed(cells, cell_with(**changes))


@pytest.mark.parametrize(
    "sections",
    [
        {"forward": SHORT_QUEUE, "reverse": SHORT_QUEUE},
        {"forward": {}, "reverse": {}},
        {"forward": LINK, "reverse": {"delay_ns": ms(50)}},
        {"family": "ipv6"},
        {"mtu_bytes": 600},
        {"host": {"profile": "freebsd-8"}},
    ],
    ids=["short queues", "no delay", "two directions", "ipv6", "small packets", "freebsd-8"],
)
def test_a_path_without_loss_leaves_nothing_to_chance(cells: VirtualCells, sections: Object) -> None:
    assert_same_with_every_seed(cells, cell_with("transfer", "tcp", connections=2), **sections)


STEADY = """
    bic cubic dctcp highspeed htcp hybla illinois reno scalable vegas veno westwood yeah
"""


@pytest.mark.parametrize("control", STEADY.split())
def test_congestion_controls_that_draw_nothing_at_random(cells: VirtualCells, control: str) -> None:
    path = {"forward": SHORT_QUEUE, "reverse": SHORT_QUEUE}
    assert_same_with_every_seed(cells, cell_with("transfer", "tcp"), host={"congestion_control": control}, **path)
