"""`[[toy]]`: a metric of which the smallest median is looked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.findings.declared import measured_metric
from crosswind.study.cells import Cell
from crosswind.study.declared import Declaration, Reading
from crosswind.study.tables import TomlTable
from crosswind.study.toml_text import Location


class ToyTable(TomlTable):
    """Which cell has the smallest median of a metric."""

    metric: str


@dataclass(frozen=True)
class Toy:
    """A toy as it was declared."""

    place: Location
    table: ToyTable

    @property
    def summary(self) -> str:
        """What `crosswind show` says of it."""
        return f"which cell has the smallest {self.table.metric}"

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data."""
        return {"metric": self.table.metric, "cells": [cell.index for cell in cells]}


def toys_of(reading: Reading) -> list[Toy]:
    """The toys of a study. Raises: FindingError."""
    found = reading.of(ToyTable, "toy")
    for place, table in found:
        measured_metric(table.metric, place)
    return [Toy(place, table) for place, table in found]


DECLARATION = Declaration("toy", ToyTable, ("toy", "toys"), toys_of)
