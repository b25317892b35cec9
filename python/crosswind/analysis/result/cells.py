"""A cell of a result: its estimates, and what says whether to trust them."""

from typing import Literal

from pydantic import ConfigDict, Field

from crosswind.analysis.result.ends import Ends
from crosswind.analysis.result.estimates import MetricEstimates
from crosswind.analysis.result.network import Retransmitted
from crosswind.catalog.warning import ResultWarning
from crosswind.decisions.interval import Interval, ResultModel

Clock = Literal["real", "virtual"]
"""`real` is the machine's, `virtual` that of a kernel of its own, which jumps over waiting."""


class Dropped(ResultModel):
    """Packets dropped, by cause. Each further element of the path that drops packets is a further cause."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    loss: int = 0
    queue: int = 0
    device: int = 0

    @property
    def by_cause(self) -> dict[str, int]:
        """Every cause, also those that dropped nothing."""
        return {"loss": self.loss, "queue": self.queue, "device": self.device, **self.__pydantic_extra__}

    @property
    def total(self) -> int:
        """Packets dropped for any cause."""
        return sum(self.by_cause.values())


class HopPackets(ResultModel):
    """Packets of one direction that one hop dropped and marked (ECN), summed over repetitions."""

    dropped: Dropped
    marked: int
    background_carried: int = 0
    background_dropped: int = 0


class BackgroundPackets(ResultModel):
    """Background traffic, summed over repetitions: in = carried + dropped + queued. It is in no other count."""

    in_: int = Field(alias="in")
    carried: int
    carried_bytes: int
    dropped: Dropped
    marked: int
    queued: int


class DirectionPackets(ResultModel):
    """Packets of one direction, summed over repetitions: in + duplicated = delivered + dropped + queued.

    `corrupted`: of those delivered, the ones in which the path flipped a bit. The receiving host drops them.
    `marked` is the number of delivered packets that the path marked (ECN). `hops`: of a path with several, what each
    did, the client's first. `background`: null where there is none.
    """

    in_: int = Field(alias="in")
    duplicated: int = 0
    delivered: int
    dropped: Dropped
    marked: int = 0
    hops: list[HopPackets] = Field(default_factory=list)
    queued: int
    in_bytes: int | None = None
    delivered_bytes: int | None = None
    corrupted: int = 0
    background: BackgroundPackets | None = None


class Ledger(ResultModel):
    """Where every packet went. `closed` is whether it adds up in every repetition."""

    forward: DirectionPackets
    reverse: DirectionPackets
    closed: bool


class DelayError(ResultModel):
    """Actual minus intended release time, ns: each the worst of the repetitions."""

    p50: float
    p99: float
    max: float


class Fidelity(ResultModel):
    """How close the emulation came to what was asked; null for a path without an emulator.

    `starvation` and `probe_starvation` are shares of the time in which the emulator, or either host's probe, waited for
    a processor; `exchange_delay` is how much longer a mean exchange was because processors were busy with something
    else, in nanoseconds; `kernel_drops` are packets that the kernel dropped, summed over repetitions. Null: not
    measured.
    """

    delay_error: DelayError
    starvation: float | None = None
    realtime: bool | None = None
    within_budget: bool
    probe_starvation: float | None = None
    exchange_delay: float | None = None
    kernel_drops: int | None = None


class HostCpuProfile(ResultModel):
    """Where one host's processor time went: how many of `samples` fell into each part; `cpu_ns` is all of it."""

    samples: int
    cpu_ns: int
    parts: dict[str, int]


class CpuProfile(ResultModel):
    """Where processor time went, summed over repetitions."""

    client: HostCpuProfile
    server: HostCpuProfile


class FailureCount(ResultModel):
    """Exchanges that did not go well, by their outcome. `first_error`: the text of the first one's error."""

    outcome: str
    count: int
    first_error: str | None = None


class SimulatedInterval(ResultModel):
    """The 95 % interval of a simulated mean: null where chance touched fewer than 15 of its runs."""

    low: float | None
    high: float | None
    runs: int
    touched: int


class ModelPrediction(ResultModel):
    """What a model says of a cell, beside what was measured. `value` is null where the model gives none.

    `ratio` is measured / predicted; `inside` whether the prediction, or the interval of a simulated one, meets the
    measured interval; `observed` the
    smallest and the largest sample, which is all there is where samples are too few for an interval. `dropped`: the
    share of the packets with data that the path dropped, for any cause; the loss that the model knows is in `inputs`.
    """

    model: str
    title: str
    metric: str
    statistic: str
    unit: str
    value: float | None
    uncapped: float | None
    measured: Interval | None
    observed: tuple[float, float] | None
    ratio: float | None
    inside: bool | None
    simulated: SimulatedInterval | None = Field(default=None)
    inputs: dict[str, float]
    violated: list[str]
    notes: list[str]
    dropped: float | None = Field(default=None)
    source: str


class CellResult(ResultModel):
    """One cell: its repetitions together. `attempts` counts those that were run again as well.

    `lost` exchanges are those that did not go well; `failures` are the same by cause, the most frequent first. `kernel`
    is the release of the one that it ran on. What virtual time does not measure is null. `exact`: nothing in it was
    left to chance, so that it ran once and its estimates have no interval. `packet_loss`: by direction, `forward` and
    `reverse`, the share of the packets that entered the path which it dropped for any cause. `ends`: who they were,
    where one of them was a peer. `retransmitted`: by direction, what TCP retransmitted over a network that is there.
    """

    cell: int
    levels: dict[str, str]
    clock: Clock = Field(default="real")
    kernel: str | None = None
    exact: bool = Field(default=False)
    valid: bool
    reason: str | None
    warnings: list[ResultWarning]
    repetitions: int
    attempts: int
    n: int
    lost: int
    loss: Interval | None
    outcomes: dict[str, int]
    failures: list[FailureCount] = Field(default=[])
    estimates: dict[str, MetricEstimates]
    ledger: Ledger | None
    packet_loss: dict[Literal["forward", "reverse"], Interval] = Field(default={})
    retransmitted: dict[Literal["forward", "reverse"], Retransmitted] = Field(default={})
    fidelity: Fidelity | None
    models: list[ModelPrediction]
    profile: CpuProfile | None = None
    ends: Ends | None = None
