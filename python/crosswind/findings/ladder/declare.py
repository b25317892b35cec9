"""`[[ladder]]`: a factor's levels as rungs, the best first; the report names the breaking rung."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from crosswind.findings.declared import DeclaredTable, FindingError, check_factors, indices_of
from crosswind.study.cells import Cell, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.precision import main_metric
from crosswind.study.tables import TomlTable, WhereTable
from crosswind.study.toml_text import Location


class LadderTable(TomlTable):
    """Levels of a factor as the rungs of a ladder: where exchanges fail, thresholds are missed and answers turn."""

    factor: str = Field(
        default="path.network", description="dotted key of the factor whose levels are the rungs, the best first"
    )
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are meant"
    )
    note: str = ""


@dataclass(frozen=True)
class LadderDeclaration(DeclaredTable[LadderTable]):
    """A ladder as it was declared. `rungs`: the levels of its factor, in their order."""

    rungs: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return f"where it breaks on {self.table.factor} = {', '.join(self.rungs)}"

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with its cells' indices, and their workload kinds' metrics."""
        matching = self.where.among(cells)
        metrics = {cell.index: metric for cell in matching if (metric := main_metric(cell.workload)) is not None}
        return {
            "factor": self.table.factor,
            "rungs": list(self.rungs),
            "note": self.table.note,
            "cells": indices_of(matching, self.where),
            "metrics": {str(index): metric for index, metric in metrics.items()},
        }


def declare_ladders(reading: Reading) -> tuple[LadderDeclaration, ...]:
    """A study's ladders. Raises: FindingError, CellError."""
    return tuple(_ladder(table, place, reading) for place, table in reading.of(LadderTable, "ladder"))


def _ladder(table: LadderTable, place: Location, reading: Reading) -> LadderDeclaration:
    check_factors({"factor": table.factor}, place, reading.parts)
    rungs = dict.fromkeys(level for part in reading.parts for level in part.factors.get(table.factor, ()))
    where = where_of(table.where, (*place, "where"), reading.parts)
    return LadderDeclaration(where, place, table, rungs=tuple(rungs))


def _check(ladder: LadderDeclaration, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses a ladder without rungs. Raises: FindingError."""
    del cells
    if len(ladder.rungs) < 2:
        factor = ladder.table.factor
        message = f"{factor} is no factor of this study"
        hint = f"write its levels as a list, the best first; or run the study with --ladder without {factor}"
        raise FindingError((*ladder.place, "factor"), message, hint)


DECLARATION = Declaration("ladder", LadderTable, ("ladder", "ladders"), declare_ladders, _check)
