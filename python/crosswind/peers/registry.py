"""The peers that come with Crosswind: their names in a study, what starts them, what they need (docs/peers.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from crosswind.errors import CrosswindError

NATIVE = "native"
"""Crosswind's own client and server."""


@dataclass(frozen=True)
class Missing:
    """What a peer needs and this machine lacks, in a sentence, and what to do about it."""

    problem: str
    hint: str | None


@dataclass(frozen=True)
class KnownPeer:
    """A peer that comes with Crosswind.

    Attributes: summary: what it is. client, server: whether it can be that. module: what starts it. needs: functions,
        "module:function", which raise CrosswindError for what they do not find.
    """

    name: str
    summary: str
    module: str
    needs: tuple[str, ...]
    client: bool = True
    server: bool = True

    def command(self, end: str) -> tuple[str, ...] | None:
        """What starts it as "client" or "server", with placeholders (docs/programs.md); None where nothing does."""
        return ("{python}", "-m", self.module) if getattr(self, end) else None

    def missing(self) -> Missing | None:
        """What it needs and this machine lacks, if so."""
        for need in self.needs:
            module, _, function = need.partition(":")
            try:
                getattr(import_module(module), function)()
            except CrosswindError as error:
                return Missing(error.message, error.hint)
        return None


_OF_NODE = "crosswind.peers.node.install"

_PEERS = (
    KnownPeer(
        "chromium",
        "Chromium without a window",
        module="crosswind.peers.chromium",
        needs=("crosswind.peers.chromium.browser:find_chromium",),
        server=False,
    ),
    KnownPeer(
        "node",
        "Node.js with ws and the official Socket.IO",
        module="crosswind.peers.node",
        needs=(f"{_OF_NODE}:node_program", f"{_OF_NODE}:installed_packages"),
    ),
    KnownPeer(
        "deno",
        "Deno with the official Socket.IO, also over WebTransport",
        module="crosswind.peers.deno",
        needs=(f"{_OF_NODE}:deno_program", f"{_OF_NODE}:installed_packages"),
    ),
    KnownPeer(
        "iperf3",
        "iperf3, for the workload transfer over tcp",
        module="crosswind.peers.iperf3",
        needs=("crosswind.peers.iperf3:iperf3_program",),
    ),
)

PEERS: Mapping[str, KnownPeer] = {peer.name: peer for peer in _PEERS}
"""By name, as a study has it."""


def names(end: str | None = None) -> Sequence[str]:
    """What a study may call an end ("client", "server", or either), `native` first."""
    able = (peer.name for peer in _PEERS if end is None or peer.command(end) is not None)
    return (NATIVE, *able)
