"""One pass over a study's combinations: exclusions, repetitions, idle tables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.study.cells import RepetitionLimit, Where, combinations_of, repetitions_of
from crosswind.study.errors import DesignError
from crosswind.study.format import DesignDocument
from crosswind.study.parts import Part
from crosswind.study.precision import Precision, most_repetitions
from crosswind.study.toml_text import Location

MAX_RUNS = 1_000_000


@dataclass(frozen=True)
class Exclusion:
    """Excluded combinations.

    Attributes: reason: a sentence or none. matched: their number, among `of` in all.
    """

    where: Where
    reason: str
    matched: int
    of: int

    @property
    def text(self) -> str:
        """Levels and reason."""
        levels = " and ".join(f"{key} = {text}" for key, text in self.where.texts.items())
        reason = f" ({self.reason.strip().removesuffix('.')})" if self.reason.strip() else ""
        return f"{self.matched} of {self.of} combinations: {levels}{reason}"

    def as_dict(self) -> dict[str, object]:
        """The same as plain data."""
        return {"where": dict(self.where.texts), "reason": self.reason, "combinations": self.matched}


@dataclass(frozen=True)
class CellCounts:
    """The outcome.

    Attributes: cells: number left. exclusions: effective ones. idle: places with ineffective tables.
    """

    cells: int
    exclusions: tuple[Exclusion, ...]
    idle: tuple[Location, ...]

    def refuse_idle(self, document: DesignDocument) -> None:
        """Raises: DesignError for the first ineffective table."""
        for name, number in self.idle:
            table = getattr(document, str(name))[number]
            levels = ", ".join(f"{key} = {text}" for key, text in table.where.items())
            what = "combination" if name == "exclude" else "cell"
            hint = "write levels of this study, or leave out the table"
            raise DesignError((name, number, "where"), f"no {what} has {levels}", hint)


def census_of(
    document: DesignDocument,
    parts: tuple[Part, ...],
    excluded: Sequence[Where],
    limits: Sequence[RepetitionLimit],
    precisions: Sequence[Precision],
) -> CellCounts:
    """Makes every combination once. Args: excluded: by `[[exclude]]`. Raises: DesignError."""
    most = most_repetitions(document) if precisions else document.study.repetitions
    cells = runs = 0
    matched: Counter[int] = Counter()
    used: set[int] = set()
    for cell in combinations_of(parts):
        fitting = [number for number, where in enumerate(excluded) if where.matches(cell)]
        matched.update(fitting)
        if fitting:
            continue
        cells += 1
        runs += repetitions_of(cell, most, limits)
        used |= {number for number, limit in enumerate(limits) if number not in used and limit.where.matches(cell)}
    combinations = sum(map(len, parts))
    if not cells:
        hint = "a cell is excluded when all keys of one where fit it; leave out a table, or add a key to it"
        all_of_them = f"all {combinations} combinations are" if combinations > 1 else "the one combination is"
        raise DesignError(("exclude", 0), f"{all_of_them} excluded", hint)
    if runs > MAX_RUNS:
        raise DesignError(
            ("study", "repetitions"),
            f"study.repetitions: the study has {runs:,} runs",
            f"at most {MAX_RUNS:,}; take fewer repetitions or levels",
        )
    idle: list[Location] = [("exclude", number) for number in range(len(excluded)) if not matched[number]]
    idle += [("repetitions", number) for number in range(len(limits)) if number not in used]
    exclusions = (
        Exclusion(where, table.reason, matched[number], combinations)
        for number, (where, table) in enumerate(zip(excluded, document.exclude, strict=True))
        if matched[number]
    )
    return CellCounts(cells, tuple(exclusions), tuple(idle))
