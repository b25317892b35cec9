"""The peers that come with Crosswind: their names in a study, what starts them, what they need (docs/peers.md)."""

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
    """Why a peer cannot be used, in a sentence, and what to do about it."""

    problem: str
    hint: str | None


@dataclass(frozen=True)
class KnownPeer:
    """A peer that comes with Crosswind.

    Attributes: summary: what it is. client, server: whether it can be that. module: what starts it. needs: functions,
        "module:function", which raise CrosswindError for what this machine lacks. needs_for_socketio: further ones, for
        the transports of Socket.IO. check: a function likewise that is given the end and the workload, and raises
        CrosswindError for one that it cannot run on any machine.
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
        """What starts it as "client" or "server", with placeholders (docs/programs.md); None where nothing does."""
        return python_command("-m", self.module, python="{python}") if getattr(self, end) else None

    def missing(self, transport: str) -> Obstacle | None:
        """What it needs for a transport and this machine lacks, if so: a program, a version, a package."""
        needs = self.needs + (self.needs_for_socketio if transport.startswith("socketio-") else ())
        return next(filter(None, map(_obstacle, needs)), None)

    def cannot(self, end: str, workload: Mapping[str, Any]) -> Obstacle | None:
        """Why it cannot run a workload as "client" or "server", if so. Args: workload: with every default filled in."""
        return _obstacle(self.check, end, workload)


def _obstacle(function: str, *arguments: object) -> Obstacle | None:
    """Calls a function that is named as "module:function". Returns the error that it raised, if any."""
    module, _, name = function.partition(":")
    try:
        getattr(import_module(module), name)(*arguments)
    except CrosswindError as error:
        return Obstacle(error.message, error.hint)
    return None


_OF_NODE = "crosswind.peers.node.install"

_PEERS = (
    KnownPeer(
        "chromium",
        "Chromium without a window",
        module="crosswind.peers.chromium",
        needs=("crosswind.peers.chromium.browser:check_installed",),
        needs_for_socketio=(f"{_OF_NODE}:socketio_bundle",),
        check="crosswind.peers.chromium.job:check_workload",
        server=False,
    ),
    KnownPeer(
        "node",
        "Node.js with ws and the official Socket.IO",
        module="crosswind.peers.node",
        needs=(f"{_OF_NODE}:check_node_installed", f"{_OF_NODE}:installed_packages"),
        check="crosswind.peers.node.abilities:check_node",
    ),
    KnownPeer(
        "deno",
        "Deno with the official Socket.IO, also over WebTransport",
        module="crosswind.peers.deno",
        needs=(f"{_OF_NODE}:deno_program", f"{_OF_NODE}:installed_packages"),
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
    """What a study may call an end ("client", "server", or either), `native` first."""
    able = (peer.name for peer in _PEERS if end is None or peer.command(end) is not None)
    return (NATIVE, *able)
