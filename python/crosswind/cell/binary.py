"""The program `crosswind-cell`: where it is, and what placeholders in argument lists stand for on this machine."""

import copy
import difflib
import json
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crosswind.catalog.endpoints import commands_of
from crosswind.errors import EngineError

BINARY = "crosswind-cell"
OUTPUT = "{output}"
"""What stands for the directory whose files come back with a run."""

_OF_PROGRAMS = ("{server}", "{address}", "{client}", OUTPUT)
_OF_PEERS = ("{address}", "{port}", OUTPUT)
"""Placeholders that crosswind-cell fills in itself: those of the workload `program`, and those of peers."""

_WORD_IN_BRACES = re.compile(r"(?<![$%{])\{[A-Za-z_][A-Za-z0-9_]*\}(?!\})")
"""What may be meant as a placeholder: not ${server} of a shell, %{http_code} of curl, {{server}} of a template."""

_CLOSE = 0.75
"""How alike a word is to a placeholder that is likely to be meant (difflib's ratio, braces included)."""

REINSTALL = "install Crosswind anew: `pip install --force-reinstall` its wheel, or `make install` in its sources"
"""What to do about a program that does not work or does not fit."""


def find_binary() -> Path:
    """Where `crosswind-cell` is: $CROSSWIND_CELL, else beside this Python, else on PATH.

    Raises: EngineError, with what to do, when it is nowhere or cannot be executed.
    """
    asked = os.environ.get("CROSSWIND_CELL")
    if asked:
        if os.access(asked, os.X_OK) and Path(asked).is_file():
            return Path(asked)
        raise EngineError(
            f"CROSSWIND_CELL is {asked!r}, which is not a program that can be run",
            hint=f"unset CROSSWIND_CELL, or set it to the path of {BINARY}",
        )
    for directory in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if os.access(directory / BINARY, os.X_OK):
            return directory / BINARY
    on_path = shutil.which(BINARY)
    if on_path:
        return Path(on_path)
    raise EngineError(
        f"cannot find the program {BINARY}",
        hint=f"{REINSTALL}; or set CROSSWIND_CELL to its path",
    )


def placeholders(binary: Path) -> dict[str, str]:
    """What the placeholders in the argument lists of programs and peers stand for on this machine."""
    return {"{python}": sys.executable or "python3", "{cell}": str(binary.absolute())}


def misspelt_placeholder(
    command: Iterable[str], binary: Path, *, of_peer: bool = False, has_port: bool = False
) -> tuple[str, str] | None:
    """What looks like a placeholder in an argument list and is none, and the one that is likely to be meant.

    Other words in braces stay as they are: scripts, formats and JSON are full of them.
    """
    of_program = (*_OF_PROGRAMS, "{port}") if has_port else _OF_PROGRAMS
    known = [*(_OF_PEERS if of_peer else of_program), *placeholders(binary)]
    for argument in command:
        for word in _WORD_IN_BRACES.findall(argument):
            close = difflib.get_close_matches(word, known, n=1, cutoff=_CLOSE)
            if close and word not in known:
                return word, close[0]
    return None


def used_placeholders(cells: Iterable[Mapping[str, Any]], binary: Path) -> dict[str, str]:
    """Those of `placeholders` that the programs of some cells name."""
    arguments = [argument for cell in cells for command in commands_of(cell).values() for argument in command]
    return {
        name: meaning
        for name, meaning in placeholders(binary).items()
        if any(name in argument for argument in arguments)
    }


def with_ports(cell: Mapping[str, Any], binary: Path) -> Mapping[str, Any]:
    """The cell with its programs' placeholders filled in; those for addresses are crosswind-cell's own."""
    known = placeholders(binary)
    commands = commands_of(cell)
    if not commands:
        return cell
    filled = copy.deepcopy(dict(cell))
    for place, command in commands.items():
        workload: Any = filled
        for step in place[:-1]:
            workload = workload[step]
        words = [_replaced(argument, known) for argument in command]
        end = place[-1]
        workload[end] = words if workload["kind"] == "program" else {**workload[end], "command": words}
    return filled


def _replaced(argument: str, known: Mapping[str, str]) -> str:
    # In one pass: the path that a placeholder stands for may itself contain the name of another placeholder. Other
    # braces stay, as those of JSON.
    return re.sub("|".join(map(re.escape, known)), lambda match: known[match[0]], argument)


def mode_event(line: bytes, mode: str) -> dict[str, Any]:
    """An event of a mode, as "--listen". Raises: EngineError for what is none."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise EngineError(f"crosswind-cell {mode} printed what is no event: {line[:80]!r}", hint=REINSTALL)
    return event
