"""The peers that come with Crosswind: their names in a study, what starts them, what they need (docs/peers.md)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

NATIVE = "native"
"""Crosswind's own client and server."""


@dataclass(frozen=True)
class Missing:
    """What a peer needs and this machine lacks, in a sentence, and what to do about it."""

    problem: str
    hint: str


@dataclass(frozen=True)
class KnownPeer:
    """A peer that comes with Crosswind.

    Attributes: client, server: what starts it at that end, with placeholders (docs/programs.md); None where it is none.
        needs: "module:function", which says what it lacks: no arguments, a `Missing` or None. guest_memory: what a
        guest of virtual time has to have for it; "" for as much as any. summary: what it is.
    """

    name: str
    summary: str
    client: tuple[str, ...] | None
    server: tuple[str, ...] | None
    needs: str
    guest_memory: str = ""

    def command(self, end: str) -> tuple[str, ...] | None:
        """What starts it as "client" or "server"; None where it cannot be that."""
        return self.client if end == "client" else self.server

    def missing(self) -> Missing | None:
        """What it needs and this machine lacks, if so."""
        module, _, function = self.needs.partition(":")
        find: Callable[[], Missing | None] = getattr(import_module(module), function)
        return find()


def _module(name: str) -> tuple[str, ...]:
    return ("{python}", "-m", f"crosswind.peers.{name}")


_PEERS = (
    KnownPeer(
        "chromium",
        "Chromium, without a window",
        client=_module("chromium"),
        server=None,
        needs="crosswind.peers.chromium.needs:missing",
        guest_memory="3G",
    ),
    KnownPeer(
        "node",
        "Node.js with ws and the official Socket.IO",
        client=_module("node"),
        server=_module("node"),
        needs="crosswind.peers.node.needs:missing_for_node",
        guest_memory="1G",
    ),
    KnownPeer(
        "deno",
        "Deno with WebTransport, ws and the official Socket.IO",
        client=_module("deno"),
        server=_module("deno"),
        needs="crosswind.peers.node.needs:missing_for_deno",
        guest_memory="1G",
    ),
    KnownPeer(
        "iperf3",
        "iperf3, for the workload transfer over tcp",
        client=_module("iperf3"),
        server=_module("iperf3"),
        needs="crosswind.peers.iperf3:missing",
    ),
)

PEERS: Mapping[str, KnownPeer] = {peer.name: peer for peer in _PEERS}
"""By name, as a study has it."""


def names(end: str | None = None) -> Sequence[str]:
    """What a study may call an end ("client", "server", or either), `native` first."""
    able = (peer.name for peer in _PEERS if end is None or peer.command(end) is not None)
    return (NATIVE, *able)
