"""`[[each_packet]]`: cells that run once undisturbed, and then once for each of their packets, lost or held back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from crosswind.catalog import catalog
from crosswind.catalog.endpoints import EMULATOR
from crosswind.findings.declared import DeclaredTable, FindingError, indices_of
from crosswind.study.cells import Cell, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.resolve import with_networks
from crosswind.study.tables import TomlTable, WhereTable
from crosswind.study.toml_text import Location
from crosswind.text.units import UnitError, format_duration, parse_duration

MOST = 2000
"""A cell's packets disturbed one by one; among more, so many are chosen."""
PAIRS = 64
"""Pairs of packets lost together."""

MOST_HOLD_NS = 10_000_000_000
"""Repetitions end within their deadline, a minute or more."""

_LOSS_KEYS = tuple(
    key.study for key in catalog().direction.keys if key.study.startswith(("loss", "lose", "bit_error", "corrupt"))
)
_HOLD_KEYS = tuple(key.study for key in catalog().direction.keys if key.study.startswith("hold"))


class EachPacketTable(TomlTable):
    """What each packet's loss or delay costs: exact in virtual time, where one repetition decides."""

    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are meant"
    )
    hold: str | None = Field(
        default=None, description='how long each packet is held back, as "1ms"; without it, each is lost'
    )
    most: int = Field(
        default=MOST,
        ge=1,
        le=100_000,
        description="packets of a cell to disturb; of more, so many: the first and last, and some at equal distances",
    )
    pairs: int = Field(
        default=PAIRS,
        ge=0,
        le=100_000,
        description="pairs of packets to lose together, at random among all: for rates of loss at which two are lost",
    )
    note: str = ""


@dataclass(frozen=True)
class EachPacketDeclaration(DeclaredTable[EachPacketTable]):
    """Some cells' single disturbances, as declared. hold_ns: None: packets are lost."""

    hold_ns: int | None = None

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        if self.hold_ns is None:
            return "what the loss of each packet costs"
        return f"what holding each packet back by {format_duration(self.hold_ns)} costs"

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with its cells' indices."""
        pairs = self.table.pairs if self.hold_ns is None else 0
        plain = {"most": self.table.most, "pairs": pairs, "hold_ns": self.hold_ns, "note": self.table.note}
        return {**plain, "cells": indices_of(self.where.among(cells), self.where)}


def _declare(reading: Reading) -> tuple[EachPacketDeclaration, ...]:
    return tuple(_each(table, place, reading) for place, table in reading.of(EachPacketTable, "each_packet"))


def _each(table: EachPacketTable, place: Location, reading: Reading) -> EachPacketDeclaration:
    where = where_of(table.where, (*place, "where"), reading.parts)
    return EachPacketDeclaration(where, place, table, hold_ns=_hold_ns(table, place))


def _hold_ns(table: EachPacketTable, place: Location) -> int | None:
    if table.hold is None:
        return None
    try:
        hold_ns = parse_duration(table.hold)
    except UnitError as error:
        raise FindingError((*place, "hold"), str(error), error.hint or 'a time, as "1ms"') from None
    if hold_ns > MOST_HOLD_NS:
        longest = format_duration(MOST_HOLD_NS)
        raise FindingError((*place, "hold"), f"a packet is held back by {longest} at most", 'give a time, as "1ms"')
    if hold_ns <= 0:
        raise FindingError((*place, "hold"), "0 holds no packet back", 'give a time, as "1ms"')
    return hold_ns


def _check(each: EachPacketDeclaration, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses cells that disturb packets otherwise, or run on a machine's clock. Raises: FindingError."""
    for cell in each.where.required(cells(), (*each.place, "where")):
        keys = _LOSS_KEYS if each.hold_ns is None else _HOLD_KEYS
        settings = with_networks(cell.settings)
        own = next((key for key in settings if key.rpartition(".")[2] in keys), None)
        if own is not None:
            does = "loses" if each.hold_ns is None else "holds back"
            network = settings.get("path.network") if own not in cell.settings else None
            what = own if network is None else f"the loss of network {network.text}"
            message = f"{what} is set beside it, and each repetition {does} one packet, no others"
            why = ": the loss rate is a number of the answer" if each.hold_ns is None else ""
            instead = f"leave out {own}" if network is None else "choose a network without loss"
            raise FindingError(each.place, message, f"{instead}{why}")
        backend = cell.settings.get("path.backend")
        if backend is not None and backend.value != EMULATOR:
            message = f"path.backend {backend.text} cannot pick one packet"
            raise FindingError(each.place, message, f"use the backend {EMULATOR}")
        clock = cell.settings.get("host.clock")
        if clock is None or clock.value != "virtual":
            message = "a packet costs the same every time in virtual time alone"
            raise FindingError(each.place, message, 'set host.clock = "virtual" (--clock virtual)')


DECLARATION = Declaration(
    "each_packet", EachPacketTable, ("design of single packets", "designs of single packets"), _declare, _check
)
