"""What a running cell prints: its events and its result, as types (docs/cell-protocol.md).

`read_event` turns a line into an event. A field that is missing, or of another type, breaks the protocol. Fields that
this version does not know are kept, so that a result is stored as the cell wrote it.

Nothing here starts a process: analysis and report use these types for what a run has left behind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

EVENT_SCHEMA = "crosswind.event/1"
RESULT_SCHEMA = "crosswind.cell-result/1"

_SHOWN_CHARACTERS = 80


class ErrorKind(StrEnum):
    """Why a cell has no result. The first eight are printed by the cell, the others are found by whoever runs it."""

    BAD_CELL = "bad_cell"
    PRIVILEGE = "privilege"
    UNSUPPORTED = "unsupported"
    DISK = "disk"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    HOST = "host"
    INTERNAL = "internal"
    KILLED = "killed"
    PROTOCOL = "protocol"


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result, and what to do about it."""

    kind: ErrorKind
    message: str
    hint: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """The object as it is stored: an `error` event without its name."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The failure that was stored. Raises: KeyError, ValueError when it is none."""
        return cls(ErrorKind(data["kind"]), data["message"], data.get("hint"))


class ProtocolError(ValueError):
    """A line that is no event of the cell protocol; its text says what is wrong with it."""


class _Record(BaseModel):
    """An object of the protocol. Numbers and texts are taken as they are, never converted."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="allow", defer_build=True, populate_by_name=True, serialize_by_alias=True
    )


class OutcomeCount(_Record):
    """Exchanges that ended in one way other than well, and the text of the first one's error."""

    outcome: str
    count: int
    first_error: str | None

    def text(self) -> str:
        """In words: "300 x certificate (cannot connect: it has expired)"."""
        return f"{self.count} x {self.outcome}" + (f" ({self.first_error})" if self.first_error else "")


class SampleCounts(_Record):
    """Rows of the samples table. `outcomes` has every outcome but `ok`, the most frequent first.

    Stored results of earlier versions, which did not count outcomes, have none.
    """

    rows: int
    ok: int
    lost: int
    outcomes: tuple[OutcomeCount, ...]


class ProgramEnd(_Record):
    """How the client of the workload `program` ended: with an exit code, or by a signal."""

    exit_code: int | None
    signal: int | None

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0

    def text(self) -> str:
        """In words: "exit code 1"."""
        return f"exit code {self.exit_code}" if self.signal is None else f"signal {self.signal}"


class DirectionLedger(_Record):
    """Packets of one direction: in = delivered + dropped (by cause) + queued."""

    in_: int = Field(alias="in")
    delivered: int
    dropped: dict[str, int]
    queued: int
    in_bytes: int
    delivered_bytes: int


class Ledger(_Record):
    """Where every packet went. `closed`: whether it adds up."""

    forward: DirectionLedger
    reverse: DirectionLedger
    closed: bool


class Times(_Record):
    """A distribution of `n` times, in nanoseconds."""

    n: int
    p50: int
    p99: int
    max: int


class DirectionTimes(_Record):
    """A distribution of times for each direction."""

    forward: Times
    reverse: Times


class Waiting(_Record):
    """How long a thread ran and how long it waited for a processor; `fraction` is the waiting's share of the time."""

    run_ns: int
    wait_ns: int
    elapsed_ns: int
    fraction: float


class HostsWaiting(_Record):
    """The waiting of each host's thread that waited most."""

    client: Waiting
    server: Waiting


class FidelityBudget(_Record):
    """What a cell may miss by and still be valid."""

    delay_error_p99_ns: int
    starvation: float
    probe_starvation: float
    exchange_delay_ns: int
    exchange_delay_share: float


class UsedProcessors(_Record):
    """Numbers of the processors that a cell ran on."""

    emulator: tuple[int, ...]
    hosts: tuple[int, ...]


class ExchangeDelay(_Record):
    """How much longer a mean exchange was because processors were busy with something else, beside the median one."""

    hosts_ns: int
    path_ns: int
    median_ns: int


class Fidelity(_Record):
    """How close the emulation came to what was asked."""

    delay_error_ns: Times
    starvation: Waiting | None
    probe_starvation: HostsWaiting | None
    exchange_delay: ExchangeDelay | None
    kernel_drops: int
    realtime: bool
    memory_locked: bool
    cpus: UsedProcessors
    budget: FidelityBudget
    within_budget: bool


class HostReadback(_Record):
    """Settings as the kernel had them; `socket` is null where no socket of the workload's was looked at."""

    sysctl: dict[str, str]
    route: dict[str, str]
    device: dict[str, str]
    socket: dict[str, str | int | bool | None] | None


class Readback(_Record):
    """Settings of both hosts."""

    client: HostReadback
    server: HostReadback


class ProcessorTime(_Record):
    """Processor time of a cell's threads."""

    client_ns: int
    server_ns: int
    emulator_ns: int


class PacketCount(_Record):
    """Packets and their IP bytes."""

    packets: int
    bytes: int


class DirectionCounts(_Record):
    """Packets of each direction."""

    forward: PacketCount
    reverse: PacketCount


class Traffic(_Record):
    """What the hosts handed to the path before and after their kept connections were open."""

    setup: DirectionCounts
    exchanges: DirectionCounts


class HostProfile(_Record):
    """Where one host's processor time went: stacks by the part of the program that they were in."""

    samples: int
    cpu_ns: int
    parts: dict[str, int]


class Profile(_Record):
    """Where the processor time of client and server went."""

    interval_ns: int
    client: HostProfile
    server: HostProfile


class Versions(_Record):
    """What a cell was run by."""

    crosswind_cell: str
    kernel: str


class Started(_Record):
    """The cell was read."""

    event: Literal["started"] = "started"
    schema_: Literal["crosswind.event/1"] = Field(default="crosswind.event/1", alias="schema")
    id: str


class Ready(_Record):
    """The path is up."""

    event: Literal["ready"] = "ready"
    setup_ns: int


class ProgressFidelity(_Record):
    """Counted from the cell's start: packets released, those of them that were late, and waits for a processor.

    `exchange_delay` is how much of its budget is used: 1 is all of it; null before the first exchange succeeded.
    """

    released: int
    late: int
    wait_ns: int
    probe_wait_ns: int
    exchange_delay: float | None


class Progress(_Record):
    """How far the cell is. `median_ns` is that of the exchanges so far; `fidelity` is null without an emulator."""

    event: Literal["progress"] = "progress"
    done: int
    total: int
    lost: int
    elapsed_ns: int
    median_ns: int | None
    fidelity: ProgressFidelity | None

    @property
    def fraction(self) -> float | None:
        """The share that is done; None before anything is, and for a cell that cannot say how much there is."""
        return min(1.0, self.done / self.total) if self.done and self.total else None


class Finished(_Record):
    """The cell ran to its end: its result."""

    event: Literal["finished"] = "finished"
    schema_: Literal["crosswind.cell-result/1"] = Field(default="crosswind.cell-result/1", alias="schema")
    id: str
    valid: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    samples: SampleCounts
    program: ProgramEnd | None
    ledger: Ledger
    fidelity: Fidelity | None
    queueing_ns: DirectionTimes | None
    cpu: ProcessorTime | None
    versions: Versions
    readback: Readback
    traffic: Traffic | None
    profile: Profile | None
    elapsed_ns: int
    virtual_time: bool
    processors_awake: bool
    peak_memory_bytes: int | None

    @property
    def kept_budget(self) -> bool | None:
        """Whether the emulation kept its fidelity budget; None without an emulator."""
        return self.fidelity.within_budget if self.fidelity else None

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """The result in a run directory, which an earlier version may have written: what it did not write is null.

        Raises: pydantic.ValidationError when something is missing that every version has written.
        """
        samples = {"outcomes": [], **data.get("samples", {})}
        fidelity = data.get("fidelity")
        if fidelity:
            budget = {**_NO_EXCHANGE_DELAY, **fidelity["budget"]}
            fidelity = {"exchange_delay": None, **fidelity, "budget": budget}
        given = {**_NOT_ALWAYS_WRITTEN, **data, "samples": samples, "fidelity": fidelity}
        return cls.model_validate(given, strict=False)

    def as_json(self) -> dict[str, Any]:
        """The event as the cell printed it, with what this version does not know of."""
        return self.model_dump(mode="json", by_alias=True)

    def with_warning(self, text: str) -> Self:
        """The same result with one more warning."""
        return self.model_copy(update={"warnings": (*self.warnings, text)})


_NO_EXCHANGE_DELAY = {"exchange_delay_ns": 10**18, "exchange_delay_share": 1.0}
"""What stands for the budget of versions that did not measure it: no bound."""

_NOT_ALWAYS_WRITTEN = {
    **dict.fromkeys(("program", "traffic", "profile", "queueing_ns", "peak_memory_bytes")),
    "virtual_time": False,
}


class Error(_Record):
    """The cell did not run to its end."""

    event: Literal["error"] = "error"
    kind: Annotated[ErrorKind, Field(strict=False)]
    message: str
    hint: str | None

    @property
    def failure(self) -> Failure:
        """What it says."""
        return Failure(self.kind, self.message, self.hint)


Event = Annotated[Started | Ready | Progress | Finished | Error, Field(discriminator="event")]
"""What a line of a cell's standard output may be."""

_EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))


def read_event(line: bytes) -> Event | None:
    """The event that a line tells; None for one of a kind that this version does not know.

    Raises: ProtocolError when it is no event, or one that lacks something.
    """
    try:
        return _EVENTS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "union_tag_invalid" and isinstance(first["input"]["event"], str):
            return None
        raise ProtocolError(_explained(first, line)) from None


def _explained(error: ErrorDetails, line: bytes) -> str:
    """What is wrong with a line, in words."""
    shown = line[:_SHOWN_CHARACTERS].decode(errors="replace")
    event, *keys = (str(part) for part in error["loc"]) if error["loc"] else ("",)
    match error["type"]:
        case "json_invalid":
            return f"not JSON: {shown!r}"
        case "literal_error" if keys == ["schema"]:
            return f"an event {event!r} of schema {error['input']!r}, not {error['ctx']['expected']}"
        case "missing" if keys:
            return f"its event {event!r} lacks {'.'.join(keys)}"
        case _ if keys:
            return f"its event {event!r} has {'.'.join(keys)} = {error['input']!r}: {error['msg']}"
        case _:
            return f"not an event: {shown}"
