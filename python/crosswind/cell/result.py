"""What a cell reports at its end: its result and the parts of it, as types (docs/cell-protocol.md).

Fields that this version does not know are kept, so that a result is stored as the cell wrote it. Nothing here starts a
process: analysis and report use these types for what a run has left behind.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import Field

from crosswind.catalog.warning import ResultWarning
from crosswind.cell.fidelity import DirectionTimes, Fidelity
from crosswind.cell.protocol_object import ProtocolObject


class OutcomeCount(ProtocolObject):
    """Exchanges that ended in one way other than well, and the text of the first one's error."""

    outcome: str
    count: int
    first_error: str | None

    def text(self) -> str:
        """In words: "300 x certificate (cannot connect: it has expired)"."""
        return f"{self.count} x {self.outcome}" + (f" ({self.first_error})" if self.first_error else "")


def added_up(counts: Iterable[OutcomeCount]) -> list[OutcomeCount]:
    """Counts of several repetitions, one for each outcome, the most frequent first and those alike by name.

    The error of each is the first one that is known.
    """
    totals: dict[str, OutcomeCount] = {}
    for count in counts:
        before = totals.get(count.outcome, OutcomeCount(outcome=count.outcome, count=0, first_error=None))
        first_error = before.first_error or count.first_error
        totals[count.outcome] = OutcomeCount(
            outcome=count.outcome, count=before.count + count.count, first_error=first_error
        )
    return sorted(totals.values(), key=lambda failures: (-failures.count, failures.outcome))


class SampleCounts(ProtocolObject):
    """Rows of the samples table. `outcomes` has every outcome but `ok`, the most frequent first."""

    rows: int
    ok: int
    lost: int
    outcomes: tuple[OutcomeCount, ...]

    @property
    def succeeded(self) -> bool:
        """Whether one of them did what it should. Where there is none, nothing failed."""
        return not self.rows or self.ok > 0


class FlowReport(ProtocolObject):
    """A flow beside the workload: `flow` is its number in the tables, `port` what its server listened on.

    `began_ns` is null where the workload had ended before. `unfinished`: exchanges that its end interrupted.
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


class TcpRetransmits(ProtocolObject):
    """TCP segments that each host retransmitted, as its kernel has counted them."""

    client: int
    server: int


class HopLedger(ProtocolObject):
    """What one hop did to packets of one direction."""

    dropped: dict[str, int]
    marked: int
    background_carried: int = 0
    background_dropped: int = 0


class BackgroundLedger(ProtocolObject):
    """Packets of background traffic, which no host sent or got: in = carried + dropped (by cause) + queued."""

    in_: int = Field(alias="in")
    carried: int
    carried_bytes: int
    dropped: dict[str, int]
    marked: int
    queued: int


class DirectionLedger(ProtocolObject):
    """Packets of one direction: in + duplicated = delivered + dropped (by cause) + queued.

    `corrupted`: of those delivered, the ones with a flipped bit. `marked`: with a mark of the path (ECN).
    `icmp`: messages about packets that were too large. `hops`: of a path with several, the client's first.
    `background` is in no other count; None where there is none.
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
    background: BackgroundLedger | None = None


class Ledger(ProtocolObject):
    """Where every packet went. `closed`: whether it adds up."""

    forward: DirectionLedger
    reverse: DirectionLedger
    closed: bool


class HostReadback(ProtocolObject):
    """Settings as the kernel had them; `socket` is null where no socket of the workload's was looked at."""

    sysctl: dict[str, str]
    route: dict[str, str]
    device: dict[str, str]
    socket: dict[str, str | int | bool | None] | None


class Readback(ProtocolObject):
    """Settings of both hosts."""

    client: HostReadback
    server: HostReadback


class ProcessorTime(ProtocolObject):
    """Processor time of a cell's threads."""

    client_ns: int
    server_ns: int
    emulator_ns: int


class PacketCount(ProtocolObject):
    """Packets and their IP bytes."""

    packets: int
    bytes: int


class DirectionCounts(ProtocolObject):
    """Packets of each direction."""

    forward: PacketCount
    reverse: PacketCount


class SetupTraffic(ProtocolObject):
    """What the hosts handed to the path before and after their kept connections were open."""

    setup: DirectionCounts
    exchanges: DirectionCounts


class HostCpuProfile(ProtocolObject):
    """Where one host's processor time went: stacks by the part of the program that they were in."""

    samples: int
    cpu_ns: int
    parts: dict[str, int]


class CpuProfile(ProtocolObject):
    """Where the processor time of client and server went."""

    interval_ns: int
    client: HostCpuProfile
    server: HostCpuProfile


class Versions(ProtocolObject):
    """What a cell was run by."""

    crosswind_cell: str
    kernel: str


class PeerClock(ProtocolObject):
    """The clock of a client's times."""

    name: str
    resolution_ns: int


class PeerEnd(ProtocolObject):
    """Who one end was: `native`, or a peer. `processor_wait_ns` is null where it was not measured.

    `implementation` is the program with its version, as it calls itself; `facts` are what else it has counted.
    """

    name: str
    implementation: str | None
    clock: PeerClock | None
    processor_wait_ns: int | None
    facts: dict[str, float]


class Peers(ProtocolObject):
    """Who the ends were. `verified_transport`: what the client found every connection to be; null if it cannot tell."""

    client: PeerEnd
    server: PeerEnd
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
    """What one end's kernel has counted of the TCP connections of a cell.

    `segments_sent` are those with data; `retransmitted` are also those of handshakes. Something was in flight or to be
    sent for `busy_ns`; of that, the receiver's window and a full send buffer held it back for the other two times.
    """

    connections: int
    segments_sent: int
    retransmitted: int
    shortest_round_trip_ns: int | None
    busy_ns: int
    receive_window_limited_ns: int
    send_buffer_limited_ns: int


class TcpOfEnds(ProtocolObject):
    """The same of both ends: each counts what it has sent itself."""

    client: TcpOfEnd
    server: TcpOfEnd


class RealNetwork(ProtocolObject):
    """The network that is really there: who the server was, and what both ends know of what lies between.

    `server` is the address of its control connection, `client` the client's on it, `round_trip_ns` the shortest round
    trip there, `data_port` the server's port of what is measured. `tcp` is null for a cell without TCP connections.
    """

    server: str
    client: str
    data_port: int
    crosswind_cell: str
    kernel: str
    round_trip_ns: int
    clocks: NetworkClocks
    tcp: TcpOfEnds | None


class QdiscCounters(ProtocolObject):
    """What a queueing discipline has counted, with what those inside have."""

    sent: int
    sent_bytes: int
    dropped: int
    overlimits: int
    queued: int
    queued_bytes: int


class Qdisc(ProtocolObject):
    """A queueing discipline of the kernel. Its settings, which differ by its kind, are fields too."""

    stage: int
    kind: str
    counters: QdiscCounters
    marked: int


class QdiscChange(ProtocolObject):
    """A change of settings: when it was due, from the first packet on, and how much later the kernel had it."""

    due_ns: int
    late_ns: int


class NetemPath(ProtocolObject):
    """The queueing disciplines of each direction, in the order in which packets pass them, and when they changed."""

    forward: tuple[Qdisc, ...]
    reverse: tuple[Qdisc, ...]
    changes: tuple[QdiscChange, ...]


class Finished(ProtocolObject):
    """The cell ran to its end: its result.

    `ledger`, `fidelity` and `traffic` are null over a network that is really there, `network` everywhere else, and
    `netem` where queueing disciplines are not the path.
    """

    event: Literal["finished"] = "finished"
    schema_: Literal["crosswind.cell-result/1"] = Field(default="crosswind.cell-result/1", alias="schema")
    id: str
    valid: bool
    reasons: tuple[str, ...]
    warnings: tuple[ResultWarning, ...]
    samples: SampleCounts
    flows: tuple[FlowReport, ...]
    tcp_retransmits: TcpRetransmits | None
    program: ProgramEnd | None
    peers: Peers | None
    ledger: Ledger | None
    fidelity: Fidelity | None
    queueing_ns: DirectionTimes | None
    cpu: ProcessorTime | None
    versions: Versions
    readback: Readback
    traffic: SetupTraffic | None
    network: RealNetwork | None
    netem: NetemPath | None
    profile: CpuProfile | None
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
        """The result in a run directory. Raises: pydantic.ValidationError when it is none."""
        return cls.model_validate(data, strict=False)

    def as_json(self) -> dict[str, Any]:
        """The event as the cell printed it, with what this version does not know of."""
        return self.model_dump(mode="json", by_alias=True)
