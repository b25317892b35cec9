"""Levels of a factor against its first level, within cells that are otherwise equal."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from crosswind.analysis.cells import CellData
from crosswind.analysis.estimates import estimate_or_reason, mean_of
from crosswind.analysis.result import Interval, LevelComparison
from crosswind.metrics import METRICS
from crosswind.stats import (
    EXACT,
    Estimate,
    Resampled,
    cliffs_delta,
    difference_of_means,
    hodges_lehmann,
    holm,
    ratio_of_means,
)

ALPHA = 0.05


def compare_levels(data: Sequence[CellData], *, level: float) -> list[LevelComparison]:
    """Every comparison of a run, Holm-corrected within each family: one factor and one metric."""
    families: dict[tuple[str, str], list[LevelComparison]] = defaultdict(list)
    for factor, reference, other in _pairs(data):
        for name in reference.samples:
            if name in other.samples and reference.settings.kind in METRICS[name].compared_in:
                families[factor, name].append(_compare(factor, name, reference, other, level))
    return [comparison for family in families.values() for comparison in _corrected(family)]


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
    a, b = reference.samples[name].values, other.samples[name].values

    def interval(make: Callable[[], Estimate], method: str, of_unit: str) -> Interval:
        return Interval.of(estimate_or_reason(make, n=a.size + b.size, level=level, method=method, unit=of_unit))

    def means() -> tuple[Resampled, Resampled]:
        return mean_of(reference.resampled[name]), mean_of(other.resampled[name])

    p_values: list[float | None] = []

    def difference() -> Estimate:
        made = difference_of_means(*means(), unit=unit, level=level)
        p_values.append(made.p)
        return made.estimate

    exact = reference.is_exact, other.is_exact
    made = interval(difference, "difference of means", unit)
    return LevelComparison(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        metric=name,
        unit=unit,
        difference=made,
        ratio=interval(lambda: ratio_of_means(*means(), level=level).estimate, "ratio of means", "1"),
        shift=_between_samples(
            interval(
                lambda: hodges_lehmann(a, b, unit=unit, level=level, tested=False).estimate, "Hodges-Lehmann", unit
            ),
            exact,
        ),
        cliffs_delta=_between_samples(interval(lambda: cliffs_delta(a, b, level=level), "Cliff's delta", "1"), exact),
        p=p_values[0] if p_values else None,
        p_holm=None,
        verdict=_exact_verdict(made) if made.is_exact else "not enough samples",
    )


def _between_samples(estimate: Interval, exact: tuple[bool, bool]) -> Interval:
    """An effect that is counted between samples: exact between two exact cells, and refused beside a single one.

    Its interval takes the samples of both cells for random ones.
    """
    if not any(exact) or estimate.value is None:
        return estimate
    if all(exact):
        return estimate.model_copy(update={"low": None, "high": None, "method": EXACT})
    nothing = {"value": None, "low": None, "high": None}
    return estimate.model_copy(update={**nothing, "reason": "one of the cells is exact: compare the values"})


def _exact_verdict(difference: Interval) -> str:
    """What there is to say of a difference that comes out the same every time."""
    if not difference.value:
        return "equal"
    return "larger" if difference.value > 0 else "smaller"


def _corrected(family: Sequence[LevelComparison]) -> list[LevelComparison]:
    """The comparisons of a family with corrected p-values and verdicts, where they were tested."""
    p_values = iter(holm([comparison.p for comparison in family if comparison.p is not None]))
    return [comparison if comparison.p is None else _judged(comparison, next(p_values)) for comparison in family]


def _judged(comparison: LevelComparison, p_holm: float) -> LevelComparison:
    verdict = "no difference shown"
    if p_holm < ALPHA and comparison.difference.value is not None:
        verdict = "larger" if comparison.difference.value > 0 else "smaller"
    return comparison.model_copy(update={"p_holm": p_holm, "verdict": verdict})
