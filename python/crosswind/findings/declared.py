"""What a study declares of its findings: how a kind's tables are read, and what all kinds check alike.

Nothing here decides what is measured.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from crosswind.errors import did_you_mean
from crosswind.metrics import LOST, METRICS, SHARE_STATISTIC, Metric, metric_named
from crosswind.quantities import SHARE, Unit
from crosswind.study.cells import Cell, Where, meaning_of
from crosswind.study.errors import DesignError
from crosswind.study.keys import VALUE_TYPES, owner_of
from crosswind.study.levels import text_of
from crosswind.study.parts import Part
from crosswind.study.tables import TomlTable
from crosswind.study.titles import filled_title
from crosswind.study.toml_text import Location
from crosswind.units import NUMBER, shown

_QUANTITY = re.compile(rf"(?P<number>-?{NUMBER}) ?(?P<unit>\S*)")
AnyTable = TypeVar("AnyTable", bound=TomlTable)


class FindingError(DesignError):
    """A finding that names what does not exist, or says nothing."""


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


def of_its_network(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Nothing of a table that is about numbers of the study's network."""
    del table
    return None


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
        is_about_cells: whether its tables are about cells, so that they go with these; else about documents alone.
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
    is_about_cells: bool = True
    metric_key: str = "metric"
    axes: tuple[str, ...] = ("factor",)
    may_be_left_out: bool = False
    over_network: Callable[[Mapping[str, Any]], Mapping[str, Any] | None] = field(default=as_written)
    subject: Callable[[Mapping[str, Any]], tuple[Mapping[str, str], str | None]] = field(default=subject_of)
    with_levels: Callable[[Mapping[str, Any], str, Collection[str]], Mapping[str, Any] | None] = field(
        default=of_all_levels
    )
    split: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] = field(default=whole_table)


def quantity_of(text: str | float) -> tuple[float, str] | None:
    """The number and the unit of "5ms", "-3", 0.5; None where it is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    return None if match is None else (float(match["number"]), match["unit"])


def margin_of(text: str, unit: Unit, place: Location) -> tuple[bool, float]:
    """Whether a margin is a ratio's, and its number: of a difference in `unit`, of a ratio what is above 1.

    Raises: FindingError.
    """
    quantity = quantity_of(text)
    change = None if quantity is None else unit.change(*quantity)
    if change is None:
        raise FindingError(place, f"{shown(text)} is not a margin", f"a number and one of {unit.written_in('%')}")
    is_ratio, margin = change
    if not 0 < margin < (1 if unit is SHARE else math.inf):
        raise FindingError(place, f"{shown(text)} is not a margin", "above 0, and of a share below 100%")
    return is_ratio, margin


def metric_of(name: str, place: Location) -> Metric:
    """The metric with a name, or the share of exchanges lost. Raises: FindingError."""
    metric = metric_named(name)
    if metric is None:
        hint = did_you_mean(name, [*METRICS, LOST.name])
        raise FindingError((*place, "metric"), f"{shown(name)} is not a metric", hint)
    return metric


def measured_metric(name: str, place: Location) -> Metric:
    """The same, of metrics that each exchange has. Raises: FindingError."""
    if name not in METRICS:
        raise FindingError((*place, "metric"), f"{shown(name)} is not a metric", did_you_mean(name, METRICS))
    return METRICS[name]


def check_statistic(statistic: str, metric: Metric, place: Location) -> None:
    """Raises: FindingError for a quantile or a trimmed mean of what has one value a repetition, or a share."""
    if statistic == SHARE_STATISTIC:
        if not metric.is_share:
            message = f"{metric.name} is not a share of exchanges"
            raise FindingError((*place, "statistic"), message, "it is compared by mean, median, p95, ...")
    elif statistic != "mean" and not metric.has_quantiles:
        message = f"{metric.name} has no {statistic} in a repetition"
        raise FindingError((*place, "statistic"), message, "it is compared by its mean")


def level_of(factor: str, level: object, place: Location, parts: Sequence[Part]) -> Where:
    """The cells in which a factor has a level. Raises: CellError."""
    names = [part.name for part in parts if part.name]
    return Where({factor: text_of(level)}, {factor: meaning_of(factor, level, place, names)})


def check_fixed(factor: str, where: Where, place: Location) -> None:
    """Raises: FindingError where the factor whose levels are compared is fixed."""
    if factor in where.texts:
        message = f"{factor} has one value only where {factor} = {where.texts[factor]}"
        raise FindingError((*place, "where"), message, "leave it out: the comparison is between its levels")


def check_factors(keys: Mapping[str, str], place: Location, parts: Sequence[Part]) -> None:
    """Refuses what can never be a factor, and two names for one axis. Raises: FindingError."""
    known = [key for key, kind in VALUE_TYPES.items() if kind.can_vary] + (["part"] if len(parts) > 1 else [])
    seen: dict[str, str] = {}
    for name, key in keys.items():
        if key not in known and not (owner_of(key) and key in VALUE_TYPES and VALUE_TYPES[key].can_vary):
            raise FindingError((*place, name), f"{shown(key)} is not a factor's key", did_you_mean(key, known))
        if key in seen:
            raise FindingError((*place, name), f"{shown(key)} is {seen[key]} already", "name another factor's key")
        seen[key] = name


def about(table: TomlTable, title: str, where: Where, cells: Sequence[Cell]) -> dict[str, Any]:
    """A table with a title as plain data, the title filled in from its cells."""
    return {
        **table.model_dump(exclude_none=True),
        "title": filled_title(title, cells),
        "where": dict(where.texts),
        "cells": [cell.index for cell in cells],
    }


def indices_of(cells: Iterable[Cell], where: Where) -> list[int]:
    """The indices of some cells among others."""
    return [cell.index for cell in where.among(cells)]
