"""Two runs compared, as JSON: schema `crosswind.comparison/2` (docs/compare.md).

A ratio is that of run B to run A; a difference is B less A. Fields may be added within version 2.
"""

import json
from typing import Literal

from pydantic import Field

from crosswind.decisions.model import ResultModel
from crosswind.decisions.statement import Kept
from crosswind.stats.estimate import Interval

SCHEMA = "crosswind.comparison/2"

ChangeVerdict = Literal["worse", "better", "no difference shown", "cannot tell", "same"]
"""What is known of a change: it is shown, not shown, cannot be tested, or there is none and nothing that varies."""


class RunSide(ResultModel):
    """One of the two runs. cells, repetitions: that have results. damaged: what is left out of it, in words."""

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
    """A setting, a version or a property of the machine that the two runs do not share; null where a run has none."""

    what: str
    a: str | None
    b: str | None


class Change(ResultModel):
    """An effect with its interval. low and high are null where it has none: `reason` says why, or `method` is exact.

    of_most: whether it is the median of the pairs of repetitions, judged by a sign test; then it says what most
    repetitions do and nothing of the statistic of all. constant: whether it is the same in every repetition. Of a
    condition, the limits are those on which it is decided.
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
    """One statistic of one metric, in a pair of common cells.

    Attributes: a, b: its mean over the repetitions of either run, in `unit`. units_a, units_b: repetitions.
        left_a, left_b: repetitions without a partner in the other run, which a paired comparison leaves out.
        pooled_a, pooled_b: of a quantile that of all exchanges of the cell, as a report has it; `a` and `b` are the
        mean of the repetitions' own. n_a, n_b: exchanges behind them; failed_a, failed_b: those without a value.
        paired: whether repetitions with the same seeds were compared. p: of no difference;
        p_holm: corrected over the cells of the metric and statistic.
        verdict: worse, better, no difference shown, cannot tell, or of what does not vary: same.
        needed: repetitions of each run that would probably show a difference as large as the observed one; null where
            one is shown.
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
    """What exchanges spend on one part (docs/result.md), ns: its mean in both runs, and B less A."""

    part: str
    a: float
    b: float
    change: Change


class PacketAt(ResultModel):
    """A packet in one run: when it entered the path, ns since the cell was ready; how long it was in it, ns; its size.

    fate: delivered, damaged, queued until the cell ended, or dropped by its cause.
    """

    in_ns: int
    path_ns: int
    size_bytes: int
    fate: str


class Parting(ResultModel):
    """The first packet at which a repetition of one run is no longer that of the other.

    Attributes: repetition: from 0. direction, index: the packet, as packets.parquet counts them. exchange: the one that
        was under way on its connection; null where none was. differs: what differs. a, b: null where a run has no such
        packet. late_ns: by how much later it was sent in B, beyond how much later the one before it was.
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
    """An exchange that takes another time in B, ns. part: what most of the change is, and by how much that changed."""

    repetition: int
    exchange: int
    a: int
    b: int
    part: str
    part_change: int


class Why(ResultModel):
    """What the change of the whole time (`spent`) in a common cell is made of, and where its packets part.

    Attributes: a, b: the mean whole time of paired repetitions, ns. change: B less A. parts: what it is the sum of, the
        largest first; none that is 0 in both runs. repetitions: paired ones. exchanges: paired ones; differing: those
        whose times differ by more than `tolerance_ns`, which hosts take at most to do anything at once. first, largest:
        of these. packets: of how many repetitions both runs have kept packets. partings: of each of those that parts.
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
    """A cell that both runs have. matched_by: what it has in common: all parameters, or its levels.

    why: with --why, of a cell in which both runs tell what time was spent on.
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
    """What is known of a condition in one common cell.

    p: of its not being met. p_holm: corrected over all cells and conditions.
    needed: more repetitions of either run that would probably decide it; null where it is decided, or nobody can know.
    instead: a statistic of the same metric that these repetitions decide, where this one is inconclusive.
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
    """A condition of --fail-if. It fails where one cell fails, and passes where every cell passes.

    is_ratio: whether the changes of its cells are ratios; else they are differences in `unit`. direction: worse, better
    or differs. is_upward: whether a larger number is in that direction.
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
    """A metric of all cells that two large runs have in common.

    Attributes: cells: that have it. larger, smaller: in how many the mean of its repetitions is so in B. least, middle,
        most: of the ratios of these means, B to A; null where none is above 0.
    """

    metric: str
    cells: int
    larger: int
    smaller: int
    least: float | None
    middle: float | None
    most: float | None


class LargeComparison(ResultModel):
    """Of two large runs: how many cells they have in common, of which `common` lists those that stand out the most, and
    what is known of all of them.
    """

    cells: int
    metrics: list[MetricOverview]


class RunComparison(ResultModel):
    """Two runs compared. overview: of large ones."""

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
