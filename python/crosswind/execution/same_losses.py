"""Repetitions that lose the same packets are the same: in virtual time one of them is run, and stands for the others.

Which packets a seed loses is known before it runs. Where nothing else in a cell is random, a repetition is a function
of its losses among the packets that it sends. So a thousand repetitions with rare losses take some tens of runs. All
are repetitions like any other, each with its seed, whoever reads them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosswind.catalog.precision import CellPrecision
from crosswind.cell.losses import Lost, lost_packets
from crosswind.execution.growth import Additions, further_cells
from crosswind.store.directory import Store
from crosswind.store.partitions import is_packable
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult

_BEYOND = 2
"""Losses are told for so many times as many packets as any repetition has sent: later ones may send more."""


class SameLosses:
    """Adds repetitions to a run's plan: those with known losses with their results, and others to be run."""

    def __init__(self, store: Store, binary: Path) -> None:
        self._store = store
        self._binary = binary
        self._originals: dict[str, RepetitionResult] | None = None
        self._asked: set[str] = set()

    def add(self, candidates: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Adds what is known, and returns what is to be run, also added. The rest is a candidate again later.

        Args:   candidates: not in the plan.
        Raises: StoreError, DiskError, EngineError.
        """
        originals = self._ended()
        known: list[tuple[PlannedCell, RepetitionResult]] = []
        unknown: list[PlannedCell] = []
        for cell, own in _by_cell(candidates).items():
            ended = [result for result in originals.values() if result.planned.cell == cell]
            if own[0].repeats is None or not ended or not all(map(is_packable, ended)):
                unknown += own
                continue
            of_cell = _Known(ended, self._binary)
            found, left = of_cell.sorted(own)
            known += found
            unknown += left
        keys = {planned.key for planned in unknown}
        to_run = [planned for planned in candidates if planned.key in keys]
        copies = sorted(known, key=lambda pair: (pair[0].repetition, pair[0].cell))
        if added := [*(planned for planned, _ in copies), *to_run]:
            self._store.extend_plan(_in_order(added, len(self._store.plan)))
        if copies:
            self._store.add_same(copies)
        self._asked = {planned.key for planned in to_run}
        return [self._store.plan.with_key(planned.key) for planned in to_run]

    def _ended(self) -> dict[str, RepetitionResult]:
        """The repetitions that were run. Copies are many, and are read at a session's start alone."""
        results = self._store.results_in_directories()[0]
        if self._originals is None or not self._asked <= results.keys():
            self._originals = {}
            results = self._store.results()
        self._originals |= {key: result for key, result in results.items() if _is_original(result)}
        return self._originals


class FixedRepetitions:
    """The repetitions of cells in which those with the same losses are the same."""

    def __init__(self, store: Store, same: Additions) -> None:
        self._store = store
        self._same = same

    def __bool__(self) -> bool:
        return any(kind.repeats is not None for kind in self._store.plan.kinds)

    def next_cells(self) -> list[PlannedCell]:
        """The repetitions to run next. Raises: StoreError, DiskError, EngineError."""
        counts = {kind.cell: kind.repeats for kind in self._store.plan.kinds if kind.repeats is not None}
        seed = self._store.manifest.provenance["seed"]
        while candidates := further_cells(self._store.plan, counts, seed=seed):
            if to_run := self._same.add(candidates):
                return to_run
        return []

    def state(self) -> Sequence[CellPrecision]:
        """No precision is asked for."""
        return ()


@dataclass
class _Known:
    """What a cell's repetitions lost, and how they ended.

    Attributes: ended: those that were run. by_sent: for the packets that they sent, each result by its losses.
    """

    ended: Sequence[RepetitionResult]
    binary: Path
    by_sent: dict[tuple[int, int], dict[Lost, RepetitionResult]] = field(default_factory=dict)

    def sorted(
        self, candidates: Sequence[PlannedCell]
    ) -> tuple[list[tuple[PlannedCell, RepetitionResult]], list[PlannedCell]]:
        """Those with the losses of an ended one, with its result; and of the others, one for each set of losses."""
        sent = [_sent(result) for result in self.ended]
        most = (_BEYOND * max(forward for forward, _ in sent), _BEYOND * max(reverse for _, reverse in sent))
        planned = [*(result.planned for result in self.ended), *candidates]
        lost = lost_packets(planned[0].parameters, [each.seed for each in planned], most, binary=self.binary)
        for result, packets, losses in zip(self.ended, sent, lost, strict=False):
            self.by_sent.setdefault(packets, {})[_among(losses, packets)] = result
        known, first = [], dict[Lost, PlannedCell]()
        fewest = min(forward for forward, _ in sent), min(reverse for _, reverse in sent)
        for candidate, losses in zip(candidates, lost[len(self.ended) :], strict=True):
            if (same := self._result(losses)) is not None:
                known.append((candidate, same))
            else:
                first.setdefault(_among(losses, fewest), candidate)
        return known, list(first.values())

    def _result(self, losses: Lost) -> RepetitionResult | None:
        found = (results.get(_among(losses, packets)) for packets, results in self.by_sent.items())
        return next((result for result in found if result is not None), None)


def _is_original(result: RepetitionResult) -> bool:
    return result.same_as is None and result.valid and result.planned.disturbed is None


def _sent(result: RepetitionResult) -> tuple[int, int]:
    """The packets of both directions."""
    assert result.finished is not None and result.finished.ledger is not None
    sent = result.finished.ledger.sent
    return sent["forward"], sent["reverse"]


def _among(lost: Lost, packets: tuple[int, int]) -> Lost:
    """The losses among the first packets of both directions."""
    forward, reverse = (
        tuple(index for index in indexes if index < count) for indexes, count in zip(lost, packets, strict=True)
    )
    return forward, reverse


def _by_cell(candidates: Iterable[PlannedCell]) -> dict[int, list[PlannedCell]]:
    by: dict[int, list[PlannedCell]] = {}
    for candidate in candidates:
        by.setdefault(candidate.cell, []).append(candidate)
    return by


def _in_order(added: Iterable[PlannedCell], first: int) -> list[PlannedCell]:
    return [replace(planned, order=order) for order, planned in enumerate(added, first)]
