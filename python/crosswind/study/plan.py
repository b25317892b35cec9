"""A plan: the cells and repetitions of a study, in a seeded order of randomised complete blocks.

One block is one repetition: it holds every cell that is run so often once, in an order of its own, so that a drift of
the machine cannot pass for a difference between cells. All cells of a repetition share one path seed and so meet the
same random decisions, packet by packet (common random numbers); every repetition has a fresh one. Both come from
SHA-256, so they are the same on every machine and version.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.identity import repetition_key

__all__ = ["Cell", "Plan", "PlanItem", "path_seed"]


@dataclass(frozen=True)
class PlanItem:
    """One run of one cell. `order` counts from 0 over the plan; `block` is the repetition, from 0.

    `key` names cell and repetition (`c003-r02`) and is the same in every plan of the same study.
    """

    order: int
    cell: Cell
    repetition: int
    block: int
    seed: int
    key: str


@dataclass(frozen=True)
class Plan:
    """Every run of a study, in the order in which to run them."""

    study: Study
    items: tuple[PlanItem, ...]

    @classmethod
    def of(cls, study: Study) -> "Plan":
        """The plan of a study: each cell as often as the study says."""
        cells = [(cell, study.repetitions_of(cell)) for cell in study.cells()]
        items: list[PlanItem] = []
        for repetition in range(max((times for _, times in cells), default=0)):
            seed = path_seed(study.seed, repetition)
            block = {cell.index: cell for cell, times in cells if repetition < times}
            for index in block_order(study.seed, repetition, block):
                key = repetition_key(index, repetition)
                items.append(PlanItem(len(items), block[index], repetition, repetition, seed, key))
        return cls(study, tuple(items))

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def path_seed(study_seed: int, repetition: int) -> int:
    """The seed that all cells of a repetition share, in [0, 2^53), which every JSON reader holds exactly."""
    return int.from_bytes(_hash("path", study_seed, repetition)[:8], "big") >> 11


def block_order(study_seed: int, repetition: int, cells: Iterable[int]) -> list[int]:
    """Indices of the cells of a block in the order in which to run them. Those left out change nothing for others."""
    return sorted(cells, key=lambda index: _rank(study_seed, repetition, index))


def _rank(study_seed: int, repetition: int, index: int) -> bytes:
    return _hash("order", study_seed, repetition, index)


def _hash(purpose: str, *numbers: int) -> bytes:
    return hashlib.sha256(f"crosswind {purpose} {' '.join(map(str, numbers))}".encode("ascii")).digest()
