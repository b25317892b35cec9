"""Runs what a store still misses: starts cells, follows them, commits each as it ends.

One loop owns everything. It starts what admission lets in, waits for input or time, hands both to the cell they belong
to, and turns what cells report of their fidelity into the number that may run at a time. A cell that fails is committed
as failed and the run goes on; only what would fail every cell alike (no privilege, a full disk, a budget that no cell
can keep) ends it.
"""

import selectors
import time
from pathlib import Path

from crosswind.cell.events import Event, Progress
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.placement import Placement
from crosswind.cell.process import CellEnd
from crosswind.errors import CrosswindError, DiskError, EngineError
from crosswind.execution.admission import ATTEMPTS, Admission, Admitted
from crosswind.execution.budget_history import note_earlier_sessions, unattainable_budget
from crosswind.execution.concurrency import WINDOW_S, Budget, ConcurrencyControl, Counters
from crosswind.execution.durations import Taken
from crosswind.execution.growth import Growth
from crosswind.execution.guests import Seat, VirtualQueue
from crosswind.execution.observer import Observer
from crosswind.execution.processors import Processors, restore
from crosswind.execution.running import RunningCell, start_process
from crosswind.execution.stops import StopRequests
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.manifest import ClockJump, Status
from crosswind.store.result import CellResult
from crosswind.store.wallclock import WallClock

START_S = 0.025
"""Between two starts. One takes some 10 ms of processor time, for which other cells would have to wait."""

_ENDING_WINDOW_S = 0.1
"""Windows while a run ends, so that cells that do not end are killed in time."""

_RUN_ENDING: dict[ErrorKind, type[CrosswindError]] = {
    ErrorKind.PRIVILEGE: EngineError,
    ErrorKind.DISK: DiskError,
    ErrorKind.NETWORK: EngineError,
}
"""Failures that every further cell would share."""


class Scheduler:
    """One session of a run.

    Args: store: open for writing. binary: of crosswind-cell. observer: sees everything.
        jobs: cells at a time, fixed by hand; None for as many as the fidelity budget allows.
        growth: adds repetitions to the plan whenever all of it was run; None for a plan that stays as it is.
    """

    def __init__(
        self,
        store: Store,
        binary: Path,
        observer: Observer,
        *,
        jobs: int | None = None,
        clock: WallClock | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.store = store
        self._growth = growth
        self.clock_jumps: list[ClockJump] = []
        self.taken = Taken()
        """What this session's repetitions took, without attempts that did not count."""
        self._cells = CellsFolder(store.directory, store.manifest.id)
        self._binary = binary
        self._observer = observer
        self._clock = clock or WallClock()
        self._processors = Processors()
        self._running: dict[str, RunningCell] = {}
        self._fatal: CrosswindError | None = None
        self._stops = StopRequests()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stops, selectors.EVENT_READ)
        missing = store.missing()
        real = [planned for planned in missing if not planned.is_virtual]
        self._virtual = VirtualQueue(
            (planned for planned in missing if planned.is_virtual),
            processors=self._processors.usable,
            binary=binary,
            jobs=jobs,
        )
        processors = len(self._processors.usable)
        self._admission = Admission(real, processors=processors, jobs=jobs)
        note_earlier_sessions(self._admission, real, store)
        budget = Budget.strictest(planned.budget for planned in store.plan if not planned.is_virtual)
        self._concurrency = ConcurrencyControl(budget, processors=processors, cells=len(real), jobs=jobs)
        self._next_start = self._next_window = 0.0

    def run(self) -> Status:
        """Runs until nothing is missing or `stop` was called. Returns how far it got: to the end, or interrupted.

        Raises: EngineError, DiskError when no cell could run after this one. What was finished stays.
        """
        self._observer.run_started(self.store.manifest.name, self.store.plan, self.store.missing())
        # A cell without an emulator has all processors, which it inherits from this process.
        emulated = any(not planned.is_over_network for planned in self.store.plan)
        before = self._processors.leave_to_emulators() if emulated else None
        try:
            self._loop()
        except CrosswindError as error:
            self._fatal = self._fatal or error
        finally:
            self._abandon()
            self._virtual.close()
            if before is not None:
                restore(before)
            self._selector.close()
            self._stops.close()
            self._observer.run_ended()
        status = Status.STOPPED if self._fatal else Status.INTERRUPTED if self._stops.count else Status.DONE
        try:
            self.store.set_status(status)
        except DiskError as error:
            self._fatal = self._fatal or error
        if self._fatal:
            raise self._fatal
        return status

    def stop(self) -> None:
        """Ends the run: cells are asked to end; the second call kills them. Callable from a signal handler."""
        self._stops.request()

    # The loop

    def _loop(self) -> None:
        self._next_window = time.monotonic() + WINDOW_S
        while self._running or ((self._has_waiting or self._grow()) and not self._ending):
            self._start_what_may()
            self._wait()
            for cell in [cell for cell in self._running.values() if cell.process.done]:
                del self._running[cell.planned.key]
                self._end(cell, cell.process.end())

    @property
    def _has_waiting(self) -> bool:
        return bool(len(self._admission) or len(self._virtual))

    def _grow(self) -> bool:
        """Adds what the precision of the study takes. Returns whether there is more to run."""
        if self._growth is None or self._ending:
            return False
        added = self._growth.next_cells()
        self._observer.precision(self._growth.state())
        if added:
            self._observer.plan_grew(added)
            self._admission.extend([planned for planned in added if not planned.is_virtual])
            self._virtual.extend(planned for planned in added if planned.is_virtual)
        return bool(added)

    @property
    def _ending(self) -> bool:
        return self._stops.count > 0 or self._fatal is not None

    def _start_what_may(self) -> None:
        while not self._ending:
            now = time.monotonic()
            if self._running and now < self._next_start:
                return
            running = [cell.planned for cell in self._running.values()]
            alone = any(cell.alone for cell in self._running.values())
            admitted = self._admission.next(running, limit=self._concurrency.limit, alone=alone)
            if admitted is None:
                break
            self._start(admitted)
            self._next_start = now + START_S
        # What is measured on the machine's clock has the machine to itself.
        while not self._ending and not len(self._admission) and all(cell.seat for cell in self._running.values()):
            virtual = self._virtual.next()
            if virtual is None:
                return
            planned, seat = virtual
            self._start(Admitted(planned, beside=len(self._running)), seat)

    def _start(self, admitted: Admitted, seat: Seat | None = None) -> None:
        planned = admitted.planned
        part = self._cells.begin(planned.key)
        placement = Placement() if seat else self._processors.place(planned.backend, beside=admitted.beside)

        def handle_event(event: Event) -> None:
            if seat is None and isinstance(event, Progress) and event.fidelity is not None:
                self._concurrency.handle_report(planned.key, Counters.of(event.elapsed_ns, event.fidelity))
            self._observer.cell_event(planned, event)

        try:
            process = start_process(
                planned, part, placement, seat, binary=self._binary, on_event=handle_event, beside=admitted.beside
            )
        except EngineError:
            self._cells.discard(part)
            raise
        started, beside, alone = self._clock.stamp(), len(self._running), not admitted.beside
        attempt = self._admission.attempts(planned) + 1
        cell = RunningCell(planned, part, started, process, placement, beside, alone, attempt, seat)
        for other in self._running.values():
            other.beside = max(other.beside, len(self._running))
        self._running[planned.key] = cell
        cell.watch(self._selector)
        self._observer.cell_started(planned)

    def _wait(self) -> None:
        now = time.monotonic()
        due = self._next_window
        if len(self._admission) and not self._ending and now < self._next_start:
            due = min(due, self._next_start)
        for key, _ in self._selector.select(max(0.0, due - now)):
            cell = key.data
            if cell is None:
                self._handle_stops(self._stops.take())
            elif cell.is_watched(key.fileobj):
                cell.process.handle_readable(key.fileobj)
                cell.watch(self._selector)
        now = time.monotonic()
        if now >= self._next_window:
            self._next_window = now + (_ENDING_WINDOW_S if self._ending else WINDOW_S)
            self._handle_time(now)

    def _handle_time(self, now: float) -> None:
        for cell in self._running.values():
            if not cell.process.done and now >= cell.process.next_wakeup():
                cell.process.handle_time(now)
                cell.watch(self._selector)
        if (by := self._clock.jump()) is not None:
            self.clock_jumps.append(ClockJump(self._clock.stamp(), round(by, 3)))
            self._observer.remark(
                f"the machine's clock was set by {by:+.1f} s, or it slept; times measured are not affected"
            )
        self._observer.concurrency(self._concurrency.end_window(running=len(self._running)))

    def _handle_stops(self, count: int) -> None:
        for _ in range(count):
            self._interrupt_all()
        # Those that do not end in time are killed when a window is over.
        self._next_window = time.monotonic()

    def _interrupt_all(self) -> None:
        for cell in self._running.values():
            cell.process.interrupt()
            cell.watch(self._selector)

    # The end of a cell

    def _end(self, cell: RunningCell, end: CellEnd) -> None:
        cell.watch(self._selector)
        self._processors.release(cell.placement)
        if cell.seat:
            self._virtual.release(cell.seat)
        self._concurrency.handle_end(cell.planned.key)
        failure = end.failure
        if failure is not None and self._ending:
            # The run's end made it fail, which says nothing about the cell.
            self._cells.discard(cell.part)
            return
        if failure is not None and failure.kind in _RUN_ENDING:
            self._cells.discard(cell.part)
            self._end_run(_RUN_ENDING[failure.kind](failure.message, hint=failure.hint))
            return
        try:
            if self._is_to_repeat(cell, end):
                self._cells.commit_missed(cell.part, self._result(cell, end))
                self._observer.cell_repeated(cell.planned, end)
                return
            self._cells.commit(cell.part, self._result(cell, end))
        except EngineError as error:
            end = CellEnd(None, Failure(ErrorKind.PROTOCOL, error.message, error.hint), end.elapsed_ns)
            self._cells.commit_failed(cell.part, self._result(cell, end))
        self.taken.add(cell.planned, end)
        self._observer.cell_ended(cell.planned, end)
        if self._admission.unattainable and len(self._admission):
            self._end_run(unattainable_budget(self.store, self._admission.unattainable))

    def _is_to_repeat(self, cell: RunningCell, end: CellEnd) -> bool:
        """Fidelity alone decides; what was measured has no say in it."""
        if end.finished is None or cell.seat:
            return False
        self._admission.loads.learn(cell.planned, end.finished)
        kept = end.finished.kept_budget
        if kept:
            self._admission.handle_budget_kept()
        if kept is not False:
            return False
        self._concurrency.handle_budget_missed()
        if self._ending:
            # Not the last attempt that it may have: the next session goes on with it.
            return cell.attempt < ATTEMPTS
        return self._admission.handle_budget_missed(cell.planned, alone=cell.alone)

    def _result(self, cell: RunningCell, end: CellEnd) -> CellResult:
        return cell.result(end, ended=self._clock.stamp())

    def _end_run(self, error: CrosswindError) -> None:
        self._fatal = error
        self._interrupt_all()

    def _abandon(self) -> None:
        for cell in self._running.values():
            cell.process.kill()
            cell.process.end()
            self._cells.discard(cell.part)
        self._running.clear()
