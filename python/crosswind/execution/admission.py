"""The next repetition to start, and whether others may run beside it.

Only the cells' fidelity decides, never their measurements. Cells with much waiting run side by side, in planned order.
Cells with a busy processor run alone, after the others; so do cells with exchanges as short as their processor time,
because any neighbour makes them longer. A repetition over its fidelity budget goes to the end of its queue, and its
last attempt is made alone. While no cell has kept the budget and several have missed it, some are tried alone before
anything else: if these miss it too, no cell in the run can keep it.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from crosswind.cell.forecast import CAPACITY, HEAVY
from crosswind.cell.result import Finished
from crosswind.store.plan import PlannedCell

ATTEMPTS = 3
"""How often a repetition is run at most until the emulation keeps its fidelity budget."""

CELLS_TO_CONCLUDE = 3
"""So many misses put the budget in doubt; so many cells missing it alone prove it unattainable."""

_WITH_INTERRUPTS = 1.3
"""A cell's processor time over its threads': the kernel's interrupt work comes on top."""

_SHORTEST_NS = 1_000_000_000
"""Shorter cells are mostly set-up, and do not show their load."""

_SMALLEST_CORRECTION, _LARGEST_CORRECTION = 0.2, 5.0
"""Bounds on correcting a forecast by other cells with the same workload."""


@dataclass(frozen=True)
class Admitted:
    """A repetition to start now. `beside`: maximum number of concurrent others."""

    planned: PlannedCell
    beside: int


class Admission:
    """One session's queues.

    Args: missing: repetitions to run, in order. processors: their number. jobs: fixed concurrency; None leaves it to
        loads and to the limit given to `next`.
    """

    def __init__(self, missing: Sequence[PlannedCell], *, processors: int, jobs: int | None = None) -> None:
        self.loads = Loads()
        self._jobs = jobs
        self._capacity = CAPACITY * processors
        self._ready = deque(missing)
        self._alone: deque[PlannedCell] = deque()
        self._attempts: dict[str, int] = {}
        self._budget_was_kept = False
        self._missed: deque[PlannedCell] = deque()
        self._missed_alone: dict[int, PlannedCell] = {}
        self._cells = len({planned.cell for planned in missing})

    def __len__(self) -> int:
        return len(self._ready) + len(self._alone) + len(self._missed)

    def extend(self, added: Sequence[PlannedCell]) -> None:
        """Further repetitions are to run."""
        self._ready.extend(added)

    @property
    def unattainable(self) -> list[PlannedCell]:
        """One repetition of each cell over budget even alone, once these prove the budget unattainable.

        Empty before, and once any cell has kept the budget.
        """
        enough = len(self._missed_alone) >= min(CELLS_TO_CONCLUDE, self._cells)
        return list(self._missed_alone.values()) if enough and not self._budget_was_kept else []

    def attempts(self, planned: PlannedCell) -> int:
        """How often it was run before."""
        return self._attempts.get(planned.key, 0)

    def note_earlier_attempts(self, planned: PlannedCell, attempts: int) -> None:
        """Earlier sessions ran it so often, and it missed the budget each time."""
        self._attempts[planned.key] = attempts

    def next(self, running: Sequence[PlannedCell], *, limit: int, alone: bool = False) -> Admitted | None:
        """The next repetition, if any may start now.

        Args: limit: cells at a time. alone: whether a running cell must stay alone.
        """
        if alone:
            return None
        if self._budget_in_doubt and self._missed:
            return Admitted(self._missed.popleft(), beside=0) if not running else None
        self._ready.extend(self._missed)
        self._missed.clear()
        self._move_heavy()
        if self._ready:
            return self._next_beside(running, limit)
        if running or not self._alone:
            return None
        return Admitted(self._alone.popleft(), beside=0)

    def handle_budget_kept(self) -> None:
        """A repetition kept its budget."""
        self._budget_was_kept = True
        self._missed_alone.clear()

    def handle_budget_missed(self, planned: PlannedCell, *, alone: bool) -> bool:
        """Handles a missed budget. Returns whether the repetition will run again; if not, this attempt counts."""
        attempts = self._attempts[planned.key] = self.attempts(planned) + 1
        conclusive = alone and attempts > 1 and self._budget_in_doubt and self._cells >= CELLS_TO_CONCLUDE
        if attempts >= ATTEMPTS or conclusive:
            if alone and not self._budget_was_kept:
                self._missed_alone[planned.cell] = planned
            return False
        (self._ready if self._budget_was_kept else self._missed).append(planned)
        return True

    @property
    def _budget_in_doubt(self) -> bool:
        """Nothing has kept the budget, and several have missed it."""
        return not self._budget_was_kept and len(self._attempts) >= min(CELLS_TO_CONCLUDE, self._cells)

    def _move_heavy(self) -> None:
        """Moves heavy repetitions from the queue's head; cells measured as light come back."""
        while self._ready and self._runs_alone(self._ready[0]):
            self._alone.append(self._ready.popleft())
        if not self._ready:
            # All together, for running beside each other.
            while self._alone and not self._runs_alone(self._alone[0]):
                self._ready.append(self._alone.popleft())

    def _runs_alone(self, planned: PlannedCell) -> bool:
        if self._jobs == 1:
            return False  # All run alone then, in planned order.
        if planned.is_over_network:
            return True  # A server takes one client at a time, and cells would share the network.
        if self.attempts(planned) >= ATTEMPTS - 1:
            return True
        return self._jobs is None and (planned.undelayed or self.loads.of(planned) > HEAVY)

    def _next_beside(self, running: Sequence[PlannedCell], limit: int) -> Admitted | None:
        at_a_time = self._jobs or limit
        if len(running) >= at_a_time:
            return None
        if self._jobs is None and running:
            load = sum(map(self.loads.of, running)) + self.loads.of(self._ready[0])
            if load > self._capacity:
                return None
        beside = min(at_a_time, len(self._ready) + len(running)) - 1
        return Admitted(self._ready.popleft(), beside=beside)


class Loads:
    """Known loads of one session's cells."""

    def __init__(self) -> None:
        self._measured: dict[int, list[float]] = {}
        self._corrections: dict[str, list[float]] = {}

    def learn(self, planned: PlannedCell, finished: Finished) -> None:
        """A repetition ended with this result."""
        if finished.elapsed_ns < _SHORTEST_NS:
            return
        cpu = finished.cpu
        if cpu is None:
            return
        threads_ns = cpu.client_ns + cpu.server_ns + cpu.emulator_ns
        load = _WITH_INTERRUPTS * threads_ns / finished.elapsed_ns
        self._measured.setdefault(planned.cell, []).append(load)
        if planned.expected_load:
            self._corrections.setdefault(planned.workload, []).append(load / planned.expected_load)

    def of(self, planned: PlannedCell) -> float:
        """Processors kept busy by the repetition."""
        if measured := self._measured.get(planned.cell):
            return fmean(measured)
        corrections = self._corrections.get(planned.workload)
        if not corrections:
            return planned.expected_load
        return planned.expected_load * min(_LARGEST_CORRECTION, max(_SMALLEST_CORRECTION, fmean(corrections)))
