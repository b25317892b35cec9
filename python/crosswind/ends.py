"""Which programs are the client and the server of a cell, and on which clock, by its JSON (docs/cell-protocol.md)."""

from collections.abc import Mapping
from typing import Any, TypeAlias

EMULATOR = "tun"
"""The `path.backend` of cells whose packets pass through the emulator, which keeps records of them."""

NETWORK = "network"
"""The `path.backend` of cells whose server is on another machine."""

_ENDS = ("client", "server")

Place: TypeAlias = tuple[str | int, ...]
"""Where something is in a cell: `("flows", 0, "workload", "client")`."""


def runs_programs(cell: Mapping[str, Any]) -> bool:
    """Whether a cell has the workload `program`, whose client and server do not follow the peer protocol."""
    return bool(_workload(cell).get("kind") == "program")


def has_programs(cell: Mapping[str, Any]) -> bool:
    """Whether a cell runs programs that no peer is: as its workload, or as a flow beside it."""
    return bool(programs_of(cell))


def is_virtual(cell: Mapping[str, Any]) -> bool:
    """Whether a cell runs in virtual time."""
    return bool(cell.get("host", {}).get("clock") == "virtual")


def peers_of(cell: Mapping[str, Any]) -> dict[str, str]:
    """The names of the peers in the place of its client and its server, by end; of Crosswind's own, none."""
    if runs_programs(cell):
        return {}
    workload = _workload(cell)
    return {end: str(workload[end]["name"]) for end in _ENDS if workload.get(end)}


def commands_of(cell: Mapping[str, Any]) -> dict[Place, list[str]]:
    """The argument lists of the programs and the peers of a cell. Keys: where each stands in it."""
    peers: dict[Place, list[str]] = {("workload", end): list(_workload(cell)[end]["command"]) for end in peers_of(cell)}
    return {**peers, **programs_of(cell)}


def programs_of(cell: Mapping[str, Any]) -> dict[Place, list[str]]:
    """Those of programs that are no peers: the workload's, and those of flows beside it."""
    owners: list[tuple[Place, Mapping[str, Any]]] = [((), cell)]
    owners += [(("flows", number), flow) for number, flow in enumerate(cell.get("flows", ()))]
    return {
        (*place, "workload", end): list(_workload(owner)[end])
        for place, owner in owners
        if runs_programs(owner)
        for end in _ENDS
        if _workload(owner).get(end)
    }


def _workload(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    return cell.get("workload") or {}
