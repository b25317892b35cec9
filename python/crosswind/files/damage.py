"""Damage in a run's files."""

from collections.abc import Sequence
from dataclasses import dataclass

NOT_WHAT_WAS_WRITTEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors from reading a file in another format: damaged, or written by somebody else."""

_SHOWN = 3


@dataclass(frozen=True)
class Damage:
    """A changed file in a repetition; the repetition is left out.

    Attributes: key: the repetition's, empty if none is known to be left out; cell, repetition: its numbers. file: its
        path within the run. reason: the fault, as it follows the file's name.
    """

    key: str
    cell: int
    repetition: int
    file: str
    reason: str

    @property
    def text(self) -> str:
        """In words: the file, and the loss."""
        if not self.key:
            return f"{self.file} {self.reason}"
        return f"{self.file} {self.reason}: repetition {self.repetition + 1} of cell {self.cell} is left out"


class Repeated(Damage):
    """A file with repetitions also in another file. They count once, and none is left out."""


def left_out(damaged: Sequence[Damage]) -> int:
    """How many repetitions damage leaves out."""
    return len({damage.key for damage in damaged if damage.key})


def damage_texts(damaged: Sequence[Damage]) -> list[str]:
    """A sentence for each damaged file: for a partition, the number of repetitions left out."""
    by_file: dict[tuple[str, str], list[Damage]] = {}
    for damage in damaged:
        by_file.setdefault((damage.file, damage.reason), []).append(damage)
    return [
        lost[0].text if len(lost) == 1 else f"{file} {reason}: {len(lost):,} repetitions are left out"
        for (file, reason), lost in by_file.items()
    ]


def damage_sentences(damaged: Sequence[Damage]) -> list[str]:
    """The same for much damage: a few files, and the number of others."""
    sentences = damage_texts(damaged)
    more = len(sentences) - _SHOWN
    return (
        [*sentences[:_SHOWN], f"{more} more files are damaged: `crosswind verify RUN --files` lists them"]
        if more > 0
        else sentences
    )
