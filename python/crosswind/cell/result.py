"""A cell's result, as types (docs/cell-protocol.md).

Unknown fields are kept, so a result is stored as the cell wrote it. Nothing here starts a process: analysis and report
use these types for stored runs.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.fidelity import Fidelity, Times
from crosswind.cell.protocol_object import Directions, Ends, ProtocolObject


class FailureCount(ProtocolObject):
    """Unsuccessful exchanges with one outcome, and the first one's error."""

    # A run's result has it too, and its schema allows no further fields.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    outcome: str
    count: int
    first_error: str | None

    def text(self) -> str:
        """In words: "300 x certificate (cannot connect: it has expired)"."""
        return f"{self.count} x {self.outcome}" + (f" ({self.first_error})" if self.first_error else "")


def added_up(counts: Iterable[FailureCount]) -> list[FailureCount]:
    """Counts over several repetitions by outcome, the most frequent first, equal ones by name.

    Each has its first known error.
    """
    totals: dict[str, FailureCount] = {}
    for count in counts:
        before = totals.get(count.outcome, FailureCount(outcome=count.outcome, count=0, first_error=None))
        first_error = before.first_error or count.first_error
        totals[count.outcome] = FailureCount(
            outcome=count.outcome, count=before.count + count.count, first_error=first_error
        )
    return sorted(totals.values(), key=lambda failures: (-failures.count, failures.outcome))


class SampleCounts(ProtocolObject):
    """Rows of the samples table. `outcomes` has every outcome but `ok`, the most frequent first."""

    rows: int
    ok: int
    lost: int
    outcomes: tuple[FailureCount, ...]

    @property
    def succeeded(self) -> bool:
        """Whether one succeeded; without any, nothing failed."""
        return not self.rows or self.ok > 0


class FlowReport(ProtocolObject):
    """A flow beside the workload: `flow` is its number in the tables, `port` its server's.

    `began_ns` is null if the workload had ended before. `unfinished`: exchanges interrupted by its end.
    """

    flow: int
    name: str
    port: int
    began_ns: int | None
    ended_ns: int
    samples: SampleCounts
    unfinished: int
    client_socket: dict[str, str | int | bool | None] | None
    server_socket: dict[str, str | int | bool | None] | None


class ProgramEnd(ProtocolObject):
    """How the client of the workload `program` ended: with an exit status, or by a signal."""

    exit_code: int | None
    signal: int | None

    @property
    def ok(self) -> bool:
        """Whether it ended with exit status 0."""
        return self.exit_code == 0

    def text(self) -> str:
        """In words: "exit status 1"."""
        return f"exit status {self.exit_code}" if self.signal is None else f"signal {self.signal}"


class HopLedger(ProtocolObject):
    """One hop's counts for one direction."""

    dropped: dict[str, int]
    marked: int
    background_carried: int = 0
    background_dropped: int = 0


class BackgroundLedger(ProtocolObject):
    """Background traffic's packets, unknown to hosts: in = carried + dropped (by cause) + queued."""

    in_: int = Field(alias="in")
    carried: int
    carried_bytes: int
    dropped: dict[str, int]
    marked: int
    queued: int


class Reordering(ProtocolObject):
    """Packets that arrived after one that had entered later (RFC 4737): how many, and the largest distances."""

    packets: int
    extent: int
    late_time_offset_ns: int


class DirectionLedger(ProtocolObject):
    """Packets in one direction: in + duplicated = delivered + dropped (by cause) + queued.

    `corrupted`: delivered with a flipped bit. `marked`: with the path's mark (ECN). `icmp`: messages about oversized
    packets. `hops`: for several, the client's first. `reordering`: None without any. `background` is in no other count;
    None without any.
    """

    in_: int = Field(alias="in")
    duplicated: int
    delivered: int
    dropped: dict[str, int]
    marked: int
    hops: tuple[HopLedger, ...]
    queued: int
    in_bytes: int
    delivered_bytes: int
    corrupted: int
    icmp: int
    reordering: Reordering | None = None
    background: BackgroundLedger | None = None


class Ledger(Directions[DirectionLedger]):
    """Where every packet went. `closed`: whether it adds up."""

    closed: bool

    @property
    def sent(self) -> dict[str, int]:
        """The hosts' packets, by direction."""
        return {"forward": self.forward.in_, "reverse": self.reverse.in_}


class HostReadback(ProtocolObject):
    """Settings as the kernel had them; `socket` is null where no socket of the workload's was looked at."""

    sysctl: dict[str, str]
    route: dict[str, str]
    device: dict[str, str]
    socket: dict[str, str | int | bool | None] | None


class ProcessorTime(ProtocolObject):
    """Processor time of a cell's threads."""

    client_ns: int
    server_ns: int
    emulator_ns: int


class PacketCount(ProtocolObject):
    """Packets and their IP bytes."""

    packets: int
    bytes: int


class SetupTraffic(ProtocolObject):
    """Packets from the hosts before and after their kept connections were open."""

    setup: Directions[PacketCount]
    exchanges: Directions[PacketCount]


class HostCpuProfile(ProtocolObject):
    """One host's processor time: stacks by program part."""

    # A run's result has it too, and its schema allows no further fields.
    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    samples: int
    cpu_ns: int
    parts: dict[str, int]


class CpuProfile(ProtocolObject):
    """Where the processor time of client and server went."""

    interval_ns: int
    client: HostCpuProfile
    server: HostCpuProfile


class Versions(ProtocolObject):
    """Versions behind a cell."""

    crosswind_cell: str
    kernel: str


class PeerClock(ProtocolObject):
    """The clock of a client's times."""

    name: str
    resolution_ns: int


class PeerEnd(ProtocolObject):
    """One end: `native`, or a peer. `processor_wait_ns` is null if unmeasured.

    `implementation` is the program with its version, in its own words; `facts` are its other counts.
    """

    name: str
    implementation: str | None
    clock: PeerClock | None
    processor_wait_ns: int | None
    facts: dict[str, float]


class Peers(Ends[PeerEnd]):
    """Both ends. `verified_transport`: the client's finding about every connection; null if unknown."""

    verified_transport: str | None


class NetworkClocks(ProtocolObject):
    """The server's clock beside the client's: server = client + offset before the cell, as far as the uncertainty.

    `drift_ns`: by how much the offset grew until after it. `one_way`: whether it is known well enough for delays of one
    direction.
    """

    offset_ns: int
    uncertainty_ns: int
    drift_ns: int
    method: str
    one_way: bool


class TcpOfEnd(ProtocolObject):
    """One end's kernel counters for a cell's TCP connections.

    `segments_sent` have data; `retransmitted` include handshakes. Something was in flight or to be sent for `busy_ns`;
    in it, the receiver's window and a full send buffer held it back for the other two times.
    """

    connections: int
    segments_sent: int
    retransmitted: int
    shortest_round_trip_ns: int | None
    busy_ns: int
    receive_window_limited_ns: int
    send_buffer_limited_ns: int


class RealNetwork(ProtocolObject):
    """A real network: the server, and both ends' knowledge about it.

    `server` is its control connection's address, `client` the client's on it, `round_trip_ns` the shortest round trip
    there, `data_port` the server's port for measurements. `tcp` is null for a cell without TCP connections.
    """

    server: str
    client: str
    data_port: int
    crosswind_cell: str
    kernel: str
    round_trip_ns: int
    clocks: NetworkClocks
    tcp: Ends[TcpOfEnd] | None


class QdiscCounters(ProtocolObject):
    """A queueing discipline's counters, with inner ones."""

    sent: int
    sent_bytes: int
    dropped: int
    overlimits: int
    queued: int
    queued_bytes: int


class Qdisc(ProtocolObject):
    """A kernel queueing discipline. Its settings, by kind, are fields too."""

    stage: int
    kind: str
    counters: QdiscCounters
    marked: int


class QdiscChange(ProtocolObject):
    """A change of settings: when it was due, from the first packet on, and how much later the kernel had it."""

    due_ns: int
    late_ns: int


class NetemPath(Directions[tuple[Qdisc, ...]]):
    """Each direction's queueing disciplines, in packets' order, and their changes."""

    changes: tuple[QdiscChange, ...]


class Finished(ProtocolObject):
    """The cell's result.

    `ledger`, `fidelity` and `traffic` are null over a real network, `network` everywhere else, and `netem` without
    queueing disciplines as the path.
    """

    event: Literal["finished"] = "finished"
    schema_: Literal["crosswind.cell-result/1"] = Field(default="crosswind.cell-result/1", alias="schema")
    id: str
    valid: bool
    reasons: tuple[str, ...]
    warnings: tuple[ResultWarning, ...]
    samples: SampleCounts
    flows: tuple[FlowReport, ...]
    tcp_retransmits: Ends[int] | None
    program: ProgramEnd | None
    peers: Peers | None
    ledger: Ledger | None
    fidelity: Fidelity | None
    queueing_ns: Directions[Times] | None
    cpu: ProcessorTime | None
    versions: Versions
    readback: Ends[HostReadback]
    traffic: SetupTraffic | None
    network: RealNetwork | None
    netem: NetemPath | None
    profile: CpuProfile | None
    elapsed_ns: int
    virtual_time: bool
    processors_awake: bool
    peak_memory_bytes: int | None

    @property
    def is_repeatable(self) -> bool:
        """Whether the cell alone decided what happened: in virtual time, and without an interrupted thread."""
        interrupted = any(warning.name == WarningKind.INTERRUPTED.value[0] for warning in self.warnings)
        return self.virtual_time and not interrupted

    @property
    def kept_budget(self) -> bool | None:
        """Whether the emulation kept its fidelity budget; None without an emulator."""
        return self.fidelity.within_budget if self.fidelity else None

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """The result in a run directory. Raises: pydantic.ValidationError when it is none."""
        return cls.model_validate(data, strict=False)

    def as_json(self) -> dict[str, Any]:
        """The event as printed, with unknown fields."""
        return self.model_dump(mode="json", by_alias=True)
