"""Two runs compared, as JSON: schema `crosswind.comparison/2` (docs/compare.md).

Ratios and differences are run B's to run A. Fields may be added within version 2.
"""

import json
from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Kept
from crosswind.stats.estimate import Interval

SCHEMA = "crosswind.comparison/2"

ChangeVerdict = Literal["worse", "better", "no difference shown", "cannot tell", "same"]
"""A change: shown, not shown, untestable, or absent without any spread."""


class RunSide(ResultModel):
    """One run. cells, repetitions: with results. damaged: omissions for damage, in words."""

    directory: str
    study: str
    title: str
    started: str | None
    clocks: list[str]
    cells: int
    repetitions: int
    valid: bool
    damaged: list[str] = Field(default=[])


class Differing(ResultModel):
    """A setting, a version or a machine's property different between the runs; null for a run without it."""

    what: str
    a: str | None
    b: str | None


class Change(ResultModel):
    """An effect with its interval. low and high are null without one: `reason` says why, or `method` is exact.

    of_most: whether it is the pairs' median, judged by a sign test; then it is about most repetitions, not the
    statistic over all. constant: whether it is the same in every repetition. A condition's limits are the deciding
    ones.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    reason: str | None = None
    of_most: bool = False
    constant: bool = False

    @classmethod
    def of(cls, made: Interval, *, of_most: bool = False, constant: bool = False) -> "Change":
        """An estimated effect."""
        return cls(
            value=made.value, low=made.low, high=made.high, level=made.level, reason=made.reason, of_most=of_most,
            constant=constant,
        )  # fmt: skip


class MetricChange(ResultModel):
    """One statistic in two matching cells.

    Attributes: a, b: its mean over either run's repetitions, in `unit`. units_a, units_b: repetitions. left_a, left_b:
        repetitions without a partner in the other run, left out if paired. pooled_a, pooled_b: a quantile over all
        exchanges, as in a report; `a` and `b` are the mean over the repetitions' own. n_a, n_b: exchanges behind them;
        failed_a, failed_b: those without a value. paired: whether repetitions with the same seeds were compared. p: for
        no difference; p_holm: corrected over the cells for the metric and statistic. verdict: worse, better, no
        difference shown, cannot tell, or same, without spread. needed: repetitions in each run probably showing a
        difference as large as the observed one; null if shown.
    """

    metric: str
    statistic: str
    unit: str
    a: float | None = None
    b: float | None = None
    units_a: int = 0
    units_b: int = 0
    n_a: int = 0
    n_b: int = 0
    failed_a: int = 0
    failed_b: int = 0
    left_a: int = 0
    left_b: int = 0
    pooled_a: float | None = None
    pooled_b: float | None = None
    paired: bool = False
    method: str = "none"
    difference: Change
    ratio: Change
    p: float | None = None
    p_holm: float | None = None
    verdict: ChangeVerdict = "cannot tell"
    reason: str | None = None
    needed: int | None = None


class PartOfChange(ResultModel):
    """One part of exchanges' time (docs/result.md), ns: its mean in both runs, and B less A."""

    part: str
    a: float
    b: float
    change: Change


class PacketAt(ResultModel):
    """A packet in one run: its entry into the path, ns after the cell was ready; its time there, ns; its size.

    fate: delivered, damaged, queued until the cell's end, or dropped by its cause.
    """

    in_ns: int
    path_ns: int
    size_bytes: int
    fate: str


class Parting(ResultModel):
    """The first packet different between two matching repetitions.

    Attributes: repetition: from 0. direction, index: the packet, as counted in packets.parquet. exchange: under way on
        its connection; null without one. differs: the differences. a, b: null without such a packet. late_ns: B's
        additional delay in sending it, beyond the packet before.
    """

    repetition: int
    direction: Literal["forward", "reverse"]
    index: int
    exchange: int | None
    differs: list[Literal["presence", "time", "size", "time in the path", "fate"]]
    a: PacketAt | None
    b: PacketAt | None
    late_ns: int


class ExchangeChange(ResultModel):
    """An exchange with another time in B, ns. part: the change's largest part, with its change."""

    repetition: int
    exchange: int
    a: int
    b: int
    part: str
    part_change: int


class Why(ResultModel):
    """The breakdown of a common cell's time change (`spent`), and its packets' partings.

    Attributes: a, b: paired repetitions' mean whole time, ns. change: B less A. parts: its summands, the largest first;
        without those at 0 in both runs. repetitions: paired ones. exchanges: paired ones; differing: by more than
        `tolerance_ns`, hosts' longest immediate action. first, largest: among these. packets: repetitions with packets
        kept in both runs. partings: each differing one's.
    """

    a: float
    b: float
    change: Change
    parts: list[PartOfChange]
    repetitions: int
    exchanges: int
    differing: int
    tolerance_ns: int
    first: ExchangeChange | None
    largest: ExchangeChange | None
    packets: int
    partings: list[Parting]


class CommonCell(ResultModel):
    """A cell in both runs. matched_by: all parameters, or its levels.

    why: with --why, for cells with a time breakdown in both runs.
    """

    cell_a: int
    cell_b: int
    levels: dict[str, str]
    matched_by: Literal["parameters", "parameters but the clock", "levels"]
    invalid_a: str | None = None
    invalid_b: str | None = None
    changes: list[MetricChange]
    why: Why | None = Field(default=None)


class ConditionInCell(ResultModel):
    """A condition in one common cell.

    p: for its not being met. p_holm: corrected over all cells and conditions. needed: further repetitions in either
    run, probably deciding it; null if decided, or unknown. instead: another statistic, decided by these repetitions if
    this one is inconclusive.
    """

    cell_a: int
    cell_b: int
    levels: dict[str, str]
    answer: Kept = "inconclusive"
    change: Change
    p: float | None = None
    p_holm: float | None = None
    reason: str | None = None
    needed: int | None = None
    instead: str | None = None


class AskedCondition(ResultModel):
    """A --fail-if condition. It fails if one cell fails, and passes if every cell passes.

    is_ratio: whether its cells' changes are ratios; else they are differences in `unit`. direction: worse, better or
    differs. is_upward: whether a larger number is in that direction.
    """

    condition: str
    metric: str
    statistic: str
    is_ratio: bool
    unit: str
    direction: str
    is_upward: bool
    answer: Kept
    cells: list[ConditionInCell]


class MetricOverview(ResultModel):
    """A metric over two large runs' common cells.

    Attributes: cells: with it. larger, smaller: cells with such a repetition mean in B. least, middle, most: these
        means' ratios, B to A; null if none is above 0.
    """

    metric: str
    cells: int
    larger: int
    smaller: int
    least: float | None
    middle: float | None
    most: float | None


class LargeComparison(ResultModel):
    """Two large runs: their common cells' number (`common` lists those standing out), and every metric's overview."""

    cells: int
    metrics: list[MetricOverview]


class RunComparison(ResultModel):
    """Two runs compared. overview: for large ones."""

    schema_: Literal["crosswind.comparison/2"] = Field(default="crosswind.comparison/2", alias="schema")
    a: RunSide
    b: RunSide
    settings: list[Differing]
    surroundings: list[Differing]
    common: list[CommonCell]
    only_a: list[dict[str, str]]
    only_b: list[dict[str, str]]
    conditions: list[AskedCondition]
    level: float
    overview: LargeComparison | None = Field(default=None)

    def to_json(self, *, indent: int | None = 2) -> str:
        """The comparison as JSON text, non-ASCII characters kept."""
        left_out = None if self.overview else {"overview"}
        data = self.model_dump(mode="json", exclude=left_out)
        return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
