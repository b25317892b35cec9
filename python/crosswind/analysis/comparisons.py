"""Levels of a factor against its first level, within cells that are otherwise equal."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import MEAN, LevelComparison, LevelPair, StatisticComparison
from crosswind.catalog.metrics import METRICS, STATISTICS
from crosswind.decisions.families import ALPHA, LEVELS
from crosswind.decisions.judge import adjust_exploratory
from crosswind.stats.design import MIN_UNITS
from crosswind.stats.differences import Side, difference, pairs_of, ratio
from crosswind.stats.effect import PAIRED, ComparedStatistic, Effect, estimate_of, is_constant
from crosswind.stats.estimate import Interval, TooFewSamples, estimated, exactly, refused
from crosswind.stats.ranks import cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.significance import (
    counts_of,
    effect_estimate,
    is_sign_test,
    size_of,
    two_sided_p,
    without_rounding,
)

STATISTICS_BESIDE = ("median",)
"""Statistics by which levels are compared beside the mean where nobody asks for others."""


def compare_levels(
    data: Sequence[CellData], *, level: float, statistics: Sequence[str] = STATISTICS_BESIDE
) -> list[LevelComparison]:
    """Every comparison of a run. They explore: p is corrected over all of them (`LEVELS`).

    Args: statistics: those to compare by beside the mean.
    """
    families: dict[tuple[str, str], list[LevelComparison]] = defaultdict(list)
    beside = tuple(dict.fromkeys(name for name in statistics if name != MEAN))
    for factor, reference, other in pairs_of_levels(data):
        for name in reference.samples:
            if name in other.samples and reference.settings.kind in METRICS[name].compared_in:
                families[factor, name].append(_compare(factor, name, reference, other, level=level, beside=beside))
    return _corrected([comparison for family in families.values() for comparison in family])


def compared_statistic(name: str) -> ComparedStatistic:
    """A statistic by the name that results have, as comparisons take it."""
    statistic = STATISTICS[name]
    if statistic.quantile is not None:
        return statistic.quantile
    return "mean" if statistic.is_mean else "trimmed"


def other_levels(cell: CellData, factor: str) -> dict[str, str]:
    """The levels of a cell but for one factor."""
    return {key: value for key, value in sorted(cell.levels.items()) if key != factor}


def level_pair(factor: str, reference: CellData, other: CellData) -> LevelPair:
    """Two cells that differ in a factor, as results name them."""
    return LevelPair(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
    )


def mean_difference(reference: Side, other: Side, *, level: float) -> Interval:
    """The difference of two cells in the mean, the other's less the reference's, as far as their design supports it."""
    return _by_statistic(reference, other, MEAN, level)[1].difference


def pairs_of_levels(data: Sequence[CellData]) -> Iterator[tuple[str, CellData, CellData]]:
    """Each factor with a cell of its first level and one that differs from it in that factor alone."""
    levels = _levels(data)
    for factor, group in groups_of_levels(data):
        first, *others = levels[factor]
        if first in group:
            yield from ((factor, group[first], group[value]) for value in others if value in group)


def groups_of_levels(data: Sequence[CellData]) -> Iterator[tuple[str, dict[str, CellData]]]:
    """Each factor with several levels, and the cells that differ in it alone, by their level."""
    for factor in _levels(data):
        groups: dict[tuple[tuple[str, str], ...], dict[str, CellData]] = defaultdict(dict)
        for cell in data:
            if factor in cell.levels:
                groups[tuple(other_levels(cell, factor).items())][cell.levels[factor]] = cell
        yield from ((factor, group) for group in groups.values())


def _levels(data: Sequence[CellData]) -> dict[str, list[str]]:
    """Factors with at least two levels, and those levels in the order in which cells have them."""
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
        paired=made is not None and made.how == PAIRED,
        pairs=0 if made is None else made.units,
        shift=estimated(lambda: _shift(*sides, level), n=n, level=level),
        cliffs_delta=estimated(lambda: _delta(*sides, level), n=n, level=level),
        statistics={name_beside: _by_statistic(*sides, name_beside, level)[1] for name_beside in others},
        **dict(mean),
    )


def _by_statistic(reference: Side, other: Side, name: str, level: float) -> tuple[Effect | None, StatisticComparison]:
    """The difference of two cells in a statistic, as far as there is one, and what the result has of it."""
    statistic, n = compared_statistic(name), reference.units.n + other.units.n
    size = size_of(reference, other)
    made: Effect | None = None
    try:
        made = without_rounding(difference(reference, other, statistic), size=size)
        effect = _shown(made, size, level)
    except TooFewSamples as error:
        effect = refused(error.message, n=n, level=level)

    of_most = made is not None and is_sign_test(made, size=size)
    below, above = counts_of(made, size=size) if made is not None and of_most else (None, None)

    return made, StatisticComparison(
        difference=effect,
        ratio=estimated(lambda: _shown(ratio(reference, other, statistic), 1.0, level), n=n, level=level),
        p=None if made is None else two_sided_p(made, size=size),
        p_adjusted=None,
        verdict=_exact_verdict(effect) if effect.is_exact else _untested_verdict(made),
        below=below,
        above=above,
    )


def _shown(effect: Effect, size: float, level: float) -> Interval:
    """An effect of the statistic, with an interval where its design supports one or it is the same in every pair."""
    if is_constant(effect, size=size):
        return effect_estimate(effect, size=size, level=level)
    return estimate_of(effect, level=level)


def _shift(reference: Side, other: Side, level: float) -> Interval:
    """Hodges and Lehmann's shift between the means of repetitions. Raises: TooFewSamples."""
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
    """Cliff's delta between the means of repetitions. Raises: TooFewSamples."""
    a, b = reference.units, other.units
    if reference.exact and other.exact:
        return exactly(float(np.sign(b.means[0] - a.means[0])), n=a.n + b.n, level=level)
    if reference.exact or other.exact:
        raise TooFewSamples("one of the cells is exact: compare the values")
    return cliffs_delta(a.means, b.means, n=a.n + b.n, level=level)


def _untested_verdict(made: Effect | None) -> str:
    """What there is to say without a test: where all repetitions are the same in both cells, no more of them help."""
    is_same = made is not None and made.units >= MIN_UNITS and made.error == 0 and made.value == 0
    return "no difference shown" if is_same else "not enough repetitions"


def _exact_verdict(effect: Interval) -> str:
    """What there is to say of a difference that comes out the same every time."""
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
    """What a corrected p-value says of an effect; nothing where it was not tested."""
    if p_adjusted is None:
        return {}
    verdict = "no difference shown"
    if p_adjusted < ALPHA and effect.below is not None and effect.above is not None:
        verdict = f"{'larger' if effect.above > effect.below else 'smaller'} in most repetitions"
    elif p_adjusted < ALPHA and effect.difference.value is not None:
        verdict = "larger" if effect.difference.value > 0 else "smaller"
    return {"p_adjusted": p_adjusted, "verdict": verdict}
