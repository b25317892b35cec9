"""What the differences between cells are made of."""

from pydantic import Field

from crosswind.analysis.result.comparisons import LevelPair
from crosswind.decisions.interval import Interval, ResultModel


class PartOfDifference(ResultModel):
    """By how much more of one thing the other cell's exchanges have, ns.

    Attributes: group: of what (crosswind.catalog.spent). part, part_difference: of the largest group its largest part,
        where it has several.
    """

    group: str
    difference: Interval
    part: str | None = Field(default=None)
    part_difference: Interval | None = Field(default=None)


class SpentDifference(LevelPair):
    """What the time that exchanges of one cell take longer than those of another is spent on.

    Attributes:
        difference: of the whole time, ns: its mean in the other cell less that in the reference.
        parts: what it is the sum of, the largest first; none that is 0 in both cells.
        asked: whether a question compares the two.
    """

    difference: Interval
    parts: list[PartOfDifference]
    asked: bool = Field(default=False)
