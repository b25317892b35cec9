"""Repetitions on this machine, a process each: over an emulated path, a pair of devices, or a real network.

Reported fidelity decides concurrency and retries.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path

from crosswind.cell.events import CellEvent, Progress
from crosswind.cell.fidelity import Fidelity
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.errors import EngineError
from crosswind.execution.admission import ATTEMPTS, Admission, Admitted
from crosswind.execution.concurrency import Concurrency, ConcurrencyControl, Counters, WaitingBudget
from crosswind.execution.processors import Processors
from crosswind.execution.workers.worker import Launched, RunningCell, Start, Worker
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.plan import PlannedCell
from crosswind.text.units import format_duration

START_S = 0.025
"""Between two starts. One takes some 10 ms of processor time from the other cells."""

HEARTBEAT_NS = 500_000_000
"""Report interval for a cell beside others; a lone cell reports twice as often."""


class LocalWorker(Worker):
    """The processes of one session.

    Args: jobs: cells at a time, fixed by hand. directory: that of their programs; None for this process's.
    """

    has_machine_to_itself = True

    def __init__(
        self,
        store: Store,
        missing: Sequence[PlannedCell],
        *,
        binary: Path,
        jobs: int | None,
        directory: Path | None = None,
    ) -> None:
        self._store = store
        self._binary = binary
        self._directory = directory
        self._processors = Processors()
        real = [planned for planned in missing if self.takes(planned)]
        processors = len(self._processors.usable)
        self._admission = Admission(real, processors=processors, jobs=jobs)
        self._note_earlier_sessions(real)
        budget = WaitingBudget.strictest(planned.budget for planned in store.plan.kinds if self.takes(planned))
        self._concurrency = ConcurrencyControl(budget, processors=processors, cells=len(real), jobs=jobs)
        self._next_start = 0.0

    def takes(self, planned: PlannedCell) -> bool:
        """Every repetition on the machine's clock."""
        return not planned.is_virtual

    def add(self, added: Sequence[PlannedCell]) -> None:
        """Appends to the queue."""
        self._admission.extend(added)

    def __len__(self) -> int:
        return len(self._admission)

    def next(self, running: Sequence[RunningCell]) -> Admitted | None:
        """The next admitted repetition, at most one in START_S."""
        now = time.monotonic()
        if running and now < self._next_start:
            return None
        alone = any(cell.alone for cell in running)
        planned = [cell.planned for cell in running]
        admitted = self._admission.next(planned, limit=self._concurrency.limit, alone=alone)
        if admitted is not None:
            self._next_start = now + START_S
        return admitted

    def next_wakeup(self) -> float:
        """When the next one may start."""
        return self._next_start if len(self._admission) else math.inf

    def start(self, asked: Start) -> Launched:
        """Starts a process, on its own processors if there are enough."""
        beside = asked.admitted.beside
        placement = self._processors.place(asked.planned.backend, beside=beside)
        heartbeat = {"heartbeat_ns": HEARTBEAT_NS} if beside else {}
        cell = asked.cell(placement=placement, **heartbeat)
        process = CellProcess(cell, binary=self._binary, on_event=asked.on_event, directory=self._directory)
        return Launched(process, placement, self._admission.attempts(asked.planned) + 1)

    def handle_event(self, planned: PlannedCell, event: CellEvent) -> None:
        """Takes the reported fidelity."""
        if isinstance(event, Progress) and event.fidelity is not None:
            self._concurrency.handle(planned.key, Counters.of(event.elapsed_ns, event.fidelity))

    def handle_end(self, cell: RunningCell) -> None:
        """Gives its processors to others."""
        self._processors.release(cell.started.placement)
        self._concurrency.forget(cell.planned.key)

    def is_to_repeat(self, cell: RunningCell, end: CellEnd, *, is_last: bool) -> bool:
        """Fidelity alone decides, never measurements."""
        if end.finished is None:
            return False
        self._admission.loads.learn(cell.planned, end.finished)
        kept = end.finished.kept_budget
        if kept:
            self._admission.handle_budget_kept()
        if kept is not False:
            return False
        self._concurrency.handle_budget_missed()
        if is_last:
            # Unless it was the last allowed attempt: the next session continues it.
            return cell.started.attempt < ATTEMPTS
        return self._admission.handle_budget_missed(cell.planned, alone=cell.alone)

    def end_window(self, *, running: int) -> Concurrency:
        """Ends the window; it decides the next one's concurrency."""
        return self._concurrency.end_window(running=running)

    def obstacle(self) -> EngineError | None:
        """An unattainable fidelity budget, with figures."""
        tried = self._admission.unattainable
        if not tried or not len(self._admission):
            return None
        results = self._store.results()
        finished = {planned.key: results[planned.key].finished for planned in tried}
        figures = [f"{key}: {'; '.join(result.reasons) if result else 'no result'}" for key, result in finished.items()]
        return EngineError(
            f"no cell of this run keeps the fidelity budget, not even alone: {' · '.join(figures)}",
            hint=_hint([result.fidelity for result in finished.values() if result and result.fidelity]),
        )

    def _note_earlier_sessions(self, missing: Sequence[PlannedCell]) -> None:
        """Whether an earlier session kept the budget, and how often a missing repetition missed it."""
        if missing and any(
            result.finished is not None and result.finished.kept_budget for result in self._store.iter_results()
        ):
            self._admission.handle_budget_kept()
        missed = CellsFolder(self._store.directory, self._store.manifest.id).missed()
        for planned in missing:
            if missed[planned.key]:
                self._admission.note_earlier_attempts(planned, missed[planned.key])


def _hint(missed: Sequence[Fidelity]) -> str:
    """The remedy for missed budgets: wider ones, for the missed keys."""
    asked = "ask for less (a lower rate, fewer connections)"
    worst: dict[str, int | float] = {}
    for key, value in (pair for fidelity in missed for pair in fidelity.missed_keys.items()):
        worst[key] = max(value, worst.get(key, 0))
    if not worst:
        return asked
    # Twice the measured value: another repetition misses by another amount.
    wider = {
        key: format_duration(2 * value) if isinstance(value, int) else f"{min(100, math.ceil(200 * value))}%"
        for key, value in worst.items()
    }
    options = " ".join(f"--set budget.{key}={text}" for key, text in wider.items())
    return f"{asked}, or for a budget that this machine can keep: {options}"
