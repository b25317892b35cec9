"""Whether the programs of a cell that are not Crosswind's own can be: peers, and those of the workload `program`."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crosswind.cell.binary import commands_of, misspelt_placeholder, runs_programs
from crosswind.cell.refusal import Refusal
from crosswind.peers.registry import PEERS, Obstacle


def refusal_of_programs(binary: Path) -> Callable[[Mapping[str, Any]], Refusal | None]:
    """What says why a cell's programs cannot be, if so, of a cell with every default filled in.

    It looks for each peer on this machine once.
    """
    missing = cache(_missing)

    def refusal(cell: Mapping[str, Any]) -> Refusal | None:
        return _misspelt(cell, binary) or _refused_peer(cell, missing)

    return refusal


def _misspelt(cell: Mapping[str, Any], binary: Path) -> Refusal | None:
    """Why the argument lists of a cell's programs cannot be meant, if so."""
    for end, command in commands_of(cell).items():
        found = misspelt_placeholder(command, binary, of_peer=not runs_programs(cell))
        if found is not None:
            word, meant = found
            hint = f"did you mean {meant}? A program that needs {word} itself can read it from a file"
            return Refusal(f"workload.{end}", f"workload.{end} has {word}, which is no placeholder", hint)
    return None


def _missing(name: str) -> Obstacle | None:
    """What a peer that comes with Crosswind lacks on this machine, if so."""
    return PEERS[name].missing() if name in PEERS else None


def _refused_peer(cell: Mapping[str, Any], missing: Callable[[str], Obstacle | None]) -> Refusal | None:
    """Why a cell's peers cannot run here, or not its workload, if so."""
    workload = cell["workload"]
    for end in () if runs_programs(cell) else commands_of(cell):
        name = workload[end]["name"]
        cannot = PEERS[name].cannot(end, workload) if name in PEERS else None
        if (found := missing(name) or cannot) is not None:
            return Refusal(f"workload.{end}", f"workload.{end} is {name}, and {found.problem}", found.hint)
    return None
