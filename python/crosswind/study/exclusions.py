"""Combinations of levels that a study leaves out: `[[exclude]]`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.study.cells import Where, where_of
from crosswind.study.format import StudyDocument
from crosswind.study.parts import Part


@dataclass(frozen=True)
class Exclusion:
    """Some of the combinations that a study's levels make, which are no cells of it.

    Attributes: reason: why, a sentence or none. matched: how many combinations they are, of `of` in all.
    """

    where: Where
    reason: str
    matched: int
    of: int

    @property
    def text(self) -> str:
        """What is left out, and why."""
        levels = " and ".join(f"{key} = {text}" for key, text in self.where.texts.items())
        reason = f" ({self.reason.strip().removesuffix('.')})" if self.reason.strip() else ""
        return f"{self.matched} of {self.of} combinations: {levels}{reason}"

    def as_dict(self) -> dict[str, object]:
        """The same as plain data."""
        return {"where": dict(self.where.texts), "reason": self.reason, "combinations": self.matched}


def wheres_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Where, ...]:
    """The combinations that each table leaves out. Raises: CellError."""
    return tuple(
        where_of(table.where, ("exclude", number, "where"), parts) for number, table in enumerate(document.exclude)
    )


def exclusions_of(document: StudyDocument, parts: Sequence[Part], matched: Mapping[int, int]) -> tuple[Exclusion, ...]:
    """What a study leaves out. Args: matched: how many combinations each table fits, by its place."""
    combinations = sum(map(len, parts))
    return tuple(
        Exclusion(where, document.exclude[number].reason, matched[number], combinations)
        for number, where in enumerate(wheres_of(document, parts))
    )
