"""What the differences between cells are made of."""

from crosswind.analysis.result.estimates import Interval, ResultModel


class PartOfDifference(ResultModel):
    """By how much more of one thing the other cell's exchanges have, ns. `group`: of what (crosswind.spent)."""

    group: str
    difference: Interval


class SpentDifference(ResultModel):
    """What the time that exchanges of one cell take longer than those of another is spent on.

    Attributes:
        factor, reference, other, fixed: the two cells, as of comparisons. reference_cell, other_cell: their indexes.
        difference: of the whole time, ns: its mean in the other cell less that in the reference.
        parts: what it is the sum of, the largest first; none that is 0 in both cells.
    """

    factor: str
    reference: str
    other: str
    fixed: dict[str, str]
    reference_cell: int
    other_cell: int
    difference: Interval
    parts: list[PartOfDifference]
