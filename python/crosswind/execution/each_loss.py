"""The design that loses one packet at a time: after a clean repetition of a cell, one more for each of its packets.

The clean repetition's ledger counts the packets of each direction. Every further repetition has the same seed and loses
one of them, so it differs from the clean one in nothing else. Cells with several clean repetitions have these for each.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.catalog.precision import CellPrecision
from crosswind.cell.check import CheckedCell
from crosswind.store.directory import Store
from crosswind.store.plan import Block, LostPacket, PlannedCell, repetition_of
from crosswind.study.design import Study
from crosswind.study.identity import repetition_key

EACH_LOSS = "each_loss"
"""The kind of finding that asks for this design."""


class EachLoss:
    """Adds a repetition to a run's plan for each packet to lose."""

    def __init__(self, store: Store) -> None:
        self._store = store
        asked = store.manifest.presentation["asked"].get(EACH_LOSS, ())
        self._most = {cell: int(each["most"]) for each in asked for cell in each["cells"]}

    def __bool__(self) -> bool:
        return bool(self._most)

    def next_cells(self) -> list[PlannedCell]:
        """The repetitions of cells whose clean one has ended, added to the plan. Raises: StoreError, DiskError."""
        plan, results = self._store.plan, self._store.results()
        there = {(planned.cell, planned.seed) for planned in plan if planned.lost is not None}
        clean = [
            planned
            for planned in plan
            if planned.lost is None and planned.cell in self._most and (planned.cell, planned.seed) not in there
        ]
        last = Counter({planned.cell: planned.repetition for planned in sorted(plan, key=lambda one: one.repetition)})
        numbered: list[PlannedCell] = []
        for planned in clean:
            result = results.get(planned.key)
            if result is None or result.finished is None or not result.valid:
                continue
            for lost in sampled(packets_of(result.finished.ledger), self._most[planned.cell]):
                last[planned.cell] += 1
                repetition = last[planned.cell]
                key, block = repetition_key(planned.cell, repetition), Block(repetition, repetition, planned.seed, lost)
                numbered.append(repetition_of(planned, key, len(plan) + len(numbered), block))
        if numbered:
            self._store.extend_plan(numbered)
        return numbered

    def state(self) -> Sequence[CellPrecision]:
        """No precision is asked for."""
        return ()


def further_repetitions(study: Study, checked: Sequence[CheckedCell]) -> Counter[int]:
    """Repetitions that lose a packet, by cell: as many as the forecast has packets, and at most those asked for."""
    further: Counter[int] = Counter()
    cells = [cell.cell for cell in checked]
    known = {cell.cell.index: cell for cell in checked}
    for declared in study.findings[EACH_LOSS]:
        asked = declared.as_dict(cells)
        for index in asked["cells"]:
            clean = 1 if known[index].exact else study.repetitions_of(known[index].cell)
            further[index] = clean * min(int(asked["most"]), known[index].forecast.packets)
    return further


def packets_of(ledger: Any) -> dict[str, int]:
    """The packets that hosts sent, by direction."""
    return {direction: getattr(ledger, direction).in_ for direction in DIRECTIONS}


def sampled(packets: Mapping[str, int], most: int) -> list[LostPacket]:
    """The packets to lose, by direction and index: all, or about as many as `most`, shared out to the directions.

    A quarter of a direction's share are its first packets and a quarter its last, where losses differ most; the others
    stand at equal distances.
    """
    share = min(1.0, most / max(sum(packets.values()), 1))
    return [
        (direction, index)
        for direction, count in packets.items()
        for index in _indexes(count, min(count, max(1, round(count * share))))
    ]


def _indexes(count: int, taken: int) -> Iterator[int]:
    edge = 0 if taken == count else taken // 4
    between = taken - 2 * edge
    yield from range(edge)
    for at in range(between):
        yield edge + at * (count - 2 * edge) // between
    yield from range(count - edge, count)
