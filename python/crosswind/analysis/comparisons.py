"""Levels of a factor against its first level, within cells that are otherwise equal."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from crosswind.analysis.cells import CellData, attempt, mean_of
from crosswind.analysis.metrics import METRICS, is_compared
from crosswind.analysis.result import Interval, LevelComparison
from crosswind.stats import (
    Comparison,
    Estimate,
    cliffs_delta,
    difference_of_means,
    hodges_lehmann,
    holm,
    ratio_of_means,
)

ALPHA = 0.05


def compare_levels(data: list[CellData], *, level: float) -> list[LevelComparison]:
    """Every comparison of a run, Holm-corrected within each family: one factor and one metric."""
    families: dict[tuple[str, str], list[LevelComparison]] = defaultdict(list)
    for factor, reference, other in _pairs(data):
        for name in reference.samples:
            if name in other.samples and is_compared(METRICS[name], reference.workload):
                families[factor, name].append(_compare(factor, name, reference, other, level))
    return [one for family in families.values() for one in _corrected(family)]


def factors_of(data: list[CellData]) -> dict[str, list[str]]:
    """Factors with at least two levels, and those levels in the order in which cells have them."""
    levels: dict[str, list[str]] = defaultdict(list)
    for one in data:
        for factor, value in one.levels.items():
            if value not in levels[factor]:
                levels[factor].append(value)
    return {factor: values for factor, values in levels.items() if len(values) > 1}


def _pairs(data: list[CellData]) -> Iterator[tuple[str, CellData, CellData]]:
    for factor, values in factors_of(data).items():
        groups: dict[tuple[tuple[str, str], ...], dict[str, CellData]] = defaultdict(dict)
        for one in data:
            if factor in one.levels:
                groups[tuple(fixed_of(one, factor).items())][one.levels[factor]] = one
        for group in groups.values():
            reference = group.get(values[0])
            if reference is None:
                continue
            yield from ((factor, reference, group[value]) for value in values[1:] if value in group)


def fixed_of(one: CellData, factor: str) -> dict[str, str]:
    """The levels of a cell but for one factor."""
    return {key: value for key, value in sorted(one.levels.items()) if key != factor}


def _compare(factor: str, name: str, reference: CellData, other: CellData, level: float) -> LevelComparison:
    unit = METRICS[name].unit
    a, b = reference.samples[name].values, other.samples[name].values
    p_values: list[float | None] = []

    def interval(make: Callable[[], Comparison], method: str, part_unit: str) -> Interval:
        def unwrap() -> Estimate:
            made = make()
            p_values.append(made.p)
            return made.estimate

        return Interval.of(attempt(unwrap, n=a.size + b.size, level=level, method=method, unit=part_unit))

    def means(make: Callable[..., Comparison], **arguments: str) -> Comparison:
        pair = mean_of(reference.resampled[name]), mean_of(other.resampled[name])
        return make(*pair, level=level, **arguments)

    difference = interval(lambda: means(difference_of_means, unit=unit), "difference of means", unit)
    p = p_values[0] if p_values else None
    return LevelComparison(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=fixed_of(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        metric=name,
        unit=unit,
        difference=difference,
        ratio=interval(lambda: means(ratio_of_means), "ratio of means", "1"),
        shift=interval(lambda: hodges_lehmann(a, b, unit=unit, level=level, tested=False), "Hodges-Lehmann", unit),
        cliffs_delta=Interval.of(
            attempt(
                lambda: cliffs_delta(a, b, level=level),
                n=a.size + b.size,
                level=level,
                method="Cliff's delta",
                unit="1",
            )
        ),
        p=p,
        p_holm=None,
        verdict="not enough samples",
    )


def _corrected(family: list[LevelComparison]) -> list[LevelComparison]:
    tested = [one for one in family if one.p is not None]
    adjusted = dict(zip((id(one) for one in tested), holm([one.p or 0.0 for one in tested]), strict=True))
    return [
        one.model_copy(update={"p_holm": adjusted[id(one)], "verdict": _verdict(one, adjusted[id(one)])})
        if id(one) in adjusted
        else one
        for one in family
    ]


def _verdict(one: LevelComparison, p: float) -> str:
    if p >= ALPHA or one.difference.value is None:
        return "no difference shown"
    return "larger" if one.difference.value > 0 else "smaller"
