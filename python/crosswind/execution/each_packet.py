"""The design that disturbs one packet at a time: after a clean repetition of a cell, one more for each of its packets.

The clean repetition's ledger counts the packets of each direction. Every further repetition has the same seed and loses
one of them, or holds it back, so it differs from the clean one in nothing else. Cells with several clean repetitions
have these for each. Pairs of packets, lost together, tell what a second loss costs.
"""

import math
import random
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from crosswind.catalog.disturbed import Disturbed, Packet, sampled
from crosswind.catalog.precision import CellPrecision
from crosswind.cell.check import CheckedCell
from crosswind.store.directory import Store
from crosswind.store.plan import Block, PlannedCell, repetition_of
from crosswind.store.result import RepetitionResult
from crosswind.study.design import Study
from crosswind.study.identity import repetition_key

EACH_PACKET = "each_packet"
"""The kind of finding that asks for this design."""


class EachPacket:
    """Adds a repetition to a run's plan for each packet to disturb."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked = [_Asked.of(each) for each in store.manifest.presentation["asked"].get(EACH_PACKET, ())]

    def __bool__(self) -> bool:
        return bool(self._asked)

    def next_cells(self) -> list[PlannedCell]:
        """The repetitions of cells whose clean one has ended, added to the plan; then pairs of packets.

        Raises: StoreError, DiskError.
        """
        plan = self._store.plan
        cells = frozenset[int]().union(*(asked.cells for asked in self._asked))
        last = plan.last_repetitions
        ended = _Ended(self._store.results(), [planned for planned in plan if planned.cell in cells])
        numbered: list[PlannedCell] = []
        for asked in self._asked:
            for planned in ended.clean(asked.cells):
                for disturbed in _further(planned, asked, ended):
                    repetition = last[planned.cell] = last[planned.cell] + 1
                    block = Block(repetition, repetition, planned.seed, disturbed)
                    key = repetition_key(planned.cell, repetition)
                    numbered.append(repetition_of(planned, key, len(plan) + len(numbered), block))
        if numbered:
            self._store.extend_plan(numbered)
        return numbered

    def state(self) -> Sequence[CellPrecision]:
        """No precision is asked for."""
        return ()


@dataclass(frozen=True)
class _Asked:
    """One table of the study. Attributes: as there."""

    cells: frozenset[int]
    most: int
    pairs: int
    hold_ns: int | None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        return cls(frozenset(stored["cells"]), stored["most"], stored["pairs"], stored["hold_ns"])


class _Ended:
    """A run's repetitions of some cells, and how those without failure ended."""

    def __init__(self, results: Mapping[str, RepetitionResult], plan: Sequence[PlannedCell]) -> None:
        self._results = results
        self._clean = [planned for planned in plan if planned.disturbed is None]
        self._disturbed: dict[tuple[int, int], dict[Disturbed, PlannedCell]] = {}
        for planned in plan:
            if planned.disturbed is not None:
                self._disturbed.setdefault((planned.cell, planned.seed), {})[planned.disturbed] = planned

    def clean(self, cells: Container[int]) -> Iterator[PlannedCell]:
        """Undisturbed repetitions, once they have ended."""
        return (planned for planned in self._clean if planned.cell in cells and self.packets(planned))

    def is_first(self, clean: PlannedCell) -> bool:
        """Whether it is its cell's first clean repetition."""
        return clean == next(planned for planned in self._clean if planned.cell == clean.cell)

    def beside(self, clean: PlannedCell, hold_ns: int | None) -> dict[Disturbed, PlannedCell]:
        """The disturbed repetitions with its seed."""
        beside = self._disturbed.get((clean.cell, clean.seed), {})
        return {disturbed: planned for disturbed, planned in beside.items() if disturbed.hold_ns == hold_ns}

    def packets(self, planned: PlannedCell) -> dict[str, int] | None:
        """The packets that hosts sent, by direction; None before an end without failure."""
        result = self._results.get(planned.key)
        if result is None or result.finished is None or not result.valid:
            return None
        return None if result.finished.ledger is None else result.finished.ledger.sent


def _further(clean: PlannedCell, asked: _Asked, ended: _Ended) -> list[Disturbed]:
    """Single packets first. Pairs follow those of a cell's first clean repetition, where all packets were lost."""
    packets = ended.packets(clean) or {}
    there = ended.beside(clean, asked.hold_ns)
    if not there:
        return [Disturbed((packet,), asked.hold_ns) for packet in sampled(packets, asked.most)]
    singles = {disturbed.packets[0]: planned for disturbed, planned in there.items() if len(disturbed.packets) == 1}
    sent = {packet: ended.packets(planned) for packet, planned in singles.items()}
    is_whole = len(singles) == sum(packets.values()) and all(sent.values())
    if not asked.pairs or not is_whole or len(there) > len(singles) or not ended.is_first(clean):
        return []
    known = {packet: counts for packet, counts in sent.items() if counts is not None}
    return [Disturbed(pair) for pair in sampled_pairs(packets, known, asked.pairs, seed=clean.seed)]


def sampled_pairs(
    packets: Mapping[str, int], sent: Mapping[Packet, Mapping[str, int]], most: int, *, seed: int
) -> list[tuple[Packet, Packet]]:
    """Pairs of packets to lose together: all, or so many at random.

    Args: packets: of the clean repetition, by direction. sent: of repetitions that lose one of these, by that packet.
    """
    known = [(direction, index) for direction, count in packets.items() for index in range(count)]
    among = len(known) * (len(known) - 1) // 2
    further = [
        (packet, (direction, index))
        for packet, counts in sent.items()
        for direction, count in counts.items()
        for index in range(packets[direction], count)
    ]
    total = among + len(further)
    chosen = range(total) if total <= most else random.Random(seed).sample(range(total), most)
    return [_pair(known, at) if at < among else further[at - among] for at in chosen]


def _pair(packets: Sequence[Packet], at: int) -> tuple[Packet, Packet]:
    """One of all pairs, by its number: 0 1, 0 2, 1 2, 0 3, ..."""
    later = (1 + math.isqrt(1 + 8 * at)) // 2
    return packets[at - later * (later - 1) // 2], packets[later]


def further_repetitions(study: Study, checked: Sequence[CheckedCell]) -> Counter[int]:
    """Repetitions with a disturbed packet, by cell: one for each in the forecast, and at most those asked for."""
    further: Counter[int] = Counter()
    cells = [cell.cell for cell in checked]
    known = {cell.cell.index: cell for cell in checked}
    for declared in study.findings[EACH_PACKET]:
        asked = declared.as_dict(cells)
        for index in asked["cells"]:
            clean = 1 if known[index].exact else study.repetitions_of(known[index].cell)
            packets = known[index].forecast.packets
            further[index] += clean * min(asked["most"], packets)
            further[index] += min(asked["pairs"], packets * (packets - 1) // 2) if packets <= asked["most"] else 0
    return further


def cells_of(study: Study, checked: Sequence[CheckedCell]) -> frozenset[int]:
    """The cells whose packets are disturbed."""
    cells = [cell.cell for cell in checked]
    return frozenset(index for declared in study.findings[EACH_PACKET] for index in declared.as_dict(cells)["cells"])


def disturbances(study: Study) -> str:
    """What becomes of packets: "lost", "held", or "lost or held"."""
    words = {"held" if declared.as_dict(())["hold_ns"] else "lost" for declared in study.findings[EACH_PACKET]}
    return " or ".join(sorted(words, reverse=True))
