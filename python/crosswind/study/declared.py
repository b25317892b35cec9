"""A study's declared findings: the tables for each kind, and how they are read.

A kind declares itself; a study keeps the declaration. Nothing here decides measurements. One rule for all kinds,
`remaining`, applies edits and absences to a finding.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol, TypeVar, cast

from crosswind.catalog.finding_kinds import of_each_kind
from crosswind.catalog.metrics import MetricPlace, metric_named
from crosswind.study.cells import Cell, Where
from crosswind.study.parts import Part
from crosswind.study.tables import TomlTable
from crosswind.study.toml_text import Location

MOST_CHARACTERS = 200
"""Limit for a question: one sentence."""

AnyTable = TypeVar("AnyTable", bound=TomlTable)


class Declared(Protocol):
    """One finding as declared.

    It may have `where`, its cells, and `named_levels` for its factor.
    """

    @property
    def place(self) -> Location:
        """Where its table stands; several numbers may stand in one."""
        ...

    @property
    def table(self) -> TomlTable:
        """It as it was written."""
        ...

    @property
    def summary(self) -> str:
        """For `crosswind show`; may be empty."""
        ...

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data for its judge, with its cells' indices among `cells`."""
        ...


@dataclass(frozen=True)
class Reading:
    """A study during reading.

    Attributes: tables: by kind. parts: the study's.
    """

    tables: Mapping[str, Sequence[TomlTable]]
    parts: Sequence[Part]

    def of(self, table: type[AnyTable], kind: str) -> list[tuple[Location, AnyTable]]:
        """The tables of a kind with their places."""
        numbered = enumerate(self.tables.get(kind, ()))
        return [((kind, number), each) for number, each in numbered if isinstance(each, table)]


def no_check(finding: Any, cells: Callable[[], Sequence[Cell]]) -> None:
    """For findings independent from the cells."""
    del finding, cells


@dataclass(frozen=True)
class Declaration:
    """One kind's part in a study file.

    Attributes:
        kind: the table's name. model: its keys. words: singular and plural.
        read: makes a study's findings. Raises: DesignError.
        check: refuses one without an answer from these cells. Raises: DesignError.
        may_be_left_out: whether a table without a measuring cell is left out, with a note; else the study is refused.
    """

    kind: str
    model: type[TomlTable]
    words: tuple[str, str]
    read: Callable[[Reading], Sequence[Any]]
    check: Callable[[Any, Callable[[], Sequence[Cell]]], None] = field(default=no_check)
    may_be_left_out: bool = False


@cache
def declarations() -> dict[str, Declaration]:
    """Each kind's declaration, by name."""
    return of_each_kind("declare", "DECLARATION")


def is_of_processors(finding: Declared) -> bool:
    """Whether it is about processor time, unknown in virtual time: computing takes none there."""
    metric = getattr(finding, "metric", None) or getattr(finding.table, "metric", None)
    known = metric_named(metric) if isinstance(metric, str) else metric
    return known is not None and known.place is MetricPlace.PROCESSOR


def unmeasured(findings: Sequence[Declared], run: Sequence[Cell]) -> list[Declared]:
    """Findings about processor time, with all their cells in virtual time, in a study with other findings.

    A threshold is never left out: a study would pass without it.
    """
    virtual = [cell for cell in run if (clock := cell.settings.get("host.clock")) and clock.value == "virtual"]
    asked = [each for each in findings if declarations()[str(each.place[0])].may_be_left_out]
    found = []
    for each in asked if virtual else ():
        where: Where = getattr(each, "where")  # noqa: B009 -- each of these kinds has one
        cells = where.among(run) if is_of_processors(each) else []
        if cells and len(cells) == len(where.among(virtual)):
            found.append(each)
    return found if len(found) < len(asked) else []


def factors_of(finding: Declared) -> tuple[str, ...]:
    """The factors under a finding as a whole."""
    named = (getattr(finding.table, axis, None) for axis in ("factor", "x", "series", "by", "over"))
    return tuple(key for key in named if key is not None)


def keys_named(finding: Declared) -> tuple[str, ...]:
    """Keys with named levels, and factors."""
    where: Where | None = getattr(finding, "where", None)
    return (*(where.texts if where else ()), *factors_of(finding))


def remaining(finding: Declared, design: Sequence[Cell], run: Sequence[Cell]) -> Declared | None:
    """A finding restricted to running cells; None if it goes with its part.

    Without cells in its part, a question stays, and its answer says so; a threshold unable to fail goes, for it would
    decide a status. Levels without a cell in the design are no loss.
    """
    where: Where | None = getattr(finding, "where", None)
    if where is None:
        return finding
    parts = {cell.part for cell in run}
    names_gone = where.texts.get("part", run[0].part) not in parts
    decides_nothing = hasattr(finding.table, "fail_if") and where.among(design) and not where.among(run)
    if names_gone or decides_nothing or ("part" in factors_of(finding) and len(parts) < 2):
        return None
    levels: tuple[Where, ...] = getattr(finding, "named_levels", ())
    kept = tuple(level for level in levels if level.texts.get("part", run[0].part) in parts)
    if getattr(finding.table, "factor", None) == "part" and levels and len(kept) < 2:
        return None
    return finding if kept == levels else replace(cast(Any, finding), named_levels=kept)
