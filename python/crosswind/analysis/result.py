"""The result of a run as JSON, schema `crosswind.result/1` (docs/result.md).

    Result -> CellResult -> MetricEstimates -> Interval
                         -> Ends -> End
           -> Conditions, LevelComparison, ClientProgram
           -> of each kind of finding what its folder says (crosswind.findings)

Fields may be added within version 1; none is removed or changes its meaning.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, Field

from crosswind.catalog.metrics import STATISTICS
from crosswind.catalog.precision import PrecisionReached
from crosswind.catalog.warning import ResultWarning
from crosswind.cell.result import FailureCount
from crosswind.cell.result import HostCpuProfile as HostCpuProfile  # pages have it from here
from crosswind.decisions.model import ResultModel
from crosswind.files.damage import Damage
from crosswind.stats.diagnostics import Diagnostics
from crosswind.stats.estimate import Interval
from crosswind.text.quantities import Unit


def _require_statistics(schema: dict[str, Any]) -> None:
    """Describes every statistic of `crosswind.catalog.metrics` as a field, which it is in JSON."""
    interval = schema["additionalProperties"]
    schema["properties"] |= {name: interval for name in STATISTICS if name not in schema["properties"]}
    schema["required"] += [name for name in STATISTICS if name not in schema["required"]]
    schema["additionalProperties"] = False


class MetricEstimates(ResultModel):
    """One metric of one cell: a field for each statistic of `crosswind.catalog.metrics`, in `unit`.

    smallest and largest are single samples, which estimate nothing. failed: exchanges that did not succeed. Means are
    of those that did; quantiles of those and of the ones that timed out, which took longer than their timeout.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_require_statistics)
    __pydantic_extra__: dict[str, Interval]

    unit: str
    smallest: float
    largest: float
    failed: int = 0
    diagnostics: Diagnostics | None = None
    median: Interval
    mean: Interval

    @classmethod
    def of(
        cls,
        unit: Unit,
        extremes: tuple[float, float],
        statistics: Mapping[str, Interval],
        *,
        failed: int = 0,
        diagnostics: Diagnostics | None = None,
    ) -> "MetricEstimates":
        """The estimates of every statistic, by its name. Args: extremes: smallest and largest sample."""
        smallest, largest = extremes
        return cls.model_validate(
            {
                "unit": unit.name,
                "smallest": smallest,
                "largest": largest,
                "failed": failed,
                "diagnostics": diagnostics,
                **statistics,
            }
        )

    def statistic(self, name: str) -> Interval:
        """The estimate of one statistic."""
        interval: Interval = getattr(self, name)
        return interval


class End(ResultModel):
    """One end: Crosswind's own (`native`) or a peer.

    `implementations` are the programs with their versions, as they call themselves. `clock` is that of a client's
    times, in steps of `resolution_ns`. `processor_wait_ns`: of a peer, how long its threads waited for a processor in
    the repetition in which they waited most; null where it was not measured.
    """

    end: Literal["client", "server"]
    name: str
    implementations: list[str]
    clock: str | None
    resolution_ns: int | None
    processor_wait_ns: int | None


class Ends(ResultModel):
    """Both ends of a cell.

    `verified_transport`: the transport of every connection in every repetition, as the client found it; null if it
    could not tell. `facts`: what else clients counted, by their names for it, over all repetitions.
    """

    client: End
    server: End
    verified_transport: str | None
    facts: dict[str, float]


class ServerClock(ResultModel):
    """The server's clock beside the client's: ahead by `offset_ns`, of the repetition that knows it worst.

    `one_way`: in how many repetitions both were close enough for delays of one direction, of `repetitions`.
    """

    offset_ns: float
    uncertainty_ns: float
    method: str
    one_way: int
    repetitions: int


class NetworkConditions(ResultModel):
    """The network between this machine and a server, to which cells were run.

    `round_trip_ns`: the shortest and the longest of the repetitions, each the shortest of its control connection.
    `client_versions` and `server_versions` are those of crosswind-cell, `server_kernels` of Linux there. `captured`:
    whether both ends kept what they sent and received.
    """

    server: str
    round_trip_ns: tuple[float, float]
    client_versions: list[str]
    server_versions: list[str]
    server_kernels: list[str]
    clock: ServerClock
    captured: bool = False


class Retransmitted(ResultModel):
    """TCP segments that one end sent in all repetitions, and those of them that it had sent before.

    `share` is what stands for the loss of that direction: more, where a segment was retransmitted without need.
    `shortest_round_trip_ns`: that the end's kernel saw. `busy_ns`: for how long something was in flight or to be sent,
    over all connections; of that, `receive_window_share` and `send_buffer_share` were held back by those. 0 where the
    kernel was not asked.
    """

    segments: int
    retransmitted: int
    share: Interval | None
    shortest_round_trip_ns: float | None
    busy_ns: float = 0
    receive_window_share: float = 0
    send_buffer_share: float = 0


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


class CpuProfile(ResultModel):
    """Where processor time went, summed over repetitions."""

    client: HostCpuProfile
    server: HostCpuProfile


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


MEAN = "mean"
"""The statistic that cells always are compared by."""


class StatisticComparison(ResultModel):
    """By how much a statistic of two cells differs: `other` less `reference`, and `other` by `reference`.

    A quantile is the mean of those of the repetitions. `p`: of no difference at all. `p_adjusted`: by Benjamini and
    Hochberg's method over all comparisons of the run, which explore: a question of the study tests. Of two exact cells
    the effects are exact and there is no p; beside one exact cell, the interval is that of the other. `below`, `above`:
    where the design supports no interval, in how many pairs of repetitions `other` is less and more; then p is that of
    their sign test, and the verdict is about most repetitions.
    """

    difference: Interval
    ratio: Interval
    p: float | None
    p_adjusted: float | None
    verdict: str
    below: int | None = Field(default=None)
    above: int | None = Field(default=None)


class LevelPair(ResultModel):
    """Two cells that differ in one factor: `other` against `reference`, its first level. fixed: the other levels."""

    factor: str
    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int


class LevelComparison(LevelPair, StatisticComparison):
    """Two cells that differ in one factor, compared.

    `difference` to `verdict` are of the mean; `statistics` has the same of others, by name, as far as the metric can
    have them: the median, unless the study asks for others. `paired`: whether repetition by repetition, as cells of one
    run are. `pairs`: how many repetitions were compared.
    """

    metric: str
    unit: str
    paired: bool
    pairs: int
    shift: Interval
    cliffs_delta: Interval
    statistics: dict[str, StatisticComparison] = Field(default={})

    def by(self, statistic: str) -> StatisticComparison | None:
        """The comparison by a statistic; None where the cells were not compared by it."""
        return self if statistic == MEAN else self.statistics.get(statistic)


class PartOfDifference(ResultModel):
    """By how much more of one thing the other cell's exchanges have, ns.

    Attributes: group: of what (crosswind.catalog.spent). part, part_difference: of the largest group its largest part,
        where it has several.
    """

    group: str
    difference: Interval
    part: str | None = Field(default=None)
    part_difference: Interval | None = Field(default=None)


class SpentDifference(LevelPair):
    """What the time that exchanges of one cell take longer than those of another is spent on.

    Attributes:
        difference: of the whole time, ns: its mean in the other cell less that in the reference.
        parts: what it is the sum of, the largest first; none that is 0 in both cells.
        asked: whether a question compares the two.
    """

    difference: Interval
    parts: list[PartOfDifference]
    asked: bool = Field(default=False)


class RoundTrips(ResultModel):
    """A time over cells that differ in the delay of their path alone, as a line: `offset` + `trips` x round trip.

    Attributes:
        factor: the one by which the delay differs. fixed: the levels of the others. cells: their indexes.
        metric: the time. trips: how many round trips. offset: what it takes besides, ns.
        deviation: how far the mean of a cell is from the line at most, ns; 0 with two delays.
    """

    factor: str
    fixed: dict[str, str]
    cells: list[int]
    metric: str
    trips: Interval
    offset: Interval
    deviation: float


class FlowOverTime(ResultModel):
    """Packets of a flow that left the path within an interval, in one direction; `queueing_ns` is a sum over them."""

    direction: str
    from_ns: int
    packets: int
    bytes: int
    dropped: int
    marked: int
    queueing_ns: int


class FlowResult(ResultModel):
    """The workload of a cell, or the flows of one name beside it, while all flows ran.

    `rate`: IP bits that the path delivered, all flows of the name together, in the `direction` in which they send more.
    `share`: of what all flows got in that direction. `dropped`, `marked`: of their packets. `queueing`: how
    long a packet waited. `over_time`: of the first repetition, from its beginning.
    """

    cell: int
    name: str
    count: int
    direction: str
    rate: Interval
    share: Interval
    dropped: Interval
    marked: Interval
    queueing: Interval
    over_time: list[FlowOverTime]


class ModelErrors(ResultModel):
    """The errors of one model: |predicted / measured - 1| of the mean, over the cells that it gives a number for.

    Attributes:
        model, title, metric: which. lossy: of the cells with loss, or of those without.
        cells: how many. median, mean, worst: of their errors. worst_cell: where the worst one is.
        bias: median of predicted / measured, less 1. measured: median over cells of the relative standard error of the
        measured mean, which no model can be closer than; null where a cell has one repetition.
        outside: cells that break an assumption of the model. left_out: cells in which some exchanges failed.
    """

    model: str
    title: str
    metric: str
    lossy: bool
    cells: int
    median: float
    mean: float
    worst: float
    worst_cell: int
    bias: float
    measured: float | None
    outside: int
    left_out: int


class ProgramFunction(ResultModel):
    """A function of a client program: `calls` and `own_ns`, the time in itself, by message; `share` of all the time."""

    name: str
    calls: float
    own_ns: float
    share: float


class ProgramProblem(ResultModel):
    """A repetition (from 0) whose client program did not end well: by an exit code or a signal, in words in `text`.

    `log` is where its standard error is kept, within the run's directory.
    """

    repetition: int
    exit_code: int | None
    signal: int | None
    text: str
    log: str = ""


class ClientProgram(ResultModel):
    """What the client of a program workload says of itself, summed over repetitions.

    `time_ns` is by message, of which there were `messages`; its interval is the cell's estimate `send_time`.
    `problems` are the repetitions in which it did not end well, `problem` is their texts together. `remarks` name what
    of its report was not understood.
    """

    cell: int
    version: str | None
    messages: int
    time_ns: float | None
    functions: list[ProgramFunction]
    problem: str | None
    problems: list[ProgramProblem] = Field(default=[])
    remarks: list[str] = Field(default=[])


class SettingValues(ResultModel):
    """A setting and the values that it had, as a study writes them: numbers by size, others in the order of the cells.

    `is_factor`: whether cells differ in it.
    """

    name: str
    values: list[str]
    is_factor: bool


PathDirections = Literal["each way", "client to server", "server to client"]


class PathConditions(ResultModel):
    """One direction of a hop, or both where they are alike: its elements, as far as they do anything.

    `hop`: its name; empty where the path has only one.
    """

    direction: PathDirections
    settings: list[SettingValues]
    hop: str = ""


class ChangeConditions(ResultModel):
    """What of the path changes over time. `when`: from when on, for how long, how often. `direction`: of the values."""

    name: str
    when: list[SettingValues]
    direction: PathDirections
    settings: list[SettingValues]


class FlowConditions(ResultModel):
    """A flow beside the workload: its own settings, and those of what it does."""

    name: str
    settings: list[SettingValues]
    workload: list[SettingValues]


class Conditions(ResultModel):
    """What was the same in a run and what was varied. `hosts`: the settings of client and server that were set.

    `clocks`: "real", "virtual" or both. `kernels`: Linux's versions, of the hosts. `repetitions`: of the cells, the
    least and the most. `machine`: in words; what is not known of it is left out. `started`: in UTC. `ends`: the
    programs at both ends and the transports that clients found in use; empty where both ends were Crosswind's own.
    `network`: the one that is really there, of a run to another machine, which has no `path`.
    """

    path: list[PathConditions]
    changes: list[ChangeConditions] = Field(default=[])
    hosts: list[SettingValues]
    workload: list[SettingValues]
    flows: list[FlowConditions] = Field(default=[])
    clocks: list[Literal["real", "virtual"]]
    kernels: list[str]
    repetitions: tuple[int, int]
    started: str | None
    machine: str | None
    ends: list[SettingValues] = Field(default=[])
    network: NetworkConditions | None = None


SCHEMA = "crosswind.result/1"


Found = TypeVar("Found", bound=ResultModel)


class Result(ResultModel):
    """Everything a report needs, without samples. Each kind of finding has a field more (crosswind.findings)."""

    schema_: Literal["crosswind.result/1"] = Field(default="crosswind.result/1", alias="schema")
    study: str
    title: str
    valid: bool
    complete: bool
    planned: int
    executed: int
    damaged: list[Damage] = Field(default=[])
    conditions: Conditions | None = None
    cells: list[CellResult]
    comparisons: list[LevelComparison]
    spent: list[SpentDifference] = Field(default=[])
    round_trips: list[RoundTrips] = Field(default=[])
    flows: list[FlowResult] = Field(default=[])
    model_errors: list[ModelErrors] = Field(default=[])
    precisions: list[PrecisionReached] = Field(default=[])
    peers: list[ClientProgram] = Field(default=[])
    notes: list[str]
    left_out: list[str] = Field(default=[])
    warnings: list[ResultWarning]
    design: dict[str, Any]
    provenance: dict[str, Any]

    def of(self, kind: type[Found]) -> list[Found]:
        """The findings of a kind, by the model of each."""
        lists = (value for value in self.__dict__.values() if isinstance(value, list))
        return [finding for findings in lists for finding in findings if isinstance(finding, kind)]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON text, non-ASCII characters kept."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False, allow_nan=False)
