"""A network replayed from files, instead of a name: `network = { trace = "bus.csv" }`.

A file's first line shows its format: mahimahi's deliveries have one whole number a line, CellReplay's light deliveries
several. Anything else is a table over time, read and refused by crosswind-cell.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from crosswind.errors import did_you_mean
from crosswind.files.regular_files import open_regular
from crosswind.study.levels import NetworkFiles
from crosswind.study.networks import Network, Source
from crosswind.text.units import UnitError, shown

TRACES = Path(__file__).parents[1] / "traces"
"""Bundled traces, by file name."""

_DIRECTIONS: Mapping[str, tuple[str, ...]] = {"trace": ("forward", "reverse"), "up": ("forward",), "down": ("reverse",)}
"""A file's directions, by key; `_light` marks CellReplay's base delay and light deliveries."""
_KEYS = tuple(f"{key}{kind}" for key in _DIRECTIONS for kind in ("", "_light"))
FILES_SCHEMA: tuple[dict[str, Any], ...] = (
    {"type": "string", "pattern": "="},
    {
        "type": "object",
        "properties": {key: {"type": "string", "minLength": 1} for key in _KEYS},
        "additionalProperties": False,
        "minProperties": 1,
    },
)
"""The JSON Schemas for both forms: a text and a table."""
_EXAMPLE = 'network = { trace = "bus.csv" }, or { up = "a.up", down = "a.down" }'
_WHOLE = re.compile(r"[0-9]+")
_LONGEST_LINE = 100_000


def assignments(text: str) -> dict[str, str]:
    """The keys of a text as "up=a.up down=a.down". Raises: UnitError."""
    try:
        words = [word.partition("=") for word in shlex.split(text)]
    except ValueError as error:
        raise UnitError(f"{shown(text)} cannot be split: {error}", hint="quote it as for a shell") from None
    if any(not equals for _, equals, _ in words) or len({key for key, _, _ in words}) < len(words):
        raise UnitError(f"{shown(text)} is not trace=FILE", hint="as in trace=bus.csv, or up=a.up down=a.down")
    return {key: file for key, _, file in words}


def network_files(table: Mapping[Any, object]) -> NetworkFiles:
    """The value of `{ trace = "bus.csv" }`. Raises: UnitError."""
    for key, file in table.items():
        if key not in _KEYS:
            raise UnitError(f"{shown(key)} is no key of a network", hint=f"{did_you_mean(str(key), _KEYS)}: {_EXAMPLE}")
        if not isinstance(file, str) or not file.strip():
            raise UnitError(f"{shown(file)} is not the path of a file", hint=_EXAMPLE)
    if not table:
        raise UnitError("the network names no file", hint=_EXAMPLE)
    for kind in ("", "_light"):
        if f"trace{kind}" in table and (f"up{kind}" in table or f"down{kind}" in table):
            raise UnitError(
                f"trace{kind} is of both directions, and up{kind} or down{kind} of one", hint="give only one"
            )
    return NetworkFiles(tuple((str(key), str(file).strip()) for key, file in table.items()))


def network_of_files(files: NetworkFiles) -> Network:
    """The network replaying some files."""
    return _network(files, tuple(_Place.of(file) for _, file in files.files))


@dataclass(frozen=True)
class _Place:
    """A file's path and version. `changed_ns`: modification time; None if unreadable."""

    path: Path
    changed_ns: int | None

    @classmethod
    def of(cls, file: str) -> "_Place":
        path = place_of(file)
        try:
            return cls(path, path.stat().st_mtime_ns)
        except OSError:
            return cls(path, None)


# A study asks for it once a key and cell.
@lru_cache(maxsize=256)
def _network(files: NetworkFiles, places: tuple[_Place, ...]) -> Network:
    path: dict[str, Any] = {}
    for (key, file), place in zip(files.files, places, strict=True):
        kind, is_light, _ = key.partition("_light")
        if not is_light and _is_deliveries(_beginning(place.path)):
            for direction in _DIRECTIONS[kind]:
                path.setdefault(direction, {})["delivery_trace"] = f"@{place.path}"
        else:
            of = "both" if kind == "trace" else _DIRECTIONS[kind][0]
            path.setdefault("at", []).append({"name": key.replace("_", "-"), "trace": file, "of": of})
    return Network(files.text, "a recorded network", path, (Source("trace", files.text),))


def _is_deliveries(beginning: str) -> bool:
    """Whether a file is a list of deliveries: its first line is one whole number."""
    words = next(filter(None, (line.split() for line in beginning.splitlines())), [])
    return len(words) == 1 and _WHOLE.fullmatch(words[0]) is not None


def place_of(file: str) -> Path:
    """A trace's path: a file, or a bundled one."""
    path, builtin = Path(file), TRACES / f"{file}.csv"
    return builtin if "/" not in file and builtin.exists() and not path.exists() else path.absolute()


def _beginning(path: Path) -> str:
    """A file's first lines; empty if unreadable: crosswind-cell reports it."""
    try:
        with open_regular(path) as opened:
            return opened.read(_LONGEST_LINE).decode(errors="replace")
    except OSError:
        return ""
