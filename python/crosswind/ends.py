"""Which programs are the client and the server of a cell, and on which clock, by its JSON (docs/cell-protocol.md)."""

from collections.abc import Mapping
from typing import Any

EMULATOR = "tun"
"""The `path.backend` of cells whose packets pass through the emulator, which keeps records of them."""

NETWORK = "network"
"""The `path.backend` of cells whose server is on another machine."""

_ENDS = ("client", "server")


def runs_programs(cell: Mapping[str, Any]) -> bool:
    """Whether a cell has the workload `program`, whose client and server do not follow the peer protocol."""
    return bool(_workload(cell).get("kind") == "program")


def is_virtual(cell: Mapping[str, Any]) -> bool:
    """Whether a cell runs in virtual time."""
    return bool(cell.get("host", {}).get("clock") == "virtual")


def peers_of(cell: Mapping[str, Any]) -> dict[str, str]:
    """The names of the peers in the place of its client and its server, by end; of Crosswind's own, none."""
    if runs_programs(cell):
        return {}
    workload = _workload(cell)
    return {end: str(workload[end]["name"]) for end in _ENDS if workload.get(end)}


def commands_of(cell: Mapping[str, Any]) -> dict[str, list[str]]:
    """The argument lists of its programs or its peers, by end."""
    workload = _workload(cell)
    given = {end: workload[end] for end in _ENDS if workload.get(end)}
    return {end: list(value if runs_programs(cell) else value["command"]) for end, value in given.items()}


def _workload(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    return cell.get("workload") or {}
