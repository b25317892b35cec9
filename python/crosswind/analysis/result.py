"""The result of a run as JSON, schema `crosswind.result/1` (docs/result.md).

    Result -> CellResult -> MetricEstimates -> Interval
                         -> Ends -> End
           -> Conditions, LevelComparison, ClientProgram
           -> findings by kind, each described in its folder (crosswind.findings)

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
from crosswind.cell.result import HostCpuProfile as HostCpuProfile  # noqa: PLC0414 -- for reports, which import no cell
from crosswind.decisions.model import ResultModel
from crosswind.files.damage import Damage
from crosswind.stats.estimate import Interval
from crosswind.stats.exchangeability import Diagnostics
from crosswind.text.quantities import Unit


def _require_statistics(schema: dict[str, Any]) -> None:
    """Describes every statistic in `crosswind.catalog.metrics` as a field, its form in JSON."""
    interval = schema["additionalProperties"]
    schema["properties"] |= {name: interval for name in STATISTICS if name not in schema["properties"]}
    schema["required"] += [name for name in STATISTICS if name not in schema["required"]]
    schema["additionalProperties"] = False


class MetricEstimates(ResultModel):
    """One metric in one cell: a field for each statistic in `crosswind.catalog.metrics`, in `unit`.

    smallest and largest are single samples, without an estimate. failed: unsuccessful exchanges. stalled: repetitions
    with a time of at least a second and ten medians; 0 in a large run. Means are over successes; quantiles also over
    timeouts, as longer than their limit.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_require_statistics)
    __pydantic_extra__: dict[str, Interval]

    unit: str
    smallest: float
    largest: float
    failed: int = 0
    stalled: int = 0
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
        stalled: int = 0,
        diagnostics: Diagnostics | None = None,
    ) -> "MetricEstimates":
        """Every statistic's estimate, by its name. Args: extremes: smallest and largest sample."""
        smallest, largest = extremes
        return cls.model_validate(
            {
                "unit": unit.name,
                "smallest": smallest,
                "largest": largest,
                "failed": failed,
                "stalled": stalled,
                "diagnostics": diagnostics,
                **statistics,
            }
        )

    def statistic(self, name: str) -> Interval:
        """One statistic's estimate."""
        interval: Interval = getattr(self, name)
        return interval


class End(ResultModel):
    """One end: Crosswind's own (`native`) or a peer.

    `implementations` are programs with versions, by their own names. `clock`: a client's, in steps of `resolution_ns`.
    `processor_wait_ns`: a peer's threads' longest wait for a processor in any repetition; null if unmeasured.
    """

    end: Literal["client", "server"]
    name: str
    implementations: list[str]
    clock: str | None
    resolution_ns: int | None
    processor_wait_ns: int | None


class Ends(ResultModel):
    """A cell's ends.

    `verified_transport`: every connection's in every repetition, by the client; null if unknown. `facts`: clients'
    other counts, by their own names, over all repetitions.
    """

    client: End
    server: End
    verified_transport: str | None
    facts: dict[str, float]


class ServerClock(ResultModel):
    """The server's clock beside the client's: ahead by `offset_ns`, in the repetition with the largest uncertainty.

    `one_way`: among `repetitions`, those with clocks close enough for one-way delays.
    """

    offset_ns: float
    uncertainty_ns: float
    method: str
    one_way: int
    repetitions: int


class NetworkConditions(ResultModel):
    """The network between this machine and the cells' server.

    `round_trip_ns`: over repetitions, the shortest and the longest minimum on a control connection. `client_versions`
    and `server_versions`: crosswind-cell's, `server_kernels`: the server's Linux. `captured`: whether both ends kept
    their packets.
    """

    server: str
    round_trip_ns: tuple[float, float]
    client_versions: list[str]
    server_versions: list[str]
    server_kernels: list[str]
    clock: ServerClock
    captured: bool = False


class Retransmitted(ResultModel):
    """One end's TCP segments over all repetitions, and the retransmitted ones among them.

    `share` stands for the direction's loss: too high with spurious retransmissions. `shortest_round_trip_ns`: by the
    end's kernel. `busy_ns`: time with data in flight or to be sent, over all connections; `receive_window_share` and
    `send_buffer_share`: the parts limited by these. 0 without the kernel's counts.
    """

    segments: int
    retransmitted: int
    share: Interval | None
    shortest_round_trip_ns: float | None
    busy_ns: float = 0
    receive_window_share: float = 0
    send_buffer_share: float = 0


Clock = Literal["real", "virtual"]
"""`real` is the machine's, `virtual` an own kernel's, with jumps over waiting."""


class Dropped(ResultModel):
    """Dropped packets, by cause. Each further dropping element is a further cause."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]

    loss: int = 0
    queue: int = 0
    device: int = 0

    @property
    def by_cause(self) -> dict[str, int]:
        """Every cause, also without drops."""
        return {"loss": self.loss, "queue": self.queue, "device": self.device, **self.__pydantic_extra__}

    @property
    def total(self) -> int:
        """Packets dropped for any cause."""
        return sum(self.by_cause.values())


class HopPackets(ResultModel):
    """One hop's dropped and marked (ECN) packets in one direction, summed over repetitions."""

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


class ReorderedPackets(ResultModel):
    """Packets that arrived after one that had entered later (RFC 4737), summed over repetitions.

    `extent` and `late_time_offset_ns` are the largest: arrivals, and time, from the first packet that had entered later
    to the overtaken one's own arrival.
    """

    packets: int
    extent: int
    late_time_offset_ns: int


class DirectionPackets(ResultModel):
    """One direction's packets, summed over repetitions: in + duplicated = delivered + dropped + queued.

    `corrupted`: among the delivered, those with a bit flipped by the path; the receiving host drops them. `marked`:
    delivered with the path's mark (ECN). `hops`: each one's share, the client's first, on a path with several.
    `reordering`, `background`: null without any.
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
    reordering: ReorderedPackets | None = None
    background: BackgroundPackets | None = None


class Ledger(ResultModel):
    """Where every packet went. `closed` is whether it adds up in every repetition."""

    forward: DirectionPackets
    reverse: DirectionPackets
    closed: bool


class DelayError(ResultModel):
    """Actual minus intended release time, ns: each the worst repetition's."""

    p50: float
    p99: float
    max: float


class Fidelity(ResultModel):
    """How close the emulation came to the request; null for a path without an emulator.

    `starvation` and `probe_starvation`: shares of time waiting for a processor, by the emulator and by either host's
    probe; `exchange_delay`: a mean exchange's delay by busy processors, ns; `kernel_drops`: packets dropped by the
    kernel, summed over repetitions. Null: not measured.
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
    """A simulated mean's 95 % interval: null if chance touched fewer than 15 runs."""

    low: float | None
    high: float | None
    runs: int
    touched: int


class ModelPrediction(ResultModel):
    """A model's prediction beside a cell's measurement. `value`: null if the model gives none.

    `ratio` is measured / predicted; `inside`: whether the prediction, or a simulated one's interval, meets the measured
    interval; `observed`: smallest and largest sample, all there is without an interval. `dropped`: the dropped share of
    data packets, for any cause; the model's own loss is in `inputs`.
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
    """One cell: its repetitions together. `attempts`: repeated ones included.

    `lost`: failed exchanges; `failures`: the same by cause, the most frequent first. `kernel`: its release. Null:
    unmeasured in virtual time. `exact`: nothing was left to chance: one run, and estimates without an interval.
    `packet_loss`: by direction, `forward` and `reverse`, the path's dropped share for any cause. `ends`: with a peer
    among them. `retransmitted`: TCP's by direction, over a real network.
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
"""Every cell comparison's first statistic."""


class StatisticComparison(ResultModel):
    """Two cells' difference in a statistic: `other` less `reference`, and `other` by `reference`.

    A quantile is the mean over the repetitions' own. `p`: for no difference. `p_adjusted`: by Benjamini and Hochberg's
    method over all comparisons in the run: they explore, a study's question tests. Two exact cells have exact effects
    without p; beside one, the interval is the other's. `below`, `above`: without an interval by design, pairs with a
    smaller and with a larger `other`; then p is their sign test's, and the verdict is about most repetitions.
    """

    difference: Interval
    ratio: Interval
    p: float | None
    p_adjusted: float | None
    verdict: str
    below: int | None = Field(default=None)
    above: int | None = Field(default=None)


class LevelPair(ResultModel):
    """Two cells different in one factor: `other` against `reference`, its first level. fixed: the other levels."""

    factor: str
    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int


class LevelComparison(LevelPair, StatisticComparison):
    """Two cells different in one factor, compared.

    `difference` to `verdict`: the mean's; `statistics`: other possible ones, by name: the median, unless the study asks
    for others. `paired`: whether repetition by repetition, the rule within a run. `pairs`: compared repetitions.
    """

    metric: str
    unit: str
    paired: bool
    pairs: int
    shift: Interval
    cliffs_delta: Interval
    statistics: dict[str, StatisticComparison] = Field(default={})

    def by(self, statistic: str) -> StatisticComparison | None:
        """The comparison by a statistic; None without it."""
        return self if statistic == MEAN else self.statistics.get(statistic)


class PartOfDifference(ResultModel):
    """The other cell's surplus of one thing per exchange, ns.

    Attributes: group: the thing (crosswind.catalog.spent). part, part_difference: the largest group's largest part,
        among several.
    """

    group: str
    difference: Interval
    part: str | None = Field(default=None)
    part_difference: Interval | None = Field(default=None)


class SpentDifference(LevelPair):
    """The breakdown of a time difference between two cells' exchanges.

    Attributes: difference: the whole time's, ns: the other cell's mean less the reference's. parts: its summands, the
        largest first; without those at 0 in both cells. asked: whether a question compares the two.
    """

    difference: Interval
    parts: list[PartOfDifference]
    asked: bool = Field(default=False)


class RoundTrips(ResultModel):
    """A time over cells different in path delay alone, as a line: `offset` + `trips` x round trip.

    Attributes: factor: with the delays. fixed: the other levels. cells: their indexes. metric: the time. trips: number
        of round trips. offset: the remainder, ns. deviation: a cell mean's largest distance from the line, ns; 0 with
        two delays.
    """

    factor: str
    fixed: dict[str, str]
    cells: list[int]
    metric: str
    trips: Interval
    offset: Interval
    deviation: float


class FlowOverTime(ResultModel):
    """A flow's packets leaving the path within an interval, in one direction; `queueing_ns` is their sum."""

    direction: str
    from_ns: int
    packets: int
    bytes: int
    dropped: int
    marked: int
    queueing_ns: int


class FlowResult(ResultModel):
    """A cell's workload, or its same-named flows, while all flows ran.

    `rate`: IP bits delivered by the path, same-named flows together, in the `direction` with more of theirs. `share`:
    among all flows there. `dropped`, `marked`: shares of their packets. `queueing`: a packet's wait. `over_time`: the
    first repetition's, from its beginning.
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
    """One model's errors: |predicted / measured - 1| for the mean, over the predicted cells.

    Attributes: model, title, metric: the model's. lossy: cells with loss, or those without. cells: their number.
        median, mean, worst: error. worst_cell: with the worst. bias: median of predicted / measured, less 1. measured:
        the cells' median relative standard error for the measured mean, a limit to any model; null with a single
        repetition in a cell. outside: cells breaking a model's assumption. left_out: cells with failed exchanges.
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
    """A client program's function: `calls` and `own_ns`, the time in itself, by message; `share`: of all time."""

    name: str
    calls: float
    own_ns: float
    share: float


class ProgramProblem(ResultModel):
    """A repetition (from 0) with a client program's bad end: an exit code or a signal, in words in `text`.

    `log`: its standard error, within the run's directory.
    """

    repetition: int
    exit_code: int | None
    signal: int | None
    text: str
    log: str = ""


class ClientProgram(ResultModel):
    """A program workload's client by its own report, summed over repetitions.

    `time_ns`: by message, over `messages`; its interval is the cell's estimate `send_time`. `problems`: repetitions
    with a bad end, `problem`: their texts together. `remarks`: on the report's unknown parts.
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
    """A setting and its values, as a study writes them: numbers by size, others in the cells' order.

    `is_factor`: whether cells differ in it.
    """

    name: str
    values: list[str]
    is_factor: bool


PathDirections = Literal["each way", "client to server", "server to client"]


class PathConditions(ResultModel):
    """One direction of a hop, or both if alike: its elements, as far as they do anything.

    `hop`: its name; empty on a path with only one.
    """

    direction: PathDirections
    settings: list[SettingValues]
    hop: str = ""


class ChangeConditions(ResultModel):
    """The path's change over time. `when`: its start, duration and period. `direction`: the values'."""

    name: str
    when: list[SettingValues]
    direction: PathDirections
    settings: list[SettingValues]


class FlowConditions(ResultModel):
    """A flow beside the workload: its own settings, and its workload's."""

    name: str
    settings: list[SettingValues]
    workload: list[SettingValues]


class Conditions(ResultModel):
    """A run's common and varied settings. `hosts`: explicit settings for client and server.

    `clocks`: "real", "virtual" or both. `kernels`: the hosts' Linux versions. `repetitions`: the cells' least and most.
    `machine`: in words, as far as known. `started`: in UTC. `ends`: both ends' programs and verified transports; empty
    if all were Crosswind's own. `network`: the real one, for a run to another machine, without `path`.
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
    """Everything for a report, without samples. Each kind of finding adds a field (crosswind.findings).

    `copied`: of the `executed` repetitions, those with the result of another, which loses the same packets; in a large
    run 0.
    """

    schema_: Literal["crosswind.result/1"] = Field(default="crosswind.result/1", alias="schema")
    study: str
    title: str
    valid: bool
    complete: bool
    planned: int
    executed: int
    copied: int = Field(default=0)
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
        """A kind's findings, by their model."""
        lists = (value for value in self.__dict__.values() if isinstance(value, list))
        return [finding for findings in lists for finding in findings if isinstance(finding, kind)]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON text, non-ASCII characters kept."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False, allow_nan=False)
