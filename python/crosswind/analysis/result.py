"""The result of a run as JSON, schema `crosswind.result/1` (docs/result.md, docs/result.schema.json).

Fields may be added within version 1; none is removed or changes its meaning.
"""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crosswind.stats import Estimate

SCHEMA = "crosswind.result/1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Interval(_Part):
    """One estimate. value, low and high are null together, and `reason` then says why and what would be needed."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    reason: str | None = None

    @classmethod
    def of(cls, estimate: Estimate) -> "Interval":
        """The same estimate without its unit, which its surroundings give."""
        e = estimate
        return cls(value=e.value, low=e.low, high=e.high, n=e.n, level=e.level, method=e.method, reason=e.reason)


class Metric(_Part):
    """One metric of one cell: estimates in `unit`. smallest and largest are single samples, which estimate nothing."""

    unit: str
    smallest: float
    largest: float
    median: Interval
    mean: Interval
    p95: Interval
    p99: Interval


class Dropped(_Part):
    """Packets dropped, by cause."""

    loss: int
    queue: int
    device: int


class Direction(_Part):
    """Packets of one direction, summed over repetitions: in = delivered + dropped + queued."""

    in_: int = Field(alias="in")
    delivered: int
    dropped: Dropped
    queued: int
    in_bytes: int | None = None
    delivered_bytes: int | None = None


class Ledger(_Part):
    """Where every packet went. `closed` is whether it adds up in every repetition."""

    forward: Direction
    reverse: Direction
    closed: bool


class DelayError(_Part):
    """Actual minus intended release time, ns: each the worst of the repetitions."""

    p50: float
    p99: float
    max: float


class Fidelity(_Part):
    """How close the emulation came to what was asked; null for a path without an emulator.

    `starvation` and `probe_starvation` are shares of the time in which the emulator, or either host's probe, waited for
    a processor; `kernel_drops` are packets that the kernel dropped, summed over repetitions. Null: not measured.
    """

    delay_error: DelayError
    starvation: float | None = None
    realtime: bool | None = None
    within_budget: bool
    probe_starvation: float | None = None
    kernel_drops: int | None = None


class HostProfile(_Part):
    """Where one host's processor time went: how many of `samples` fell into each part; `cpu_ns` is all of it."""

    samples: int
    cpu_ns: int
    parts: dict[str, int]


class Profile(_Part):
    """Where processor time went, summed over repetitions."""

    client: HostProfile
    server: HostProfile


class PeerFunction(_Part):
    """A function of a peer program: `calls` and `own_ns`, the time in itself, by message; `share` of the whole time."""

    name: str
    calls: float
    own_ns: float
    share: float


class Peer(_Part):
    """What the client of a program workload says of itself, summed over repetitions.

    `time_ns` is by message, of which there were `messages`; its interval is the cell's estimate `send_time`. `problem`:
    how it ended where it did not go well, and what it said.
    """

    cell: int
    version: str | None
    messages: int
    time_ns: float | None
    functions: list[PeerFunction]
    problem: str | None


class ModelPrediction(_Part):
    """What a model says of a cell, beside what was measured. `value` is null where the model is silent.

    `ratio` is measured / predicted; `inside` whether the prediction lies in the measured interval; `observed` the
    smallest and the largest sample, which is all there is where samples are too few for an interval.
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
    inputs: dict[str, float]
    violated: list[str]
    notes: list[str]
    source: str


class Cell(_Part):
    """One cell: its repetitions together. `attempts` counts those that were run again as well."""

    cell: int
    levels: dict[str, str]
    valid: bool
    reason: str | None
    warnings: list[str]
    repetitions: int
    attempts: int
    n: int
    lost: int
    loss: Interval | None
    outcomes: dict[str, int]
    estimates: dict[str, Metric]
    ledger: Ledger | None
    fidelity: Fidelity | None
    models: list[ModelPrediction]
    profile: Profile | None = None


class PublishedComparison(_Part):
    """A published figure beside ours.

    `ratio` is ours / theirs, `inside` whether theirs lies in our interval, `observed` our smallest and largest sample.
    `functions`: parts of it that the source gives, in `unit`.
    """

    source: str
    metric: str
    statistic: str
    unit: str
    levels: dict[str, str]
    cell: int | None
    theirs: float
    theirs_sd: float | None
    theirs_ci: float | None
    ours: Interval | None
    observed: tuple[float, float] | None
    ratio: float | None
    inside: bool | None
    remark: str
    note: str | None
    functions: dict[str, float] = {}


class LevelComparison(_Part):
    """Two cells that differ in one factor: `other` against `reference`, the factor's first level.

    `p_holm` is corrected within the family: one factor and one metric.
    """

    factor: str
    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int
    metric: str
    unit: str
    difference: Interval
    ratio: Interval
    shift: Interval
    cliffs_delta: Interval
    p: float | None
    p_holm: float | None
    verdict: str


class EquivalencePair(_Part):
    """Two cells that differ in one factor, and whether they differ by more than a margin.

    `effect` is a difference or a ratio (Equivalence), with its interval of level 1 - 2 alpha. `p`: of it being beyond
    the margin, `p_beyond`: of it being within; each corrected by Holm's method over the table.
    """

    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int
    effect: Interval
    p: float | None
    p_holm: float | None
    p_beyond: float | None
    p_beyond_holm: float | None
    verdict: Literal["equivalent", "differs", "cannot tell"]


class Equivalence(_Part):
    """A claim that the levels of `factor` make no difference that matters, tested for every two of them.

    `scale` says what `low` and `high`, the margin around no effect, are: a difference of means in `unit`, or a ratio,
    with the unit 1. `margin` is as the study has it. `alpha`: of each of the two claims, over all pairs together.
    """

    title: str
    metric: str
    factor: str
    margin: str
    scale: Literal["difference", "ratio"]
    unit: str
    low: float
    high: float
    alpha: float
    note: str | None
    pairs: list[EquivalencePair]


class FigurePublished(_Part):
    """A published figure at a point of a drawing, in the drawing's unit. ci: half width."""

    source: str
    value: float
    ci: float | None


class FigurePoint(_Part):
    """One cell in a drawing. `x` is its place (Figure), `x_text` the level as the study has it.

    `estimate` is the mean, the median where no mean can be estimated, or the refused mean; `statistic` says which.
    """

    cell: int
    series: str | None
    x: float
    x_text: str
    statistic: str
    estimate: Interval
    observed: tuple[float, float]
    published: list[FigurePublished]


class FigureCurve(_Part):
    """What a model predicts for the cells of one series, at their own places."""

    series: str | None
    model: str
    label: str
    xs: list[float]
    ys: list[float]


class Figure(_Part):
    """A metric over the levels of a factor, as a study asks for it. Values in `unit`.

    `x` and `series` are keys. Places along x are numbers of `x_unit`: loss in %, the round trip of `path.delay` in ms,
    rates in Mbit/s, sizes in bytes; where `x_unit` is null they only count the levels. `scale` is that of the metric.
    `absent` are cells without a sample, which have no point.
    """

    title: str
    metric: str
    unit: str
    x: str
    x_title: str
    x_unit: str | None
    series: str | None
    scale: Literal["linear", "log"]
    note: str | None
    points: list[FigurePoint]
    curves: list[FigureCurve]
    absent: list[int]


class FitPublished(_Part):
    """Published coefficients beside ours. ratio: ours / theirs; inside: whether theirs lies in our interval."""

    source: str
    a: float | None
    b: float | None
    c: float | None
    b_ratio: float | None
    c_ratio: float | None
    b_inside: bool | None
    c_inside: bool | None
    note: str | None


class FitCurve(_Part):
    """One fitted curve, or the average of several.

    Attributes:
        level: of the factor that tells the curves apart, null without one.
        a, b: in the fit's unit. c: per unit of loss.
        r_squared: share of the differences between the cells' means that the curve explains.
        aicc_straight: AICc of the best straight line less that of the curve: above 0 speaks for the curve.
        shape: "exponential", "straight line" or "undecided", where the two are less than 2 apart; null without a fit.
    """

    level: str | None
    a: Interval
    b: Interval
    c: Interval
    r_squared: float | None
    aicc_straight: float | None
    shape: str | None


class FitRow(FitCurve):
    """The average over the levels of `over`; `series` are the curves averaged."""

    published: list[FitPublished]
    series: list[FitCurve]


class Fit(_Part):
    """A curve fitted to cells: over `x`, once for each level of `over`, a row for each level of `by` (keys all)."""

    title: str
    model: str
    formula: str
    metric: str
    unit: str
    x: str
    by: str
    over: str
    method: str
    published_method: str
    note: str | None
    rows: list[FitRow]


class Result(_Part):
    """Everything a report needs, without samples."""

    schema_: Literal["crosswind.result/1"] = Field(default="crosswind.result/1", alias="schema")
    study: str
    title: str
    valid: bool
    complete: bool
    planned: int
    executed: int
    cells: list[Cell]
    comparisons: list[LevelComparison]
    published: list[PublishedComparison]
    figures: list[Figure] = []
    fits: list[Fit] = []
    equivalences: list[Equivalence] = []
    peers: list[Peer] = []
    notes: list[str]
    warnings: list[str]
    design: dict[str, Any]
    provenance: dict[str, Any]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON text, non-ASCII characters kept."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False, allow_nan=False)


def schema_text() -> str:
    """The JSON Schema of a result, as docs/result.schema.json holds it."""
    schema = Result.model_json_schema(mode="serialization")
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
