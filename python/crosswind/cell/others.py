"""Checks a cell's third-party programs: peers, and the workload `program`."""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from crosswind.catalog.endpoints import all_peers_of, commands_of, programs_of
from crosswind.cell.binary import misspelt_placeholder
from crosswind.cell.refusal import Refusal
from crosswind.peers.registry import PEERS, Obstacle


def refusal_of_programs(binary: Path) -> Callable[[Mapping[str, Any]], Refusal | None]:
    """A check for a cell's programs, with every default filled in.

    It looks for each peer on this machine once.
    """
    missing = cache(lambda name, transport: PEERS[name].missing(transport))

    def refusal(cell: Mapping[str, Any]) -> Refusal | None:
        return _misspelt(cell, binary) or _not_found(cell) or _refused_peer(cell, missing)

    return refusal


def _misspelt(cell: Mapping[str, Any], binary: Path) -> Refusal | None:
    """Why the argument lists of a cell's programs cannot be meant, if so."""
    programs = programs_of(cell)
    for place, command in commands_of(cell).items():
        # A flow always has a port.
        has_port = place[0] == "flows" or bool(cell["workload"].get("port"))
        misspelt = misspelt_placeholder(command, binary, of_peer=place not in programs, has_port=has_port)
        if misspelt is not None:
            word, meant = misspelt
            key = ".".join(map(str, place))
            hint = f"did you mean {meant}? A program that needs {word} itself can read it from a file"
            return Refusal(key=key, problem=f"has {word}, which is not a placeholder", hint=hint)
    return None


def _not_found(cell: Mapping[str, Any]) -> Refusal | None:
    """Why a cell of the workload `program`, or with such a flow, is refused: a program is not on this machine."""
    for place, command in programs_of(cell).items():
        if (obstacle := unrunnable(command[0])) is not None:
            problem = f"cannot be started: {obstacle.problem}"
            return Refusal(key=".".join(map(str, place)), problem=problem, hint=obstacle.hint)
    return None


def unrunnable(program: str) -> Obstacle | None:
    """Why a program cannot be run on this machine, if so. One with a placeholder is not judged."""
    if "{" in program or shutil.which(program):
        return None
    if is_other_file(program):
        problem = f"cannot run {program}: it is not a program that this user may run"
        return Obstacle(problem, "`chmod +x` it, or name another one")
    return Obstacle(f"cannot find the program {program}", "is it installed, and on the PATH?")


def is_other_file(program: str) -> bool:
    """Whether a program was named by its path, and is there, but not executable."""
    return os.sep in program and Path(program).exists()


def _refused_peer(cell: Mapping[str, Any], missing: Callable[[str, str], Obstacle | None]) -> Refusal | None:
    """Why a cell's peers cannot run here, or not its workload, if so. A user's own peer is not judged."""
    for (*owner, _, end, _), name in all_peers_of(cell).items():
        if name not in PEERS:
            continue
        workload = (cell["flows"][owner[-1]] if owner else cell)["workload"]
        obstacle = missing(name, workload["transport"]) or PEERS[name].cannot(str(end), workload)
        if obstacle is not None:
            key = ".".join(map(str, (*owner, "workload", end)))
            return Refusal(key=key, problem=f"is {name}, and {obstacle.problem}", hint=obstacle.hint)
    return None
