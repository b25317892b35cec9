"""What a study declares of its findings: what it may have of each kind, and how a kind's tables are read.

A kind declares itself; a study keeps what it declared. Nothing here decides what is measured.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeVar

from crosswind.catalog.finding_kinds import of_each_kind
from crosswind.study.cells import Cell
from crosswind.study.parts import Part
from crosswind.study.tables import TomlTable
from crosswind.study.toml_text import Location

MOST_CHARACTERS = 200
"""Of a question, which is one sentence."""

AnyTable = TypeVar("AnyTable", bound=TomlTable)


class Declared(Protocol):
    """One of a study's findings as it was declared."""

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


def no_check(declared: Sequence[Any], cells: Callable[[], Sequence[Cell]], options: Collection[Location]) -> None:
    """That nothing depends on the cells."""
    del declared, cells, options


def as_written(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A table that says the same over any network."""
    return table


def subject_of(table: Mapping[str, Any]) -> tuple[Mapping[str, str], str | None]:
    """The cells that a table, as written, is about, by the levels that they have, and the metric that it names."""
    return table.get("where", {}), table.get("metric")


def of_all_levels(table: Mapping[str, Any], factor: str, levels: Collection[str]) -> Mapping[str, Any] | None:
    """A table that names none of its factors' levels."""
    del factor, levels
    return table


def whole_table(table: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A table that is one."""
    return (table,)


@dataclass(frozen=True)
class Declaration:
    """What a study file may have of a kind.

    Attributes:
        kind: the name of the table. model: its keys. words: what one and several of them are called.
        read: the findings of a study. Raises: DesignError, CellError.
        check: refuses what no run of these cells could answer. Its last argument: places that options have set, since
            levels that were set anew may leave a finding without cells. Raises: DesignError.
        is_bound_to_levels: whether it says something of all levels that its file has, so that it is not shown where a
            run leaves some out.
        metric_key, axes: the keys in which a table names its metric, and factors that it is about as a whole.
        may_be_left_out: whether a table is left out, with a note, where no cell measures its metric; else the study is
            refused there.
        over_network: a table, as written, as it is over a network that is really there; None where it is about numbers
            of the study's own network, which another has not.
        subject: of a table, as written, the levels of its cells and its metric.
        with_levels: a table, as written, that has a factor among its axes, of some of that factor's levels; None where
            it says nothing of so few.
        split: a table, as written, as several, each of which names all levels of its cells in one `where` or `levels`.
    """

    kind: str
    model: type[TomlTable]
    words: tuple[str, str]
    read: Callable[[Reading], Sequence[Any]]
    check: Callable[[Sequence[Any], Callable[[], Sequence[Cell]], Collection[Location]], None] = field(default=no_check)
    is_bound_to_levels: bool = False
    metric_key: str = "metric"
    axes: tuple[str, ...] = ("factor",)
    may_be_left_out: bool = False
    over_network: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = field(default=as_written)
    subject: Callable[[Mapping[str, Any]], tuple[Mapping[str, str], str | None]] = field(default=subject_of)
    with_levels: Callable[[Mapping[str, Any], str, Collection[str]], Mapping[str, Any] | None] = field(
        default=of_all_levels
    )
    split: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = field(default=whole_table)


@cache
def declarations() -> dict[str, Declaration]:
    """What a study file may have of each kind, by its name."""
    return of_each_kind("declare", "DECLARATION")
