"""The program `crosswind-cell`: its place, and values for placeholders in argument lists."""

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
"""The placeholder for the directory kept with a run."""

_OF_PROGRAMS = ("{server}", "{address}", "{client}", OUTPUT, "{cert}", "{key}", "{ca}")
_OF_PEERS = ("{address}", "{port}", OUTPUT)
"""Placeholders filled in by crosswind-cell: for the workload `program`, and for peers."""

_WORD_IN_BRACES = re.compile(r"(?<![$%{])\{[A-Za-z_][A-Za-z0-9_]*\}(?!\})")
"""A possible placeholder: not a shell's ${server}, curl's %{http_code}, a template's {{server}}."""

_CLOSE = 0.75
"""Minimum likeness to a placeholder (difflib's ratio, braces included)."""

REINSTALL = "install Crosswind anew: `pip install --force-reinstall` its wheel, or `make install` in its sources"
"""The remedy for a broken or unfit program."""


def find_binary() -> Path:
    """The path: $CROSSWIND_CELL, else beside this Python, else on PATH.

    Raises: EngineError, with a remedy, without an executable one.
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
    """This machine's values for placeholders in programs' and peers' argument lists."""
    return {"{python}": sys.executable or "python3", "{cell}": str(binary.absolute())}


def misspelt_placeholder(
    command: Iterable[str], binary: Path, *, of_peer: bool = False, has_port: bool = False
) -> tuple[str, str] | None:
    """A misspelt placeholder in an argument list, and the likely one.

    Other words in braces stay: scripts, formats and JSON are full of them.
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
    """The `placeholders` named by some cells' programs."""
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
    """A mode's event, as for "--listen". Raises: EngineError for anything else."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise EngineError(f"crosswind-cell {mode} printed what is no event: {line[:80]!r}", hint=REINSTALL)
    return event
