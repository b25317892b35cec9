"""A cell's client and server programs, and its clock, from its JSON (docs/cell-protocol.md)."""

from collections.abc import Mapping
from typing import Any, TypeAlias

EMULATOR = "tun"
"""The `path.backend` for the emulator, with records of all packets."""

NETWORK = "network"
"""The `path.backend` for a server on another machine."""

_ENDS = ("client", "server")

Place: TypeAlias = tuple[str | int, ...]
"""Where something is in a cell: `("flows", 0, "workload", "client")`."""


def runs_programs(cell: Mapping[str, Any]) -> bool:
    """Whether a cell has the workload `program`, outside the peer protocol."""
    return bool(_workload(cell).get("kind") == "program")


def has_programs(cell: Mapping[str, Any]) -> bool:
    """Whether it runs third-party programs: as its workload, or as a flow beside it."""
    return bool(programs_of(cell))


def is_virtual(cell: Mapping[str, Any]) -> bool:
    """Whether a cell runs in virtual time."""
    return bool(cell.get("host", {}).get("clock") == "virtual")


def peers_of(cell: Mapping[str, Any]) -> dict[str, str]:
    """Third-party peers as client and server, by end."""
    return {str(place[-1]): str(peer["name"]) for place, peer in _ends_of((), cell) if not runs_programs(cell)}


def all_peers_of(cell: Mapping[str, Any]) -> dict[Place, str]:
    """The same with its flows', each as often as it runs. Keys: place, and number within the count."""
    return {
        (*place, number): str(peer["name"])
        for owner_place, owner in _owners(cell)
        if not runs_programs(owner)
        for place, peer in _ends_of(owner_place, owner)
        for number in range(owner.get("count", 1) if owner_place else 1)
    }


def commands_of(cell: Mapping[str, Any]) -> dict[Place, list[str]]:
    """Argument lists for a cell's and its flows' programs and peers. Keys: their places in it."""
    return {
        place: list(end if runs_programs(owner) else end["command"])
        for owner_place, owner in _owners(cell)
        for place, end in _ends_of(owner_place, owner)
    }


def programs_of(cell: Mapping[str, Any]) -> dict[Place, list[str]]:
    """Third-party programs only: the workload's, and those of flows beside it."""
    return {
        place: list(end)
        for owner_place, owner in _owners(cell)
        if runs_programs(owner)
        for place, end in _ends_of(owner_place, owner)
    }


def starting_ns(cell: Mapping[str, Any]) -> int:
    """How long its programs and peers may take until they are ready, where they may take longer than usual."""
    workloads = [_workload(owner) for _, owner in _owners(cell)]
    ends = [workload[end] for workload in workloads for end in _ENDS if isinstance(workload.get(end), Mapping)]
    return sum(int(each.get("start_timeout_ns") or 0) for each in (*workloads, *ends))


def is_helper(flow: Mapping[str, Any]) -> bool:
    """Whether a flow is a program that only prepares something, and says when it has."""
    workload = _workload(flow)
    return runs_programs(flow) and bool(workload.get("ready")) and not workload.get("server")


def _owners(cell: Mapping[str, Any]) -> list[tuple[Place, Mapping[str, Any]]]:
    """The cell and each flow, with their places: each may own a workload."""
    return [((), cell), *((("flows", number), flow) for number, flow in enumerate(cell.get("flows", ())))]


def _ends_of(place: Place, owner: Mapping[str, Any]) -> list[tuple[Place, Any]]:
    """A workload's third-party ends, and their places."""
    workload = _workload(owner)
    return [((*place, "workload", end), workload[end]) for end in _ENDS if workload.get(end)]


def _workload(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    return cell.get("workload") or {}
