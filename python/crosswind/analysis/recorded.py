"""What analysis reads of a repetition's events (docs/cell-protocol.md): one place that knows how a record holds them.

What an earlier version did not write is None, or empty.
"""

from pydantic import BaseModel, ConfigDict, Field

from crosswind.record import CellRun


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class OutcomeCount(_Event):
    """Exchanges that ended in one way other than well, and the text of the first one's error."""

    outcome: str
    count: int
    first_error: str | None = None


class SampleCounts(_Event):
    """Rows of the samples table; `outcomes` has every outcome but `ok`."""

    outcomes: tuple[OutcomeCount, ...] = ()


class ProgramEnd(_Event):
    """How a client program ended: with an exit code, or by a signal."""

    exit_code: int | None = None
    signal: int | None = None

    @property
    def ok(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0


class DirectionLedger(_Event):
    """Packets of one direction: in = delivered + dropped (by cause) + queued."""

    in_: int = Field(alias="in")
    delivered: int
    dropped: dict[str, int]
    queued: int
    in_bytes: int = 0
    delivered_bytes: int = 0


class Ledger(_Event):
    """Where every packet went. `closed`: whether it adds up."""

    forward: DirectionLedger
    reverse: DirectionLedger
    closed: bool = False


class Times(_Event):
    """A distribution of times, in nanoseconds."""

    p50: int = 0
    p99: int = 0
    max: int = 0


class Waiting(_Event):
    """`fraction`: the share of the time in which a thread waited for a processor."""

    fraction: float | None = None


class HostsWaiting(_Event):
    """The waiting of each host's thread that waited most."""

    client: Waiting = Waiting()
    server: Waiting = Waiting()


class Fidelity(_Event):
    """How close the emulation came to what was asked."""

    delay_error_ns: Times = Times()
    starvation: Waiting = Waiting()
    probe_starvation: HostsWaiting = HostsWaiting()
    kernel_drops: int | None = None
    realtime: bool = False
    within_budget: bool = False


class ProcessorTime(_Event):
    """Processor time of a cell's threads."""

    client_ns: int | None = None
    server_ns: int | None = None


class PacketCount(_Event):
    """Packets and their IP bytes."""

    packets: int
    bytes: int


class DirectionCounts(_Event):
    """Packets of each direction."""

    forward: PacketCount
    reverse: PacketCount


class Traffic(_Event):
    """What the hosts handed to the path once their kept connections were open."""

    exchanges: DirectionCounts


class HostProfile(_Event):
    """Where one host's processor time went: stacks by the part of the program that they were in."""

    samples: int = 0
    cpu_ns: int = 0
    parts: dict[str, int] = {}


class Profile(_Event):
    """Where the processor time of client and server went."""

    client: HostProfile = HostProfile()
    server: HostProfile = HostProfile()


class Finished(_Event):
    """A cell that ran to its end: its result."""

    valid: bool = False
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    samples: SampleCounts = SampleCounts()
    program: ProgramEnd | None = None
    ledger: Ledger | None = None
    fidelity: Fidelity | None = None
    cpu: ProcessorTime | None = None
    traffic: Traffic | None = None
    profile: Profile | None = None


def finished_of(run: CellRun) -> Finished | None:
    """The result of a repetition; None where it failed."""
    return None if run.finished is None else Finished.model_validate(run.finished)


def failure_of(run: CellRun) -> str:
    """Why a repetition failed, and what to do about it."""
    failure = run.failure or {}
    hint = f" ({failure['hint']})" if failure.get("hint") else ""
    return f"{failure.get('message') or 'no result'}{hint}"
