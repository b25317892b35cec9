"""What is wrong with the files of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

NOT_WHAT_WAS_WRITTEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading a file raises that says something else than its format: it was damaged, or somebody else wrote it."""

_SHOWN = 3


@dataclass(frozen=True)
class Damage:
    """A file of a repetition that is not what was written, for which the repetition is left out.

    Attributes: key: of the repetition, empty where none is known to be left out; cell, repetition: which one it is.
        file: its path within the run. reason: what is wrong with it, as it follows its name.
    """

    key: str
    cell: int
    repetition: int
    file: str
    reason: str

    @property
    def text(self) -> str:
        """In words: which file, and what is lost."""
        if not self.key:
            return f"{self.file} {self.reason}"
        return f"{self.file} {self.reason}: repetition {self.repetition + 1} of cell {self.cell} is left out"


class Repeated(Damage):
    """A file with repetitions that the run has in another file too. They count once, and none is left out."""


def left_out(damaged: Sequence[Damage]) -> int:
    """How many repetitions damage leaves out."""
    return len({damage.key for damage in damaged if damage.key})


def damage_texts(damaged: Sequence[Damage]) -> list[str]:
    """What is said of damage, a sentence for each file: of that of a partition, how many repetitions are left out."""
    by_file: dict[tuple[str, str], list[Damage]] = {}
    for damage in damaged:
        by_file.setdefault((damage.file, damage.reason), []).append(damage)
    return [
        lost[0].text if len(lost) == 1 else f"{file} {reason}: {len(lost):,} repetitions are left out"
        for (file, reason), lost in by_file.items()
    ]


def damage_sentences(damaged: Sequence[Damage]) -> list[str]:
    """The same where there may be much of it: of a few files each, and how many more there are."""
    sentences = damage_texts(damaged)
    more = len(sentences) - _SHOWN
    return (
        [*sentences[:_SHOWN], f"{more} more files are damaged: `crosswind verify RUN --files` lists them"]
        if more > 0
        else sentences
    )
