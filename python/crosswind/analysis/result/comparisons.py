"""Cells beside each other, and beside numbers that a document published."""

from typing import Literal

from pydantic import Field

from crosswind.analysis.result.estimates import Interval, ResultModel

MEAN = "mean"
"""The statistic that cells always are compared by."""


class StatisticComparison(ResultModel):
    """By how much a statistic of two cells differs: `other` less `reference`, and `other` by `reference`.

    A quantile is the mean of those of the repetitions. `p`: of no difference at all. `p_adjusted`: by Benjamini and
    Hochberg's method over all comparisons of the run, which explore; a claim that is tested is an equivalence. Of two
    exact cells the effects are exact and there is no p; beside one exact cell, the interval is that of the other.
    `below`, `above`: where the design supports no interval, in how many pairs of repetitions `other` is less and more;
    then p is that of their sign test, and the verdict is about most repetitions.
    """

    difference: Interval
    ratio: Interval
    p: float | None
    p_adjusted: float | None
    verdict: str
    below: int | None = Field(default=None)
    above: int | None = Field(default=None)


class LevelComparison(StatisticComparison):
    """Two cells that differ in one factor: `other` against `reference`, the factor's first level.

    `difference` to `verdict` are of the mean; `statistics` has the same of others, by name, as far as the metric can
    have them: the median, unless the study asks for others. `paired`: whether repetition by repetition, as cells of one
    run are. `pairs`: how many repetitions were compared.
    """

    factor: str
    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int
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


class EquivalencePair(ResultModel):
    """Two cells that differ in one factor, and whether they differ by more than a margin.

    `effect` is a difference or a ratio (EquivalenceClaim), with its interval of level 1 - 2 alpha. `p`: of it being
    beyond the margin, `p_beyond`: of it being within; each corrected by Holm's method over all claims of the
    study. An exact effect has no p. `of_most`: whether p is that of a sign test, the verdict is about most repetitions
    and `effect` is the median of the pairs. `constant`: whether all repetitions have the same effect; then
    `exceptions_at_most` is the share of them that may have another effect,
    with 95 % confidence, and `needed` the repetitions that would decide, where they are too few.
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
    of_most: bool = False
    constant: bool = False
    exceptions_at_most: float | None = None
    needed: int | None = None
    verdict: Literal["equivalent", "differs", "cannot tell"]


class EquivalenceClaim(ResultModel):
    """A claim that the levels of `factor` make no difference that matters, tested for every two of them.

    `scale` says what `low` and `high`, the margin around no effect, are: a difference of the statistic in `unit`, or a
    ratio, with the unit 1. `margin` is as the study has it. `alpha`: of each of the two claims, over all pairs
    together. `reason`: which cells that it was declared for the run does not have, so that the claim as a whole is not
    shown; null where it has all.
    """

    title: str
    metric: str
    statistic: str = "mean"
    factor: str
    margin: str
    scale: Literal["difference", "ratio"]
    unit: str
    low: float
    high: float
    alpha: float
    note: str | None
    reason: str | None = None
    pairs: list[EquivalencePair]


class PublishedComparison(ResultModel):
    """A published number beside ours.

    `ratio` is ours / theirs, `inside` whether theirs lies in our interval, `observed` our smallest and largest sample.
    `functions`: the functions of a program among which the source divides it, in `unit`.
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
    functions: dict[str, float] = Field(default={})
