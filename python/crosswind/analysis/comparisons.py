"""Levels of a factor against its first level, within cells that are otherwise equal."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import Interval, LevelComparison
from crosswind.metrics import METRICS
from crosswind.stats import (
    Estimate,
    Side,
    TooFewSamples,
    benjamini_hochberg,
    cliffs_delta,
    difference,
    estimate_of,
    exactly,
    paired_shift,
    pairs_of,
    ratio,
    refused,
    unpaired_shift,
)
from crosswind.stats.effect import PAIRED

ALPHA = 0.05


def compare_levels(data: Sequence[CellData], *, level: float) -> list[LevelComparison]:
    """Every comparison of a run. They explore: p is corrected by Benjamini and Hochberg's method over all of them."""
    families: dict[tuple[str, str], list[LevelComparison]] = defaultdict(list)
    for factor, reference, other in _pairs(data):
        for name in reference.samples:
            if name in other.samples and reference.settings.kind in METRICS[name].compared_in:
                families[factor, name].append(_compare(factor, name, reference, other, level))
    return _corrected([comparison for family in families.values() for comparison in family])


def other_levels(cell: CellData, factor: str) -> dict[str, str]:
    """The levels of a cell but for one factor."""
    return {key: value for key, value in sorted(cell.levels.items()) if key != factor}


def _pairs(data: Sequence[CellData]) -> Iterator[tuple[str, CellData, CellData]]:
    """Each factor with a cell of its first level and one that differs from it in that factor alone."""
    for factor, values in _levels(data).items():
        groups: dict[tuple[tuple[str, str], ...], dict[str, CellData]] = defaultdict(dict)
        for cell in data:
            if factor in cell.levels:
                groups[tuple(other_levels(cell, factor).items())][cell.levels[factor]] = cell
        for group in groups.values():
            reference = group.get(values[0])
            if reference is not None:
                yield from ((factor, reference, group[value]) for value in values[1:] if value in group)


def _levels(data: Sequence[CellData]) -> dict[str, list[str]]:
    """Factors with at least two levels, and those levels in the order in which cells have them."""
    levels: dict[str, list[str]] = defaultdict(list)
    for cell in data:
        for factor, value in cell.levels.items():
            if value not in levels[factor]:
                levels[factor].append(value)
    return {factor: values for factor, values in levels.items() if len(values) > 1}


def _compare(factor: str, name: str, reference: CellData, other: CellData, level: float) -> LevelComparison:
    unit = METRICS[name].unit.name
    sides = reference.side(name), other.side(name)
    made = difference(*sides)
    n = made.n

    def interval(make: Callable[[], Estimate], of_unit: str) -> Interval:
        try:
            return Interval.of(make())
        except TooFewSamples as error:
            return Interval.of(refused(error.message, n=n, level=level, unit=of_unit))

    effect = interval(lambda: estimate_of(made, unit=unit, level=level), unit)
    return LevelComparison(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        metric=name,
        unit=unit,
        paired=made.how == PAIRED,
        pairs=made.units,
        difference=effect,
        ratio=interval(lambda: estimate_of(ratio(*sides), unit="1", level=level), "1"),
        shift=interval(lambda: _shift(*sides, unit, level), unit),
        cliffs_delta=interval(lambda: _delta(*sides, level), "1"),
        p=made.p,
        p_adjusted=None,
        verdict=_exact_verdict(effect) if effect.is_exact else "not enough repetitions",
    )


def _shift(reference: Side, other: Side, unit: str, level: float) -> Estimate:
    """Hodges and Lehmann's shift between the means of repetitions. Raises: TooFewSamples."""
    a, b = reference.units, other.units
    n = a.n + b.n
    if reference.exact and other.exact:
        return exactly(float(b.means[0] - a.means[0]), n=n, level=level, unit=unit)
    if reference.exact:
        return paired_shift(b.means - a.means.mean(), n=n, unit=unit, level=level)
    if other.exact:
        return paired_shift(b.means.mean() - a.means, n=n, unit=unit, level=level)
    pairs = pairs_of(a, b)
    if pairs is None:
        return unpaired_shift(a.means, b.means, n=n, unit=unit, level=level)
    a, b = a.chosen(pairs), b.chosen(pairs)
    if a.means.size != b.means.size:
        raise TooFewSamples("in a repetition of one of the cells no exchange succeeded")
    return paired_shift(b.means - a.means, n=a.n + b.n, unit=unit, level=level)


def _delta(reference: Side, other: Side, level: float) -> Estimate:
    """Cliff's delta between the means of repetitions. Raises: TooFewSamples."""
    a, b = reference.units, other.units
    if reference.exact and other.exact:
        return exactly(float(np.sign(b.means[0] - a.means[0])), n=a.n + b.n, level=level, unit="1")
    if reference.exact or other.exact:
        raise TooFewSamples("one of the cells is exact: compare the values")
    return cliffs_delta(a.means, b.means, n=a.n + b.n, level=level)


def _exact_verdict(effect: Interval) -> str:
    """What there is to say of a difference that comes out the same every time."""
    if not effect.value:
        return "equal"
    return "larger" if effect.value > 0 else "smaller"


def _corrected(compared: Sequence[LevelComparison]) -> list[LevelComparison]:
    """With corrected p-values and verdicts, where they were tested."""
    p_values = [comparison.p for comparison in compared if comparison.p is not None]
    adjusted = iter(benjamini_hochberg(p_values))
    return [comparison if comparison.p is None else _judged(comparison, next(adjusted)) for comparison in compared]


def _judged(comparison: LevelComparison, p_adjusted: float) -> LevelComparison:
    verdict = "no difference shown"
    if p_adjusted < ALPHA and comparison.difference.value is not None:
        verdict = "larger" if comparison.difference.value > 0 else "smaller"
    return comparison.model_copy(update={"p_adjusted": p_adjusted, "verdict": verdict})
