"""Adaptive repetitions: imprecise cells get further repetitions, block by block.

A new repetition is the planned cell with another number and seed. All cells in a block share the seed, so they keep
meeting the same losses, whichever still run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from crosswind.catalog.path_effect import PathEffect
from crosswind.catalog.precision import CellPrecision
from crosswind.cell.record import CellRun
from crosswind.store.directory import Store
from crosswind.store.manifest import Manifest
from crosswind.store.plan import Block, PlannedCell, repetition_of
from crosswind.store.record import cell_run
from crosswind.study.plan import blocks


class StoppingRule(Protocol):
    """Decides how often cells are run."""

    def add(self, run: CellRun) -> None:
        """A repetition has ended."""

    def next_counts(self) -> dict[int, int]:
        """Each continuing cell's total repetitions before its next look."""

    def state(self) -> Sequence[CellPrecision]:
        """Each precision's state in each of its cells."""


class StoppingRules(Protocol):
    """Makes a run's stopping rule, and refuses endless ones."""

    def check(self, asked: Mapping[str, Any], cells: Mapping[int, tuple[Mapping[str, Any], PathEffect]]) -> None:
        """Raises: StudyError."""

    def rule_of(self, manifest: Manifest) -> StoppingRule | None:
        """The rule; None where every cell is run a fixed number of times."""


class Additions(Protocol):
    """Adds repetitions to a run's plan."""

    def add(self, candidates: Sequence[PlannedCell]) -> list[PlannedCell]:
        """Adds those with known results, and returns those to run. The others are candidates again later."""


class Growth(Protocol):
    """Adds repetitions to a run's plan, round by round."""

    def next_cells(self) -> Sequence[PlannedCell]:
        """The next repetitions, added to the plan; none at the end. Raises: StoreError, DiskError."""

    def state(self) -> Sequence[CellPrecision]:
        """How far every precision is."""


class InTurn:
    """Several: each begins where those before it have nothing to add."""

    def __init__(self, growths: Sequence[Growth]) -> None:
        self._growths = growths

    def next_cells(self) -> Sequence[PlannedCell]:
        """The next repetitions of the first that has any. Raises: StoreError, DiskError."""
        return next((added for growth in self._growths if (added := growth.next_cells())), ())

    def state(self) -> Sequence[CellPrecision]:
        """How far every precision is."""
        return [state for growth in self._growths for state in growth.state()]


class AdaptiveRepetitions:
    """Asks a rule after each round for cells to continue, and adds their repetitions to a run's plan."""

    def __init__(self, store: Store, rule: StoppingRule, same: Additions, *, seed: int) -> None:
        self._store = store
        self._rule = rule
        self._same = same
        self._seed = seed
        self._seen: set[str] = set()
        # Repetitions join the plan as their losses are known: a look at some of them would be at those with few losses.
        self._counts = {cell: number + 1 for cell, number in store.plan.last_repetitions.items()}

    def next_cells(self) -> list[PlannedCell]:
        """The next repetitions, added to the plan; none at the end. Raises: StoreError, DiskError."""
        while True:
            candidates = further_cells(self._store.plan, self._counts, seed=self._seed)
            if not candidates:
                self._look()
                candidates = further_cells(self._store.plan, self._counts, seed=self._seed)
            if not candidates:
                return []
            if to_run := self._same.add(candidates):
                return to_run

    def _look(self) -> None:
        """Tells the rule all that was measured, and asks it how many repetitions it wants."""
        for key, result in self._store.results().items():
            if key not in self._seen:
                self._seen.add(key)
                self._rule.add(cell_run(self._store, result))
        self._counts = self._rule.next_counts()

    def state(self) -> Sequence[CellPrecision]:
        """How far every precision is."""
        return self._rule.state()


def further_cells(plan: Sequence[PlannedCell], counts: Mapping[int, int], *, seed: int) -> list[PlannedCell]:
    """The repetitions missing from the given counts, in blocks. seed: the study's."""
    first = {planned.cell: planned for planned in reversed(plan)}
    there = {planned.key for planned in plan}
    missing = (run for run in blocks(seed, counts) if run[-1] not in there)
    return [
        repetition_of(first[cell], key, order, Block(repetition, repetition, own_seed))
        for order, (cell, repetition, own_seed, key) in enumerate(missing, start=len(plan))
    ]
