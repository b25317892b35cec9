"""The cells of a study: one combination of levels each, with every parameter resolved to one exact value.

A part's tables are laid over the study's; every key written as a list is a factor; the cells of a part are the product
of its factors, in the order in which `study_format.py` lists the keys. What no combination may be is refused here.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from crosswind.levels import Level, Values, did_you_mean, text_of
from crosswind.study_errors import DesignError
from crosswind.study_format import KINDS, PartTable, StudyDocument, set_keys
from crosswind.toml_text import Location
from crosswind.units import Queue, UnitError, shown

MAX_CELLS = 100_000
UDP_LIMIT_BYTES = {
    "ipv4": 65_507,  # 65 535 - 20 (IPv4 header) - 8 (UDP header)
    "ipv6": 65_527,  # RFC 8200: the payload length counts the UDP header of 8, not the IPv6 header
}
MAX_ECHO_BYTES = 2**30
WORKLOAD_KEYS: Mapping[str, frozenset[str]] = {
    "echo": frozenset({"transport", "size", "messages", "mode", "rate", "connection", "connections", "timeout"}),
    "transfer": frozenset({"transport", "size", "duration", "direction", "count", "connections", "timeout"}),
    "connect": frozenset({"transport", "count", "connections", "timeout"}),
    "program": frozenset({"client", "server"}),
}
_DIRECTION_KEYS = ("delay", "loss", "rate", "queue", "count")


class CellError(DesignError):
    """A combination that cannot be run, or cells that cannot be told by what was written."""


@dataclass(frozen=True)
class DirectionParameters:
    """One direction of the path. `rate_bps` None is unlimited, and then there is no queue."""

    delay_ns: int = 0
    loss: Decimal = Decimal(0)
    rate_bps: int | None = None
    queue: Queue | None = None
    count: str = "ip"


@dataclass(frozen=True)
class PathParameters:
    """The path of a cell. `forward` is client to server."""

    backend: str = "tun"
    family: str = "ipv4"
    mtu_bytes: int = 1500
    forward: DirectionParameters = DirectionParameters()
    reverse: DirectionParameters = DirectionParameters()

    @property
    def rtt_ns(self) -> int:
        """Round-trip propagation delay, in nanoseconds."""
        return self.forward.delay_ns + self.reverse.delay_ns


@dataclass(frozen=True)
class WorkloadParameters:
    """The workload of a cell, with the cell protocol's defaults filled in; None is what its kind does not take."""

    kind: str
    transport: str | None
    size_bytes: int | None
    messages: int | None
    mode: str | None
    rate_per_s: int | None
    connection: str | None
    duration_ns: int | None
    direction: str | None
    count: int | None
    client: tuple[str, ...] | None
    server: tuple[str, ...] | None
    connections: int
    timeout_ns: int | None


@dataclass(frozen=True)
class Budget:
    """The fidelity that a cell must reach to be valid; None leaves it to the cell's default."""

    delay_error_p99_ns: int | None = None
    starvation: Decimal | None = None
    probe_starvation: Decimal | None = None


@dataclass(frozen=True)
class Parameters:
    """Everything that a cell is run with. `host` holds only what the study sets, keyed as in the study file."""

    path: PathParameters
    host: Mapping[str, Any]
    workload: WorkloadParameters
    budget: Budget = Budget()


@dataclass(frozen=True)
class Cell:
    """One combination of levels.

    `levels` holds the factors only, dotted key to the text that was written (and `part`, when there are several);
    `settings` holds every key that the study sets, likewise; `index` counts from 0 over the whole study.
    """

    index: int
    part: str
    levels: Mapping[str, str]
    settings: Mapping[str, Level] = field(repr=False)
    parameters: Parameters = field(repr=False)


@dataclass(frozen=True)
class Part:
    """One part of a study: its settings, and where each was written."""

    name: str
    settings: Mapping[str, Values]
    locations: Mapping[str, Location]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Dotted key to the texts of its levels, for the keys written as lists."""
        return {key: tuple(level.text for level in v.levels) for key, v in self.settings.items() if v.is_factor}

    def __len__(self) -> int:
        return math.prod(len(values.levels) for values in self.settings.values())


@dataclass(frozen=True)
class Where:
    """Some of a study's cells: those in which every key named here has this value. `texts` is what was written."""

    texts: Mapping[str, str]
    _meant: Mapping[str, Any]

    def matches(self, cell: Cell) -> bool:
        """Whether a cell is one of them, however its levels are written: `5000us` is `5ms`."""
        return all(
            cell.part == value if key == "part" else key in cell.settings and cell.settings[key].value == value
            for key, value in self._meant.items()
        )


@dataclass(frozen=True)
class RepetitionLimit:
    """Some of a study's cells, and how often they are run at most."""

    where: Where
    at_most: int


def where_of(raw: Mapping[str, object], place: Location, parts: Iterable[Part]) -> Where:
    """The cells that dotted keys (or `part`) and their values tell; none of them is all cells.

    Raises: CellError for a key or part that does not exist, or a value that the key cannot have.
    """
    names = [part.name for part in parts if part.name]
    meant = {key: meaning_of(key, value, (*place, key), names) for key, value in raw.items()}
    return Where({key: text_of(value) for key, value in raw.items()}, meant)


def meaning_of(key: str, raw: object, place: Location, parts: Sequence[str]) -> Any:
    """What a value of a key means, as `Level.value` has it; of `part`, one of `parts`. Raises: CellError."""
    if key == "part":
        if raw not in parts:
            hint = did_you_mean(str(raw), parts) if parts else "this study has no parts"
            raise CellError(place, f"there is no part {shown(raw)}", hint)
        return raw
    if key not in KINDS:
        raise CellError(place, f"there is no key {shown(key)}", did_you_mean(key, KINDS))
    try:
        return KINDS[key].level(raw).value
    except UnitError as error:
        raise CellError(place, error.message, error.hint) from None


def limits_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[RepetitionLimit, ...]:
    """The cells that are run less often than the others. Raises: CellError."""
    return tuple(
        RepetitionLimit(where_of(table.where, ("repetitions", number, "where"), parts), table.at_most)
        for number, table in enumerate(document.repetitions)
    )


def parts_of(document: StudyDocument) -> tuple[Part, ...]:
    """The parts of a study, one named "" when the file has none. Raises: CellError."""
    base = _settings_of(document)
    tables: list[tuple[PartTable | None, Location]] = [(None, ())]
    if document.part:
        tables = [(table, ("part", number)) for number, table in enumerate(document.part)]
    parts: list[Part] = []
    used: set[str] = set()
    for table, place in tables:
        own = {} if table is None else _settings_of(table)
        settings = {**_without_overridden(base, own), **own}
        kind = settings.get("workload.kind")
        if kind is None:
            raise CellError(
                (*place, "workload", "kind"),
                "no workload.kind is set",
                'write kind = "echo" (or transfer, connect, program) under [workload]',
            )
        takes = WORKLOAD_KEYS[kind.levels[0].value] | {"kind"}
        fits = {key: v for key, v in settings.items() if not key.startswith("workload.") or key[9:] in takes}
        for key in own.keys() - fits.keys():
            raise _does_not_take((*place, *key.split(".")), kind.levels[0].text, key)
        used |= fits.keys()
        ordered = {key: fits[key] for key in KINDS if key in fits}
        where = {key: (*place, *key.split(".")) if key in own else tuple(key.split(".")) for key in ordered}
        name = "" if table is None else table.name
        if name in {part.name for part in parts}:
            raise CellError((*place, "name"), f'two parts are named "{name}"', "give each part a name of its own")
        parts.append(Part(name, ordered, where))
        _refuse_idle_keys(parts[-1])
    if not document.part:
        for key in base.keys() - used:
            raise _does_not_take(tuple(key.split(".")), base["workload.kind"].levels[0].text, key)
    count = sum(map(len, parts))
    if count > MAX_CELLS:
        raise CellError((), f"the study has {count:,} cells", f"at most {MAX_CELLS:,}; take fewer levels or factors")
    return tuple(parts)


def cells_of(parts: tuple[Part, ...], budget: Budget) -> Iterator[Cell]:
    """Every cell of every part, indexed from 0. Raises: CellError."""
    index = 0
    for part in parts:
        for combination in itertools.product(*(values.levels for values in part.settings.values())):
            settings = dict(zip(part.settings, combination, strict=True))
            levels = {"part": part.name} if len(parts) > 1 else {}
            levels |= {key: level.text for key, level in settings.items() if part.settings[key].is_factor}
            yield Cell(index, part.name, levels, settings, _parameters(settings, part.locations, budget))
            index += 1


def budget_of(document: StudyDocument) -> Budget:
    """The fidelity that a study asks of its cells."""
    table = document.budget
    asked = (table.delay_error_p99, table.starvation, table.probe_starvation)
    return Budget(*(values.levels[0].value if values else None for values in asked))


def _settings_of(tables: StudyDocument | PartTable) -> dict[str, Values]:
    return set_keys(tables.path, "path.") | set_keys(tables.host, "host.") | set_keys(tables.workload, "workload.")


def _without_overridden(base: Mapping[str, Values], own: Mapping[str, Values]) -> dict[str, Values]:
    """The base without what `own` replaces: `path.loss` means both directions, whatever the base said of each."""
    replaced = {
        f"path.{way}.{key}" for way in ("forward", "reverse") for key in _DIRECTION_KEYS if f"path.{key}" in own
    }
    return {key: values for key, values in base.items() if key not in replaced}


def _does_not_take(location: Location, kind: str, key: str) -> CellError:
    takes = ", ".join(sorted(WORKLOAD_KEYS[kind]))
    return CellError(location, f"workload {kind} does not take {key[9:]}", f"{kind} takes {takes}")


def _refuse_idle_keys(part: Part) -> None:
    def any_level(key: str, value: object) -> bool:
        return any(level.value == value for level in part.settings.get(key, Values()).levels)

    if "workload.rate" in part.settings and not any_level("workload.mode", "open"):
        raise CellError(
            part.locations["workload.rate"], "workload.rate has no effect in a closed loop", 'add mode = "open"'
        )
    ways = {way for way in ("forward", "reverse") if {f"path.{way}.rate", "path.rate"} & part.settings.keys()}
    for key, needs in (("path.forward.queue", "forward"), ("path.reverse.queue", "reverse"), ("path.queue", "")):
        if key in part.settings and (needs not in ways if needs else not ways):
            raise CellError(part.locations[key], f"{key} has no effect: the link has no rate", 'add rate = "100mbit"')
    for key in _DIRECTION_KEYS:
        both = f"path.forward.{key}" in part.settings and f"path.reverse.{key}" in part.settings
        if both and f"path.{key}" in part.settings:
            raise CellError(
                part.locations[f"path.{key}"],
                f"path.{key} has no effect: forward and reverse both set their own",
                f"remove path.{key} or one of the two",
            )


def _parameters(settings: Mapping[str, Level], where: Mapping[str, Location], budget: Budget) -> Parameters:
    path = _path(settings, where)
    host = {key[5:]: level.value for key, level in settings.items() if key.startswith("host.")}
    return Parameters(path, host, _workload(settings, where, path), budget)


def _path(settings: Mapping[str, Level], where: Mapping[str, Location]) -> PathParameters:
    def get(key: str, default: Any) -> Any:
        return settings[f"path.{key}"].value if f"path.{key}" in settings else default

    def direction(way: str) -> DirectionParameters:
        def of(key: str, default: Any) -> Any:
            return get(f"{way}.{key}", get(key, default))

        rate_bps = of("rate", None)
        queue = of("queue", None) if rate_bps is not None else None
        return DirectionParameters(of("delay", 0), of("loss", Decimal(0)), rate_bps, queue, of("count", "ip"))

    path = PathParameters(
        get("backend", "tun"), get("family", "ipv4"), get("mtu", 1500), direction("forward"), direction("reverse")
    )
    if path.family == "ipv6" and path.mtu_bytes < 1280:
        raise CellError(
            where["path.mtu"], f"an MTU of {path.mtu_bytes} is too little for IPv6", "1280 or more (RFC 8200)"
        )
    if path.backend == "direct":
        for key, level in settings.items():
            name = key.rsplit(".", 1)[-1]
            if key.startswith("path.") and name in _DIRECTION_KEYS and level.value not in (0, None):
                raise CellError(
                    where[key],
                    f'the direct backend has no emulator, so {key} cannot be "{level.text}"',
                    f'remove {name}, or use backend = "tun"',
                )
    return path


def _workload(settings: Mapping[str, Level], where: Mapping[str, Location], path: PathParameters) -> WorkloadParameters:
    def get(key: str, default: Any = None) -> Any:
        level = settings.get(f"workload.{key}")
        return default if level is None else level.value

    kind = get("kind")
    here = where["workload.kind"]
    echo, transfer, program = kind == "echo", kind == "transfer", kind == "program"
    transport = None if program else get("transport", "tcp")
    mode = get("mode", "closed") if echo else None
    size_bytes = get("size", 1 if echo else None)
    if kind in {"transfer", "connect"} and transport == "udp":
        raise CellError(where["workload.transport"], f"workload {kind} needs tcp, not udp", 'write transport = "tcp"')
    if transport == "udp" and size_bytes is not None and size_bytes > UDP_LIMIT_BYTES[path.family]:
        limit = UDP_LIMIT_BYTES[path.family]
        raise CellError(
            where["workload.size"],
            f"{size_bytes} bytes do not fit into a UDP datagram",
            f"at most {limit} over {path.family}, or use tcp",
        )
    if transfer and (size_bytes is None) == (get("duration") is None):
        wrong = "neither size nor duration is set" if size_bytes is None else "both size and duration are set"
        raise CellError(here, f"workload transfer: {wrong}", 'set one of them, as size = "1MB" or duration = "10s"')
    if echo and size_bytes > MAX_ECHO_BYTES:
        raise CellError(where["workload.size"], f"an echo of {size_bytes} bytes is too large", "at most 1GiB")
    if mode == "open" and get("connection") == "new":
        raise CellError(where["workload.connection"], "an open loop keeps its connections", 'use mode = "closed"')
    if mode == "open" and get("rate") is None:
        raise CellError(where["workload.mode"], "an open loop needs workload.rate", "messages a second, as rate = 100")
    if program and get("client") is None:
        raise CellError(here, "workload program: no client is set", 'client = ["ping", "-c", "3", "{server}"]')
    return WorkloadParameters(
        kind=kind,
        transport=transport,
        size_bytes=size_bytes,
        messages=get("messages", 100) if echo else None,
        mode=mode,
        rate_per_s=get("rate") if mode == "open" else None,
        connection=get("connection", "kept") if echo else None,
        duration_ns=get("duration"),
        direction=get("direction", "upload") if transfer else None,
        count=None if echo or program else get("count", 1 if transfer else 100),
        client=get("client"),
        server=get("server"),
        connections=get("connections", 1),
        timeout_ns=None if program else get("timeout", _default_timeout_ns(transport, path)),
    )


def _default_timeout_ns(transport: str | None, path: PathParameters) -> int | None:
    """docs/cell-protocol.md: 1 s + 4 round trips for udp, 60 s for tcp."""
    return {"udp": 10**9 + 4 * path.rtt_ns, "tcp": 60 * 10**9}.get(transport or "")
