"""`[[fit]]`: a curve over a factor's levels, with a result for each level of another one."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from crosswind.findings.declared import (
    DeclaredTable,
    FindingError,
    check_factors,
    indices_of,
    level_of,
    measured_metric,
)
from crosswind.study.cells import Cell, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.levels import text_of
from crosswind.study.tables import TomlTable, WhereTable
from crosswind.study.titles import check_title
from crosswind.study.toml_text import Location
from crosswind.text.quantities import TIME


class FitPublishedTable(TomlTable):
    """The published coefficients of one fitted curve."""

    source: str = Field(description="the document and its table")
    level: str | int | float | bool = Field(description="the level of `by` they belong to")
    a: float | None = None
    b: float | None = None
    c: float | None = None
    note: str = ""


class FitTable(TomlTable):
    """One curve that is fitted to the cells, with a result for each level of a factor."""

    title: str = Field(description="shown above the results")
    model: Literal["caia-exponential"] = Field(description="caia-exponential: t = a + b e^(c p), p the loss")
    metric: str = Field(description="what is fitted, as of a published number")
    x: str = Field(description="dotted key of the factor along the curve: path.loss, or that of one direction")
    by: str = Field(description="dotted key of the factor that has a result for each level")
    over: str = Field(description="dotted key of the factor whose levels are fitted one by one, and then averaged")
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are fitted"
    )
    note: str = ""
    published: list[FitPublishedTable] = Field(default_factory=list)


class FitDeclaration(DeclaredTable[FitTable]):
    """One curve to fit, once for each level of `over`; published coefficients belong to `named_levels` of `by`."""

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with its cells' indices among `cells`, and each published level's among those."""
        matching = self.where.among(cells)
        plain = super().as_dict(cells)
        levels = {level.texts[self.table.by]: level for level in self.named_levels}
        published = [
            {**entry, "level": text, "cells": indices_of(matching, levels[text])}
            for entry in plain["published"]
            if (text := text_of(entry["level"])) in levels
        ]
        return {**plain, "published": published}


def declare_fits(reading: Reading) -> tuple[FitDeclaration, ...]:
    """A study's curves, including those with constant factors. Raises: FindingError, CellError."""
    return tuple(_fit(table, place, reading) for place, table in reading.of(FitTable, "fit"))


def _fit(table: FitTable, place: Location, reading: Reading) -> FitDeclaration:
    check_title(table.title, (*place, "title"))
    if measured_metric(table.metric, place).unit is not TIME:
        raise FindingError((*place, "metric"), f"{table.metric} is not a time", "caia-exponential fits times only")
    check_factors({"x": table.x, "by": table.by, "over": table.over}, place, reading.parts)
    if not table.x.endswith(".loss"):
        raise FindingError((*place, "x"), f"{table.x} is not a loss", "caia-exponential is a curve over path.loss")
    levels = tuple(
        level_of(table.by, entry.level, (*place, "published", number, "level"), reading.parts)
        for number, entry in enumerate(table.published)
    )
    where = where_of(table.where, (*place, "where"), reading.parts)
    return FitDeclaration(where, place, table, levels)


DECLARATION = Declaration("fit", FitTable, ("fit", "fits"), declare_fits)
