"""Totals over repetitions: valid ones, and the bytes and time for data beside samples.

The time is the one after measurement, by the machine's clock: attribution, and writing tables. While a cell runs, its
own thread writes packets, at unknown cost.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Self

from crosswind.catalog.tables import PACKET_RECORDS, PARTS, TABLES
from crosswind.store.result import RepetitionResult

CAPTURES = "captures"
KINDS = (PARTS, PACKET_RECORDS, CAPTURES)
_KINDS = {table.name: table.kind for table in TABLES}


def kind_of(file: str) -> str | None:
    """A file's kind; None for files in every run."""
    path = PurePath(file)
    return CAPTURES if path.suffix == ".pcapng" else _KINDS.get(path.stem) if len(path.parts) == 1 else None


@dataclass(frozen=True)
class Sums:
    """Totals over some repetitions. A partition's index has its own.

    Attributes: valid: repetitions. cells: theirs. succeeded: cells with a successful exchange. sizes: bytes kept, by
        kind. times_ns: time after the measurement, by kind; captures take none then.
    """

    valid: int = 0
    cells: frozenset[int] = frozenset()
    succeeded: frozenset[int] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    times_ns: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[RepetitionResult]) -> Self:
        """Totals over these repetitions."""
        return cls.total(map(_repetition_sums, results))

    @classmethod
    def total(cls, parts: Iterable["Sums"]) -> Self:
        """Totals over all parts."""
        valid, cells, succeeded = 0, set[int](), set[int]()
        sizes, times = Counter[str](), Counter[str]()
        for part in parts:
            valid += part.valid
            cells |= part.cells
            succeeded |= part.succeeded
            sizes.update(part.sizes)
            times.update(part.times_ns)
        return cls(valid, frozenset(cells), frozenset(succeeded), sizes, times)

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "valid": self.valid,
            "cells": sorted(self.cells),
            "succeeded": sorted(self.succeeded),
            "sizes": dict(self.sizes),
            "times_ns": dict(self.times_ns),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError, TypeError when incomplete."""
        return cls(
            data["valid"], frozenset(data["cells"]), frozenset(data["succeeded"]), data["sizes"], data["times_ns"]
        )


def _repetition_sums(result: RepetitionResult) -> Sums:
    sizes = Counter[str]()
    for name, checksum in result.files.items():
        if (kind := kind_of(name)) is not None:
            sizes[kind] += checksum.size_bytes
    cells = frozenset([result.planned.cell])
    return Sums(int(result.valid), cells, cells if result.succeeded else frozenset(), sizes, result.keeping_ns)
