"""Two cells compared; a factor's levels against its first, within otherwise equal cells."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import MEAN, LevelComparison, LevelPair, StatisticComparison
from crosswind.catalog.metrics import METRICS, SHARE_STATISTIC, STATISTICS
from crosswind.decisions.families import ALPHA, LEVELS
from crosswind.decisions.judge import adjust_exploratory
from crosswind.stats.design import MIN_UNITS
from crosswind.stats.differences import Side, difference, pairs_of, ratio
from crosswind.stats.effect import PAIRED, ComparedStatistic, Effect, estimate_of
from crosswind.stats.estimate import Interval, TooFewSamples, estimated, exactly, refused
from crosswind.stats.ranks import cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.significance import counts_of, effect_estimate, is_sign_test, two_sided_p

STATISTICS_BESIDE = ("median",)
"""Default statistics for level comparisons beside the mean."""


def compare_levels(
    data: Sequence[CellData], *, level: float, statistics: Sequence[str] = STATISTICS_BESIDE
) -> list[LevelComparison]:
    """Every comparison in a run. They explore: p is corrected over all of them (`LEVELS`).

    Args: statistics: those beside the mean.
    """
    families: dict[tuple[str, str], list[LevelComparison]] = defaultdict(list)
    beside = tuple(dict.fromkeys(name for name in statistics if name != MEAN))
    for factor, reference, other in pairs_of_levels(data):
        for name in reference.samples:
            metric = METRICS[name]
            if name in other.samples and reference.settings.kind in metric.compared_in and factor not in metric.within:
                families[factor, name].append(_compare(factor, name, reference, other, level=level, beside=beside))
    return _corrected([comparison for family in families.values() for comparison in family])


def compared_statistic(name: str) -> ComparedStatistic:
    """A statistic for comparisons, by its name in results."""
    if name == SHARE_STATISTIC:
        return "mean"
    statistic = STATISTICS[name]
    if statistic.quantile is not None:
        return statistic.quantile
    return "mean" if statistic.is_mean else "trimmed"


def other_levels(cell: CellData, factor: str) -> dict[str, str]:
    """A cell's levels but for one factor."""
    return {key: value for key, value in sorted(cell.levels.items()) if key != factor}


def level_pair(factor: str, reference: CellData, other: CellData) -> LevelPair:
    """Two cells different in a factor, for results."""
    return LevelPair(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
    )


@dataclass(frozen=True, eq=False)
class Compared:
    """Two cells compared in a statistic.

    Attributes: effect: the other's less the reference's, or their ratio; None where `reason` says why. n: values.
    """

    effect: Effect | None
    reason: str
    n: int
    level: float

    @cached_property
    def estimate(self) -> Interval:
        """The effect with its interval; the median of the pairs where only a sign test judges it."""
        if self.effect is None:
            return refused(self.reason, n=self.n, level=self.level)
        return effect_estimate(self.effect, level=self.level)

    @cached_property
    def of_statistic(self) -> Interval:
        """The statistic's effect, with an interval if its design supports one, or if all pairs are equal."""
        if self.effect is None or self.effect.is_constant:
            return self.estimate
        return estimate_of(self.effect, level=self.level)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every repetition."""
        return self.effect is not None and self.effect.is_constant

    @property
    def of_most(self) -> bool:
        """Whether claims are about most repetitions."""
        return self.effect is not None and is_sign_test(self.effect)

    @property
    def counts(self) -> tuple[int, int]:
        """Pairs with a smaller, and with a larger other."""
        return (0, 0) if self.effect is None else counts_of(self.effect)

    @property
    def pairs(self) -> int:
        """Compared repetitions."""
        return 0 if self.effect is None else self.effect.units


def compared_cells(
    reference: CellData, other: CellData, metric: str, name: str, *, is_ratio: bool, level: float
) -> Compared:
    """The same for cells that may have no such metric. Args: name: the statistic."""
    try:
        sides = reference.side(metric), other.side(metric)
    except TooFewSamples as error:
        return Compared(None, error.message, 0, level)
    return compared(*sides, name, is_ratio=is_ratio, level=level)


def compared(reference: Side, other: Side, name: str, *, is_ratio: bool = False, level: float) -> Compared:
    """Compares two cells in a statistic: levels, a question's cases and two runs alike."""
    n = reference.units.n + other.units.n
    if name in STATISTICS and (few := STATISTICS[name].shortage(min(reference.units.n, other.units.n))):
        return Compared(None, few, n, level)
    try:
        return Compared((ratio if is_ratio else difference)(reference, other, compared_statistic(name)), "", n, level)
    except TooFewSamples as error:
        return Compared(None, error.message, n, level)


def pairs_of_levels(data: Sequence[CellData]) -> Iterator[tuple[str, CellData, CellData]]:
    """Each factor, with a cell at its first level and one different in that factor alone."""
    levels = _levels(data)
    for factor, group in groups_of_levels(data):
        first, *others = levels[factor]
        if first in group:
            yield from ((factor, group[first], group[value]) for value in others if value in group)


def groups_of_levels(data: Sequence[CellData]) -> Iterator[tuple[str, dict[str, CellData]]]:
    """Each factor with several levels, and cells different in it alone, by level."""
    for factor in _levels(data):
        groups: dict[tuple[tuple[str, str], ...], dict[str, CellData]] = defaultdict(dict)
        for cell in data:
            if factor in cell.levels:
                groups[tuple(other_levels(cell, factor).items())][cell.levels[factor]] = cell
        yield from ((factor, group) for group in groups.values())


def _levels(data: Sequence[CellData]) -> dict[str, list[str]]:
    """Factors with at least two levels, and those in the cells' order."""
    levels: dict[str, list[str]] = defaultdict(list)
    for cell in data:
        for factor, value in cell.levels.items():
            if value not in levels[factor]:
                levels[factor].append(value)
    return {factor: values for factor, values in levels.items() if len(values) > 1}


def _compare(
    factor: str, name: str, reference: CellData, other: CellData, *, level: float, beside: Sequence[str]
) -> LevelComparison:
    metric, sides = METRICS[name], (reference.side(name), other.side(name))
    n = sum(side.units.n for side in sides)
    made, mean = _by_statistic(*sides, MEAN, level)
    others = [name_beside for name_beside in beside if metric.has_quantiles]
    return LevelComparison(
        **dict(level_pair(factor, reference, other)),
        metric=name,
        unit=metric.unit.name,
        paired=made.effect is not None and made.effect.how == PAIRED,
        pairs=made.pairs,
        shift=estimated(lambda: _shift(*sides, level), n=n, level=level),
        cliffs_delta=estimated(lambda: _delta(*sides, level), n=n, level=level),
        statistics={name_beside: _by_statistic(*sides, name_beside, level)[1] for name_beside in others},
        **dict(mean),
    )


def _by_statistic(reference: Side, other: Side, name: str, level: float) -> tuple[Compared, StatisticComparison]:
    """Two cells' difference in a statistic, and its form in the result."""
    made = compared(reference, other, name, level=level)
    below, above = made.counts if made.of_most else (None, None)
    return made, StatisticComparison(
        difference=made.of_statistic,
        ratio=compared(reference, other, name, is_ratio=True, level=level).of_statistic,
        p=None if made.effect is None else two_sided_p(made.effect),
        p_adjusted=None,
        verdict=_exact_verdict(made.of_statistic) if made.of_statistic.is_exact else _untested_verdict(made.effect),
        below=below,
        above=above,
    )


def _shift(reference: Side, other: Side, level: float) -> Interval:
    """Hodges and Lehmann's shift between repetitions' means. Raises: TooFewSamples."""
    a, b = reference.units, other.units
    n = a.n + b.n
    if reference.exact and other.exact:
        return exactly(float(b.means[0] - a.means[0]), n=n, level=level)
    if reference.exact:
        return paired_shift(b.means - a.means.mean(), n=n, level=level)
    if other.exact:
        return paired_shift(b.means.mean() - a.means, n=n, level=level)
    pairs = pairs_of(a, b)
    if pairs is None:
        return unpaired_shift(a.means, b.means, n=n, level=level)
    a, b = a.chosen(pairs), b.chosen(pairs)
    if a.means.size != b.means.size:
        raise TooFewSamples("in a repetition of one of the cells no exchange succeeded")
    return paired_shift(b.means - a.means, n=a.n + b.n, level=level)


def _delta(reference: Side, other: Side, level: float) -> Interval:
    """Cliff's delta between repetitions' means. Raises: TooFewSamples."""
    a, b = reference.units, other.units
    if reference.exact and other.exact:
        return exactly(float(np.sign(b.means[0] - a.means[0])), n=a.n + b.n, level=level)
    if reference.exact or other.exact:
        raise TooFewSamples("one of the cells is exact: compare the values")
    return cliffs_delta(a.means, b.means, n=a.n + b.n, level=level)


def _untested_verdict(made: Effect | None) -> str:
    """The verdict without a test: where all repetitions are the same in both cells, more will not help."""
    is_same = made is not None and made.units >= MIN_UNITS and made.error == 0 and made.value == 0
    return "no difference shown" if is_same else "not enough repetitions"


def _exact_verdict(effect: Interval) -> str:
    """The verdict on a difference equal every time."""
    if not effect.value:
        return "equal"
    return "larger" if effect.value > 0 else "smaller"


def _corrected(compared: Sequence[LevelComparison]) -> list[LevelComparison]:
    """With corrected p-values and verdicts, where they were tested."""
    made = [effect for comparison in compared for effect in (comparison, *comparison.statistics.values())]
    judged = map(_judgement, made, adjust_exploratory((effect.p for effect in made), LEVELS))

    def corrected(comparison: LevelComparison) -> LevelComparison:
        update = next(judged)
        others = {name: effect.model_copy(update=next(judged)) for name, effect in comparison.statistics.items()}
        return comparison.model_copy(update={**update, "statistics": others})

    return [corrected(comparison) for comparison in compared]


def _judgement(effect: StatisticComparison, p_adjusted: float | None) -> dict[str, object]:
    """A corrected p-value's verdict on an effect; nothing for an untested one."""
    if p_adjusted is None:
        return {}
    verdict = "no difference shown"
    if p_adjusted < ALPHA and effect.below is not None and effect.above is not None:
        verdict = f"{'larger' if effect.above > effect.below else 'smaller'} in most repetitions"
    elif p_adjusted < ALPHA and effect.difference.value is not None:
        verdict = "larger" if effect.difference.value > 0 else "smaller"
    return {"p_adjusted": p_adjusted, "verdict": verdict}
