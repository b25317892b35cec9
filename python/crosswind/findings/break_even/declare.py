"""`[[break_even]]`: two levels of a factor along another one; the report names where they may take the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from crosswind.findings.declared import (
    DeclaredTable,
    FindingError,
    check_asks,
    check_factors,
    check_fixed,
    check_numeric,
    check_statistic,
    indices_of,
    level_of,
    metric_of,
)
from crosswind.study.cells import Cell, Where, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.tables import OrShare, TomlTable, TomlValue, WhereTable
from crosswind.study.toml_text import Location


class BreakEvenTable(TomlTable):
    """Two levels' break-even along a factor: from which round trip on, up to which size."""

    asks: str = Field(description="the question, as one sentence that ends with ?")
    metric: str = Field(description="what is compared, as of a question; its ratio has to exist")
    statistic: OrShare = Field(default="mean", description="what is compared of it")
    factor: str = Field(description="dotted key of the factor whose two levels are compared, or part")
    compare: list[TomlValue] = Field(description="the two levels: the reference first")
    over: str = Field(description="dotted key of the factor along which they are compared: its levels are numbers")
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are compared"
    )
    note: str = ""


@dataclass(frozen=True)
class BreakEvenDeclaration(DeclaredTable[BreakEvenTable]):
    """A break-even as it was declared. `sides`: the cells of the reference, and of the other level."""

    sides: tuple[Where, Where] = field(kw_only=True)

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return self.table.asks

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of each level's cells."""
        own, table = self.where.among(cells), self.table
        return {
            **table.model_dump(exclude={"compare"}),
            "compare": [{"level": side.texts[table.factor], "cells": indices_of(own, side)} for side in self.sides],
            "where": dict(self.where.texts),
            "cells": [cell.index for cell in own],
        }


def declare(reading: Reading) -> tuple[BreakEvenDeclaration, ...]:
    """A study's break-evens. Raises: FindingError, CellError."""
    return tuple(_break_even(table, place, reading) for place, table in reading.of(BreakEvenTable, "break_even"))


def _break_even(table: BreakEvenTable, place: Location, reading: Reading) -> BreakEvenDeclaration:
    check_asks(table.asks, place)
    metric = metric_of(table.metric, place)
    check_statistic(table.statistic, metric, place)
    if not metric.is_positive:
        message = f"{metric.name} may be 0 or less, of which there is no ratio"
        raise FindingError((*place, "metric"), message, "a time, a rate, a size or a count")
    check_factors({"factor": table.factor, "over": table.over}, place, reading.parts, metric=metric)
    check_numeric(table.over, (*place, "over"))
    where = where_of(table.where, (*place, "where"), reading.parts)
    check_fixed(table.factor, where, place)
    check_fixed(table.over, where, place)
    if len(table.compare) != 2:
        have = "1 level" if len(table.compare) == 1 else f"{len(table.compare)} levels"
        message = f"compare has {have}, and a break-even takes two"
        raise FindingError((*place, "compare"), message, "the reference first")
    reference, other = (
        level_of(table.factor, level, (*place, "compare", at), reading.parts) for at, level in enumerate(table.compare)
    )
    if reference.value_of(table.factor) == other.value_of(table.factor):
        message = f"{other.texts[table.factor]} is compared with itself"
        raise FindingError((*place, "compare", 1), message, "name two levels")
    return BreakEvenDeclaration(where, place, table, sides=(reference, other))


def _check(declared: BreakEvenDeclaration, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses one that no run of these cells could answer. Raises: FindingError."""
    place, table = declared.place, declared.table
    own = declared.where.required(cells(), (*place, "where"))
    metric = metric_of(table.metric, place)
    for at, side in enumerate(declared.sides):
        matching = side.among(own)
        if not matching:
            message = f"no cell has {table.factor} = {side.texts[table.factor]}"
            raise FindingError((*place, "compare", at), message, "name levels of this study")
        endless = [cell.levels[table.over] for cell in matching if _is_endless(cell, table.over)]
        if endless:
            message = f"{table.over} = {endless[0]} is no number"
            raise FindingError((*place, "over"), message, "leave that level out, by where or in the study")
        if len({cell.levels.get(table.over) for cell in matching}) < 2:
            message = f"{table.factor} = {side.texts[table.factor]} has fewer than two levels of {table.over}"
            raise FindingError((*place, "compare", at), message, f"give {table.over} a list of levels")
        if not any(metric.applies(cell.workload) for cell in matching):
            message = f"no cell of it has the metric {metric.name}: it is that of {metric.of_workloads}"
            raise FindingError((*place, "metric"), message, "name a metric of this workload")


def _is_endless(cell: Cell, key: str) -> bool:
    """Whether a cell's level has no place along the factor, as an unlimited rate."""
    return key in cell.levels and cell.settings[key].value is None


DECLARATION = Declaration("break_even", BreakEvenTable, ("break-even", "break-evens"), declare, _check)
