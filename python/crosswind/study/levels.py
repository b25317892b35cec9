"""One key's values: one, or a list, making it a factor.

A level keeps its text as written, for reports.
"""

import shlex
from dataclasses import dataclass, field
from decimal import Decimal

from crosswind.text.units import Queue


@dataclass(frozen=True)
class Peer:
    """A program as a workload's client or server (docs/peers.md).

    Attributes: name: as shown. command: with placeholders. ready: None under the peer protocol. start_timeout_ns: None
        for the usual.
    """

    name: str
    command: tuple[str, ...]
    ready: str | None = None
    start_timeout_ns: int | None = None


@dataclass(frozen=True)
class SeriesFile:
    """A series of numbers in a text file."""

    file: str


@dataclass(frozen=True)
class NetworkFiles:
    """A network replayed from files, by key (crosswind.study.network_files)."""

    files: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """As on a command line: "trace=bus.csv"."""
        return " ".join(f"{key}={shlex.quote(file)}" for key, file in self.files)


@dataclass(frozen=True)
class OwnNetwork:
    """A network within the study itself (crosswind.study.own_networks). `table`: its definition, as JSON."""

    name: str
    table: str = field(repr=False)


Value = (
    int
    | float
    | Decimal
    | str
    | bool
    | Queue
    | Peer
    | SeriesFile
    | NetworkFiles
    | OwnNetwork
    | tuple["Value", ...]
    | None
)
"""A value's meaning: ns, bytes, bit/s and counts as whole numbers; None for an unlimited rate, and for Crosswind's own
client or server.
"""


@dataclass(frozen=True)
class Level:
    """One value: `text` as written, `value` as meant, `raw` as in TOML.

    source: the key naming its network; empty for the study's own.
    """

    text: str
    value: Value
    raw: object = field(compare=False, repr=False)
    source: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Values:
    """A key's levels; none if absent. `is_factor`: written as a list. raw: as written."""

    levels: tuple[Level, ...] = ()
    is_factor: bool = False
    raw: object = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        return bool(self.levels)


def text_of(raw: object) -> str:
    """A raw TOML value as its author would write it on a command line."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, list):
        return shlex.join(str(item) for item in raw)
    if isinstance(raw, dict):
        if "name" in raw or "command" in raw:
            return str(raw.get("name") or text_of(raw.get("command", "")))
        return " ".join(f"{key}={shlex.quote(str(item))}" for key, item in raw.items())
    return str(raw).strip()
