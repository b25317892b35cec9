"""What a study declares of its findings: what it may have of each kind, and how a kind's tables are read.

A kind declares itself; a study keeps what it declared. Nothing here decides what is measured. What an edit or an
absence does to a finding is one rule for all kinds: `remaining`.
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
"""Of a question, which is one sentence."""

AnyTable = TypeVar("AnyTable", bound=TomlTable)


class Declared(Protocol):
    """One of a study's findings as it was declared.

    It may have `where`, the cells that it is about, and `named_levels` of its factor.
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
        """What `crosswind show` says of it; may be empty."""
        ...

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, the stored form that its judge reads, with the indices of its cells among `cells`."""
        ...


@dataclass(frozen=True)
class Reading:
    """A study that is being read.

    Attributes: tables: of each kind of finding, by its name. parts: of the study.
    """

    tables: Mapping[str, Sequence[TomlTable]]
    parts: Sequence[Part]

    def of(self, table: type[AnyTable], kind: str) -> list[tuple[Location, AnyTable]]:
        """The tables of a kind with their places."""
        numbered = enumerate(self.tables.get(kind, ()))
        return [((kind, number), each) for number, each in numbered if isinstance(each, table)]


def no_check(finding: Any, cells: Callable[[], Sequence[Cell]]) -> None:
    """That nothing depends on the cells."""
    del finding, cells


@dataclass(frozen=True)
class Declaration:
    """What a study file may have of a kind.

    Attributes:
        kind: the name of the table. model: its keys. words: what one and several of them are called.
        read: the findings of a study. Raises: DesignError.
        check: refuses one that no run of these cells could answer. Raises: DesignError.
        may_be_left_out: whether a table is left out, with a note, where no cell measures its metric; else the study is
            refused there.
    """

    kind: str
    model: type[TomlTable]
    words: tuple[str, str]
    read: Callable[[Reading], Sequence[Any]]
    check: Callable[[Any, Callable[[], Sequence[Cell]]], None] = field(default=no_check)
    may_be_left_out: bool = False


@cache
def declarations() -> dict[str, Declaration]:
    """What a study file may have of each kind, by its name."""
    return of_each_kind("declare", "DECLARATION")


def is_of_processors(finding: Declared) -> bool:
    """Whether it is about processor time, which virtual time does not measure: there computing takes no time."""
    metric = getattr(finding, "metric", None) or getattr(finding.table, "metric", None)
    known = metric_named(metric) if isinstance(metric, str) else metric
    return known is not None and known.place is MetricPlace.PROCESSOR


def unmeasured(findings: Sequence[Declared], run: Sequence[Cell]) -> list[Declared]:
    """Those about processor time of cells that are all in virtual time, where a study asks for more.

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
    """The factors that a finding is about as a whole."""
    named = (getattr(finding.table, axis, None) for axis in ("factor", "x", "series", "by", "over"))
    return tuple(key for key in named if key is not None)


def keys_named(finding: Declared) -> tuple[str, ...]:
    """The keys of which it names levels, or that are its factors."""
    where: Where | None = getattr(finding, "where", None)
    return (*(where.texts if where else ()), *factors_of(finding))


def remaining(finding: Declared, design: Sequence[Cell], run: Sequence[Cell]) -> Declared | None:
    """A finding as it is about those cells of a design that are run; None where it goes with its part.

    Without cells of its part, what is asked stays, and its answer says what is missing; a threshold that could not fail
    goes, for it would decide a status. Levels of which the design has no cell are not its loss.
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
