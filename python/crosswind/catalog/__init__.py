"""A cell's vocabulary: transports, workloads, path elements, host settings, and each key's unit, range and help.

`catalog.json` is the output of `crosswind-cell --describe`; `make catalog` renews it. A study's keys and their
validation, the command line's options, the JSON Schema and the tables in docs/study.md follow from it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

SCHEMA = "crosswind.catalogue/1"

Made = TypeVar("Made")


class KeyType(StrEnum):
    """A key's value type."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    STRING = "string"
    FILE = "file"
    CHOICE = "choice"
    TRANSPORT = "transport"
    QUEUE = "queue"
    ARGUMENTS = "arguments"
    SERIES = "series"
    PEER = "peer"


class CellUnit(StrEnum):
    """A value's unit, in a cell."""

    NANOSECONDS = "ns"
    BYTES = "bytes"
    BITS_PER_SECOND = "bit/s"
    PER_SECOND = "1/s"
    PROBABILITY = "probability"
    SEGMENTS = "segments"
    PACKETS = "packets"


class Carrier(StrEnum):
    """A transport's carrier."""

    TCP = "tcp"
    UDP = "udp"
    QUIC = "quic"


@dataclass(frozen=True)
class KeyCondition:
    """A key's condition: another key in the same group has one of these values; None: any value."""

    key: str
    values: tuple[str, ...] | None

    def is_met(self, value: object) -> bool:
        """Whether the key has an effect while the other one has this value."""
        return value is not None if self.values is None else value in self.values


@dataclass(frozen=True)
class Key:
    """One setting of a cell.

    Attributes:
        name: in the cell. study: in a study file and on the command line.
        default: None where there is none, or where it depends on something, which `default_help` then says.
        minimum, maximum: inclusive, None where there is none. choices: empty where any value in range will do.
        varies: whether it may be a factor of a study. only_with: where it has an effect; None for everywhere.
        on_sockets: whether it is set on sockets and connections one by one, which takes no privilege and no namespace.
    """

    name: str
    study: str
    type: KeyType
    unit: CellUnit | None
    default: object
    default_help: str | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    required: bool
    varies: bool
    help: str
    only_with: KeyCondition | None
    on_sockets: bool


class ColumnType(StrEnum):
    """A column's type."""

    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    I64 = "i64"
    TEXT = "utf8"


@dataclass(frozen=True)
class SampleColumn:
    """A column in a cell's table. nullable: whether it is null for a missing event."""

    name: str
    type: ColumnType
    unit: CellUnit | None
    nullable: bool
    help: str


class _Keys:
    """Keys by name."""

    keys: tuple[Key, ...]

    @property
    def defaults(self) -> dict[str, Any]:
        """The default of each key, by its name in a cell; None where there is none."""
        return {key.name: key.default for key in self.keys}

    @cached_property
    def by_study(self) -> Mapping[str, Key]:
        """By a study's name for each."""
        return {key.study: key for key in self.keys}


@dataclass(frozen=True)
class KeyGroup(_Keys):
    """Related keys: a path's, an element's, the hosts', a budget's."""

    name: str
    help: str
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class WorkloadKind(_Keys):
    """A kind of workload. `sample`: the meaning of one sample row; `transports`: its possible ones."""

    kind: str
    help: str
    sample: str
    transports: tuple[str, ...]
    keys: tuple[Key, ...]


@dataclass(frozen=True)
class Transport:
    """A way to carry messages.

    Attributes:
        setup_round_trips: from the first packet until a message may be sent, without resumption.
        datagram: messages can be lost, and are bounded in size. streams: one, many or per-message.
        secure: encrypted, with TLS 1.3. early_data: a resumed connection can send in its first flight.
        http: a message is a request and its response. text: a message is either text or binary.
        polling: can begin with HTTP long polling. shares_connection: many streams share one connection.
    """

    name: str
    summary: str
    carrier: Carrier
    setup_round_trips: int
    datagram: bool
    streams: str
    secure: bool
    early_data: bool
    http: bool
    text: bool
    polling: bool
    shares_connection: bool

    @property
    def connects(self) -> bool:
        """Whether there is a connection to set up."""
        return self.setup_round_trips > 0


@dataclass(frozen=True)
class SpentPart:
    """What time is spent on, and what reports say of it.

    Attributes:
        noun: in sentences. of_connections: what it did of their time, after a share of it.
        of_exchange: what it did to an exchange, with `{time}`, `{packet}` and, of timers, `{expiry}`; empty where every
            exchange has it.
    """

    name: str
    noun: str
    of_connections: str
    of_exchange: str


@dataclass(frozen=True)
class SpentGroup:
    """Parts that belong together.

    Attributes: name: of its metric, after `spent_`. title: in charts. noun: in sentences. parts: their names.
    """

    name: str
    title: str
    noun: str
    help: str
    parts: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The name of its metric."""
        return f"spent_{self.name}"


@dataclass(frozen=True)
class HostBundle:
    """A named bundle of host settings."""

    name: str
    help: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Catalog:
    """Everything that a cell can be, and the columns of the tables that it writes.

    `elements` are in the order in which a packet meets them, `changes` are the keys that say when other values hold,
    `flows` those of a flow beside the workload, beside those of its own workload.
    `spent_groups` are in the order of charts, and each of `parts` is in one of them.
    `kernel`: what Linux does where no host setting says anything, as far as models need to know it.
    """

    version: str
    path: KeyGroup
    elements: tuple[KeyGroup, ...]
    changes: KeyGroup
    host: KeyGroup
    kernel: Mapping[str, Any]
    profiles: tuple[HostBundle, ...]
    budget: KeyGroup
    transports: Mapping[str, Transport]
    workloads: Mapping[str, WorkloadKind]
    flows: KeyGroup
    samples: tuple[SampleColumn, ...]
    objects: tuple[SampleColumn, ...]
    packets: tuple[SampleColumn, ...]
    flow_intervals: tuple[SampleColumn, ...]
    spent: tuple[SampleColumn, ...]
    parts: Mapping[str, SpentPart]
    spent_groups: tuple[SpentGroup, ...]
    pieces: tuple[SampleColumn, ...]
    limits: tuple[SampleColumn, ...]
    tcp: tuple[SampleColumn, ...]
    connections: tuple[SampleColumn, ...]
    connection_parts: tuple[SampleColumn, ...]
    connection_pieces: tuple[SampleColumn, ...]
    connection_limits: tuple[SampleColumn, ...]

    @cached_property
    def direction(self) -> KeyGroup:
        """The keys for one direction of the path."""
        return KeyGroup("direction", "", tuple(key for element in self.elements for key in element.keys))


@cache
def catalog() -> Catalog:
    """The catalogue from this package's crosswind-cell."""
    return _catalog(json.loads(catalog_text()))


def catalog_text() -> str:
    """`catalog.json` as it is stored."""
    return Path(__file__).with_name("catalog.json").read_text(encoding="utf-8")


def filled_in(described: KeyGroup | WorkloadKind | None, sent: Mapping[str, Any] | None) -> dict[str, Any]:
    """A cell's section with defaults for unset keys."""
    given = {key: value for key, value in (sent or {}).items() if value is not None}
    return given if described is None else {**described.defaults, **given}


def is_datagram(name: str | None) -> bool:
    """Whether the transport never retransmits a lost message; False for an unknown one."""
    transport = catalog().transports.get(name or "")
    return transport is not None and transport.datagram


def _catalog(data: Mapping[str, Any]) -> Catalog:
    if data.get("schema") != SCHEMA:
        raise ValueError(f"catalog.json has schema {data.get('schema')!r}, not {SCHEMA!r}")
    transports = (_made(Transport, {**entry, "carrier": Carrier(entry["carrier"])}) for entry in data["transports"])
    workloads = (_made(WorkloadKind, {**entry, "keys": _keys(entry)}) for entry in data["workloads"])
    return Catalog(
        version=data["version"],
        path=_group(data["path"], "path"),
        elements=tuple(_group(entry, entry["name"]) for entry in data["elements"]),
        changes=_group(data["changes"], "changes"),
        host=_group(data["host"], "host"),
        kernel=data["host"]["kernel"],
        profiles=tuple(_made(HostBundle, entry) for entry in data["host"]["profiles"]),
        budget=_group(data["budget"], "budget"),
        transports={transport.name: transport for transport in transports},
        workloads={workload.kind: workload for workload in workloads},
        flows=_group(data["flows"], "flow"),
        samples=_columns(data["samples"]),
        objects=_columns(data["objects"]),
        packets=_columns(data["packets"]),
        flow_intervals=_columns(data["flow_intervals"]),
        spent=_columns(data["spent"]),
        parts={part["name"]: _made(SpentPart, part) for group in data["parts"] for part in group["parts"]},
        spent_groups=tuple(
            _made(SpentGroup, {**group, "parts": [part["name"] for part in group["parts"]]}) for group in data["parts"]
        ),
        pieces=_columns(data["pieces"]),
        limits=_columns(data["limits"]),
        tcp=_columns(data["tcp"]),
        connections=_columns(data["connections"]),
        connection_parts=_columns(data["connection_parts"]),
        connection_pieces=_columns(data["connection_pieces"]),
        connection_limits=_columns(data["connection_limits"]),
    )


def _group(data: Mapping[str, Any], name: str) -> KeyGroup:
    return KeyGroup(name, data["help"], _keys(data))


def _keys(data: Mapping[str, Any]) -> tuple[Key, ...]:
    return tuple(_key(entry) for entry in data["keys"])


def _columns(entries: Sequence[Mapping[str, Any]]) -> tuple[SampleColumn, ...]:
    return tuple(
        _made(SampleColumn, {**entry, "type": ColumnType(entry["type"]), "unit": _unit(entry)}) for entry in entries
    )


def _unit(entry: Mapping[str, Any]) -> CellUnit | None:
    return CellUnit(entry["unit"]) if "unit" in entry else None


def _key(entry: Mapping[str, Any]) -> Key:
    condition = entry.get("only_with")
    typed = {
        "type": KeyType(entry["type"]),
        "unit": _unit(entry),
        "choices": entry.get("choices", ()),
        "only_with": None if condition is None else _condition(condition),
        "on_sockets": entry.get("on_sockets", False),
    }
    return _made(Key, {**entry, **typed})


def _condition(entry: Mapping[str, Any]) -> KeyCondition:
    value = entry.get("value")
    values = value if isinstance(value, list) or value is None else [value]
    return KeyCondition(entry["key"], None if values is None else tuple(values))


def _made(kind: type[Made], entry: Mapping[str, Any]) -> Made:
    """An instance of a dataclass; null where the entry lacks a field; more of its fields are for others."""
    values = {field.name: entry.get(field.name) for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
