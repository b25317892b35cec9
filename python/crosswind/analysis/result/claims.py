"""Statements of documents, and whether the data bear them out."""

from typing import Literal

from crosswind.analysis.result.estimates import Interval, ResultModel

ClaimVerdict = Literal["holds", "does not hold", "cannot tell"]


class ClaimPart(ResultModel):
    """One number that a claim is about: of a cell, of two cells that differ in its factor alone, or of all its cells.

    `other` is compared with `reference`, levels of the factor; both null for a rule about single cells. `fixed`: the
    other levels. `effect`: the number with its interval of 95 %; in `low` to `high` it is to lie, or outside
    (ClaimResult). `violated`: assumptions of the claim's model that the cell breaks.
    """

    reference: str | None
    other: str | None
    fixed: dict[str, str]
    cells: list[int]
    effect: Interval
    verdict: ClaimVerdict
    violated: list[str]


class ClaimResult(ResultModel):
    """A statement of a document, its rule, and what the data say of it.

    It holds where every part holds: the whole interval of 95 % lies within the range. It does not hold where some part
    does not: the whole interval of that part, at the level 1 - 0.05 / parts, lies outside. Else nobody can tell.
    low, high: the range of the parts' effects, in `unit`, null where it has no such end; an end of it belongs to it,
    except that of `rises` and `falls`. inside: whether the effect is to lie in the range, or outside it. reason: why
    there are no parts, or which cells that it was declared for the run does not have, so that it does not hold.
    """

    says: str
    source: str
    metric: str
    statistic: str
    rule: str
    factor: str | None
    model: str | None
    scale: Literal["value", "difference", "ratio", "exponent", "slope", "error"]
    unit: str
    low: float | None
    high: float | None
    inside: bool
    verdict: ClaimVerdict
    parts: list[ClaimPart]
    reason: str | None
    note: str | None
