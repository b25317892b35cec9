"""Cells beside each other."""

from pydantic import Field

from crosswind.decisions.interval import Interval, ResultModel

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
