"""`[[each_loss]]`: cells that run once without loss, and then once for each of their packets, with it lost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from crosswind.catalog import catalog
from crosswind.catalog.endpoints import EMULATOR
from crosswind.findings.declared import DeclaredTable, FindingError, indices_of
from crosswind.study.cells import Cell, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.tables import TomlTable, WhereTable
from crosswind.study.toml_text import Location

MOST = 2000
"""A cell's packets lost one by one; among more, so many are chosen."""

_LOSS_KEYS = tuple(key.study for key in catalog().direction.keys if key.study.startswith(("loss", "lose", "bit_error")))


class EachLossTable(TomlTable):
    """What each packet's loss costs: exact in virtual time, where one repetition decides."""

    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are meant"
    )
    most: int = Field(
        default=MOST,
        ge=1,
        le=100_000,
        description="packets of a cell to lose; of more, so many: the first and last, and some at equal distances",
    )
    note: str = ""


@dataclass(frozen=True)
class EachLossDeclaration(DeclaredTable[EachLossTable]):
    """Some cells' single losses, as declared."""

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return "what the loss of each packet costs"

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with its cells' indices."""
        matching = self.where.among(cells)
        return {"most": self.table.most, "note": self.table.note, "cells": indices_of(matching, self.where)}


def _declare(reading: Reading) -> tuple[EachLossDeclaration, ...]:
    return tuple(_each(table, place, reading) for place, table in reading.of(EachLossTable, "each_loss"))


def _each(table: EachLossTable, place: Location, reading: Reading) -> EachLossDeclaration:
    return EachLossDeclaration(where_of(table.where, (*place, "where"), reading.parts), place, table)


def _check(each: EachLossDeclaration, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses cells that lose packets otherwise, or run on a machine's clock. Raises: FindingError."""
    for cell in each.where.required(cells(), (*each.place, "where")):
        own = next((key for key in cell.settings if key.rpartition(".")[2] in _LOSS_KEYS), None)
        if own is not None:
            message = f"{own} is set beside it, and each repetition loses one packet, no others"
            raise FindingError(each.place, message, f"leave out {own}: the loss rate is a number of the answer")
        backend = cell.settings.get("path.backend")
        if backend is not None and backend.value != EMULATOR:
            message = f"path.backend {backend.text} cannot lose one packet of its choice"
            raise FindingError(each.place, message, f"use the backend {EMULATOR}")
        clock = cell.settings.get("host.clock")
        if clock is None or clock.value != "virtual":
            message = "the loss of a packet costs the same every time in virtual time alone"
            raise FindingError(each.place, message, 'set host.clock = "virtual" (--clock virtual)')


DECLARATION = Declaration(
    "each_loss", EachLossTable, ("design of single losses", "designs of single losses"), _declare, _check
)
