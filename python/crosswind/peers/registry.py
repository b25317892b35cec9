"""The bundled peers: their names in a study, their commands, their dependencies (docs/peers.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from crosswind.errors import CrosswindError
from crosswind.files.safe_path import python_command

NATIVE = "native"
"""Crosswind's own client and server."""


@dataclass(frozen=True)
class Obstacle:
    """Why a peer cannot be used, in a sentence, and the remedy."""

    problem: str
    hint: str | None


@dataclass(frozen=True)
class KnownPeer:
    """A bundled peer.

    Attributes: client, server: whether it can be one. module: its program. needs: functions, "module:function", raising
        CrosswindError for missing dependencies. needs_for_socketio: further ones, for the Socket.IO transports. check:
        such a function on the end and the workload, raising CrosswindError for one impossible on any machine.
    """

    name: str
    summary: str
    module: str
    needs: tuple[str, ...]
    check: str
    needs_for_socketio: tuple[str, ...] = ()
    client: bool = True
    server: bool = True

    def command(self, end: str) -> tuple[str, ...] | None:
        """Its command as "client" or "server", with placeholders (docs/programs.md); None if unable."""
        return python_command("-m", self.module, python="{python}") if getattr(self, end) else None

    def missing(self, transport: str) -> Obstacle | None:
        """A dependency for a transport missing on this machine, if any: a program, a version, a package."""
        needs = self.needs + (self.needs_for_socketio if transport.startswith("socketio-") else ())
        return next(filter(None, map(_obstacle, needs)), None)

    def cannot(self, end: str, workload: Mapping[str, Any]) -> Obstacle | None:
        """Why it cannot run a workload as "client" or "server", if so. Args: workload: with every default filled in."""
        return _obstacle(self.check, end, workload)


def _obstacle(function: str, *arguments: object) -> Obstacle | None:
    """Calls a function given as "module:function". Returns its error, if any."""
    module, _, name = function.partition(":")
    try:
        getattr(import_module(module), name)(*arguments)
    except CrosswindError as error:
        return Obstacle(error.message, error.hint)
    return None


_NODE_INSTALL = "crosswind.peers.node.install"

_PEERS = (
    KnownPeer(
        "chromium",
        "Chromium without a window",
        module="crosswind.peers.chromium",
        needs=("crosswind.peers.chromium.browser:check_installed",),
        needs_for_socketio=(f"{_NODE_INSTALL}:socketio_bundle",),
        check="crosswind.peers.chromium.job:check_workload",
        server=False,
    ),
    KnownPeer(
        "node",
        "Node.js with ws and the official Socket.IO",
        module="crosswind.peers.node",
        needs=(f"{_NODE_INSTALL}:check_node_installed", f"{_NODE_INSTALL}:installed_packages"),
        check="crosswind.peers.node.abilities:check_node",
    ),
    KnownPeer(
        "deno",
        "Deno with the official Socket.IO, also over WebTransport",
        module="crosswind.peers.deno",
        needs=(f"{_NODE_INSTALL}:deno_program", f"{_NODE_INSTALL}:installed_packages"),
        check="crosswind.peers.node.abilities:check_deno",
    ),
    KnownPeer(
        "iperf3",
        "iperf3, for the workload transfer over tcp",
        module="crosswind.peers.iperf3",
        needs=("crosswind.peers.iperf3:iperf3_program",),
        check="crosswind.peers.iperf3:check_workload",
    ),
)

PEERS: Mapping[str, KnownPeer] = {peer.name: peer for peer in _PEERS}
"""By name, as a study has it."""


def peer_names(end: str | None = None) -> Sequence[str]:
    """The possible names for an end in a study ("client", "server", or either), `native` first."""
    able = (peer.name for peer in _PEERS if end is None or peer.command(end) is not None)
    return (NATIVE, *able)
