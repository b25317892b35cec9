"""The breakdown of a time difference between two cells' exchanges."""

from collections.abc import Iterable, Sequence

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared, level_pair, pairs_of_levels
from crosswind.analysis.designs import design_of
from crosswind.analysis.result import MEAN, PartOfDifference, SpentDifference
from crosswind.analysis.samples import repetition_key
from crosswind.catalog import SpentGroup
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.spent import GROUPS, WHOLE
from crosswind.stats.differences import Side
from crosswind.stats.estimate import Interval
from crosswind.stats.repetitions import Repetitions

MOST_PAIRS = 500
"""Pairs of cells with a breakdown: nobody reads more."""


def spent_differences(
    data: Sequence[CellData], asked: Iterable[tuple[str, int, int]], *, level: float
) -> list[SpentDifference]:
    """For each pair of cells different in one factor, both with a time breakdown.

    Args: asked: factor, reference and other for the pairs in questions.
    """
    by_cell = {cell.cell: cell for cell in data}
    of_questions = dict.fromkeys(asked)
    every = {(factor, first.cell, other.cell): None for factor, first, other in pairs_of_levels(data)}
    known = [
        pair for pair in of_questions | every
        if all(cell in by_cell and WHOLE in by_cell[cell].samples for cell in pair[1:])
    ]  # fmt: skip
    return [
        _difference(factor, by_cell[reference], by_cell[other], level=level).model_copy(
            update={"asked": (factor, reference, other) in of_questions}
        )
        for factor, reference, other in known[:MOST_PAIRS]
    ]


def part_side(cell: CellData, part: str) -> Side:
    """One part of the exchanges' time in a cell, ns, for comparisons."""
    runs = [run for run in cell.runs if run.spent.height]
    values = np.concatenate([run.spent[f"{part}_ns"].to_numpy() for run in runs])
    repetitions = np.repeat([run.repetition for run in runs], [run.spent.height for run in runs])
    units = Repetitions.of(values, repetitions, keys=[repetition_key(run) for run in runs])
    return Side(units, design_of(METRICS[WHOLE], cell.settings), cell.is_exact)


def _difference(factor: str, reference: CellData, other: CellData, *, level: float) -> SpentDifference:
    def of(metric: str) -> Interval:
        return compared(reference.side(metric), other.side(metric), MEAN, level=level).of_statistic

    groups = [group for group in GROUPS if any(cell.samples[group.metric].values.any() for cell in (reference, other))]
    made = {group.name: PartOfDifference(group=group.name, difference=of(group.metric)) for group in groups}
    if groups:
        largest = max(groups, key=lambda group: _size(made[group.name].difference))
        made[largest.name] = _with_part(made[largest.name], largest, reference, other, level=level)
    return SpentDifference(
        **dict(level_pair(factor, reference, other)),
        difference=of(WHOLE),
        parts=sorted(made.values(), key=lambda part: -_size(part.difference)),
    )


def _with_part(
    made: PartOfDifference, group: SpentGroup, reference: CellData, other: CellData, *, level: float
) -> PartOfDifference:
    if len(group.parts) == 1:
        return made
    part_differences = {
        part: compared(part_side(reference, part), part_side(other, part), MEAN, level=level).of_statistic
        for part in group.parts
    }
    largest = max(part_differences, key=lambda part: _size(part_differences[part]))
    return made.model_copy(update={"part": largest, "part_difference": part_differences[largest]})


def _size(difference: Interval) -> float:
    return abs(difference.value or 0.0)
