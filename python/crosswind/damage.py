"""What is wrong with the files of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN = 3


@dataclass(frozen=True)
class Damage:
    """A file of a repetition that is not what was written, for which the repetition is left out.

    Attributes: key: of the repetition; cell, repetition: which one it is. file: its path within the run. reason: what
        is wrong with it, as it follows its name.
    """

    key: str
    cell: int
    repetition: int
    file: str
    reason: str

    @property
    def text(self) -> str:
        """In words: which file, and what is lost."""
        return f"{self.file} {self.reason}: repetition {self.repetition + 1} of cell {self.cell} is left out"


def damage_sentences(damaged: Sequence[Damage]) -> list[str]:
    """What is said of damage where there may be much of it: of a few files each, and how many more there are."""
    sentences = [damage.text for damage in damaged[:_SHOWN]]
    more = len(damaged) - _SHOWN
    return (
        [*sentences, f"{more} more files are damaged: `crosswind verify RUN --files` lists them"]
        if more > 0
        else sentences
    )
