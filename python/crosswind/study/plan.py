"""A plan: a study's cells and repetitions, in a seeded order by randomised complete blocks.

One block is one repetition, with every cell once, in its own order, so the machine's drift cannot pass for a difference
between cells. All cells in a repetition share one path seed and so meet the same random decisions, packet by packet
(common random numbers); every repetition has a fresh one. Both come from SHA-256: they are the same on every machine
and version.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.identity import repetition_key

__all__ = ["Cell", "Plan", "PlanItem", "path_seed"]


@dataclass(frozen=True)
class PlanItem:
    """One run. `order` counts from 0 over the plan; `block` is the repetition, from 0.

    `key` names cell and repetition (`c003-r02`), the same in every plan for a study.
    """

    order: int
    cell: Cell
    repetition: int
    block: int
    seed: int
    key: str


@dataclass(frozen=True)
class Plan:
    """Every run, in planned order."""

    study: Study
    items: tuple[PlanItem, ...]

    @classmethod
    def of(cls, study: Study) -> "Plan":
        """The plan of a study: each cell as often as the study says."""
        cells = [(cell, study.repetitions_of(cell)) for cell in study.cells()]
        by_index = {cell.index: cell for cell, _ in cells}
        runs = enumerate(blocks(study.seed, {cell.index: times for cell, times in cells}))
        return cls(
            study,
            tuple(
                PlanItem(order, by_index[cell], repetition, repetition, seed, key)
                for order, (cell, repetition, seed, key) in runs
            ),
        )

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def blocks(study_seed: int, counts: Mapping[int, int]) -> Iterator[tuple[int, int, int, str]]:
    """Every repetition in its block's order: cell, repetition, seed and key. Args: counts: repetitions by cell."""
    for repetition in range(max(counts.values(), default=0)):
        seed = path_seed(study_seed, repetition)
        block = (cell for cell, count in counts.items() if repetition < count)
        # Missing cells change nothing for others.
        for cell in sorted(block, key=lambda cell: _hash("order", study_seed, repetition, cell)):
            yield cell, repetition, seed, repetition_key(cell, repetition)


def path_seed(study_seed: int, repetition: int) -> int:
    """The seed shared by a repetition's cells, in [0, 2^53): JSON readers hold it exactly."""
    return int.from_bytes(_hash("path", study_seed, repetition)[:8], "big") >> 11


def _hash(purpose: str, *numbers: int) -> bytes:
    return hashlib.sha256(f"crosswind {purpose} {' '.join(map(str, numbers))}".encode("ascii")).digest()
