"""What the time that one cell's exchanges take longer than another's is spent on."""

from collections.abc import Sequence

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import mean_difference, other_levels, pairs_of_levels
from crosswind.analysis.result.spent import PartOfDifference, SpentDifference
from crosswind.spent import GROUPS, WHOLE

MOST_PAIRS = 500
"""Pairs of cells whose differences are taken apart: nobody reads more."""


def spent_differences(data: Sequence[CellData], *, level: float) -> list[SpentDifference]:
    """Of each pair of cells that differ in one factor, where both tell what their time was spent on."""
    pairs = [pair for pair in pairs_of_levels(data) if all(WHOLE in cell.samples for cell in pair[1:])]
    return [_difference(*pair, level=level) for pair in pairs[:MOST_PAIRS]]


def _difference(factor: str, reference: CellData, other: CellData, *, level: float) -> SpentDifference:
    parts = [
        PartOfDifference(
            group=group.name,
            difference=mean_difference(reference.side(group.metric), other.side(group.metric), "ns", level=level),
        )
        for group in GROUPS
        if any(cell.samples[group.metric].values.any() for cell in (reference, other))
    ]
    return SpentDifference(
        factor=factor,
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        difference=mean_difference(reference.side(WHOLE), other.side(WHOLE), "ns", level=level),
        parts=sorted(parts, key=lambda part: -abs(part.difference.value or 0.0)),
    )
