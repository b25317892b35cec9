"""Totals of repetitions: how many are valid, and what they keep beside their samples, in bytes and in time.

The time is that of a repetition's end, by the machine's clock: working parts out, and writing tables. While a cell
runs, a thread of its own writes its packets; what that takes is not known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Self

from crosswind.store.result import RepetitionResult

PACKETS = "packets"
PARTS = "parts"
CAPTURES = "captures"
_FILES = {
    "packets": PACKETS,
    "spent": PARTS,
    "pieces": PARTS,
    "connections": PARTS,
    "connection_parts": PARTS,
    "connection_pieces": PARTS,
    "tcp": PARTS,
}
KINDS = (PARTS, PACKETS, CAPTURES)


def kind_of(file: str) -> str | None:
    """The kind that a file of a repetition belongs to; None for those that every run has."""
    path = PurePath(file)
    return CAPTURES if path.suffix == ".pcapng" else _FILES.get(path.stem) if len(path.parts) == 1 else None


@dataclass(frozen=True)
class Sums:
    """Totals of some repetitions. The index of a partition has those of its own.

    Attributes: valid: how many. cells: theirs. succeeded: cells of which an exchange succeeded. sizes: bytes of what is
        kept, by kind. times_ns: what they take after the measurement, by kind; captures take none then.
    """

    valid: int = 0
    cells: frozenset[int] = frozenset()
    succeeded: frozenset[int] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    times_ns: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[RepetitionResult]) -> Self:
        """Of these repetitions."""
        return cls.total(map(_of_one, results))

    @classmethod
    def total(cls, parts: Iterable["Sums"]) -> Self:
        """Of all repetitions of these."""
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
        """The object that was stored. Raises: KeyError, TypeError where it lacks something."""
        return cls(
            data["valid"], frozenset(data["cells"]), frozenset(data["succeeded"]), data["sizes"], data["times_ns"]
        )


def _of_one(result: RepetitionResult) -> Sums:
    sizes = Counter[str]()
    for name, checksum in result.files.items():
        if (kind := kind_of(name)) is not None:
            sizes[kind] += checksum.size_bytes
    cells = frozenset([result.planned.cell])
    return Sums(int(result.valid), cells, cells if result.succeeded else frozenset(), sizes, result.keeping_ns)
