"""Runs a store's missing repetitions: starts cells, follows them, commits each at its end.

One loop owns everything. It starts admitted cells, waits for input or time, hands both to their cell, and tells
observers. A failed cell is committed as failed and the run goes on; only an error common to all cells (no privilege, a
full disk, an unattainable budget) ends it.
"""

import selectors
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from crosswind.cell.events import CellEvent
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.process import CellEnd
from crosswind.errors import CrosswindError, DiskError, EngineError
from crosswind.execution.admission import Admitted
from crosswind.execution.concurrency import WINDOW_S
from crosswind.execution.growth import Growth
from crosswind.execution.observer import Observer
from crosswind.execution.processors import Processors, restore
from crosswind.execution.stops import StopRequests
from crosswind.execution.workers.registry import workers_of
from crosswind.execution.workers.worker import RunningCell, Start, Worker, worker_for
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.manifest import ClockJump, Status
from crosswind.store.wallclock import WallClock

_BEHIND_S = 0.02
"""Interval for checking a slow object store's queue."""
_STOPS_THAT_KILL = 2
_ENDING_WINDOW_S = 0.1
"""Windows while a run ends, to kill overdue cells in time."""

_RUN_ENDING: dict[ErrorKind, type[CrosswindError]] = {
    ErrorKind.PRIVILEGE: EngineError,
    ErrorKind.DISK: DiskError,
    ErrorKind.NETWORK: EngineError,
}
"""Failures common to every further cell."""


class Scheduler:
    """One session of a run.

    Args: store: open for writing. binary: crosswind-cell. observers: see everything.
        jobs: fixed concurrency; None for as many as the fidelity budget allows.
        on: the cluster; None for this machine.
        growth: extends the plan after each round; None for a fixed plan.
    """

    def __init__(
        self,
        store: Store,
        binary: Path,
        observers: Sequence[Observer] = (),
        *,
        jobs: int | None = None,
        on: str | None = None,
        clock: WallClock | None = None,
        growth: Growth | None = None,
    ) -> None:
        self.store = store
        self._growth = growth
        self.clock_jumps: list[ClockJump] = []
        self._cells = CellsFolder(store.directory, store.manifest.id, store.uploads)
        self._uploads = store.uploads
        self._observers = observers
        self._clock = clock or WallClock()
        self._workers = workers_of(store, binary=binary, jobs=jobs, on=on)
        self._running: dict[str, RunningCell] = {}
        self._ended: deque[tuple[RunningCell, CellEnd, str]] = deque()
        self._fatal: CrosswindError | None = None
        self._stops = StopRequests()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stops, selectors.EVENT_READ)
        self._next_window = 0.0

    def run(self) -> Status:
        """Runs until nothing is missing or `stop` was called. Returns DONE or INTERRUPTED.

        Raises: EngineError, DiskError when no further cell could run. Finished cells stay.
        """
        for observer in self._observers:
            observer.run_started(self.store.manifest.name, self.store.plan, self.store.missing())
        # A cell without an emulator has all processors, inherited from this process.
        emulated = any(not planned.is_over_network for planned in self.store.plan)
        before = Processors().leave_to_emulators() if emulated else None
        try:
            self._loop()
            self._finish_sending()
        except CrosswindError as error:
            self._fatal = self._fatal or error
        finally:
            self._abandon()
            for worker in self._workers:
                worker.close()
            if before is not None:
                restore(before)
            self._selector.close()
            self._stops.close()
            for observer in self._observers:
                observer.run_ended()
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
        while self._running or ((any(map(len, self._workers)) or self._grow()) and not self._ending):
            if self._fatal is None and self._uploads is not None and (problem := self._uploads.problem()) is not None:
                self._end_run(problem)
            self._start_what_may()
            self._wait()
            self._keep_ended()

    def _finish_sending(self) -> None:
        """Waits until an object store has everything, or somebody asks for the second time to stop."""
        if self._uploads is None:
            return
        while self._uploads.is_at_work and self._stops.count < _STOPS_THAT_KILL:
            if self._selector.select(_BEHIND_S):
                self._stops.take()
        if self._fatal is None:
            self._fatal = self._uploads.problem()

    def _grow(self) -> bool:
        """Adds repetitions by the study's design. Returns whether any remain to run."""
        if self._growth is None or self._ending:
            return False
        added = self._growth.next_cells()
        state = self._growth.state()
        for observer in self._observers:
            if state:
                observer.precision(state)
            if added:
                observer.plan_grew(added)
        for planned in added:
            worker_for(planned, self._workers).add([planned])
        return bool(added)

    @property
    def _ending(self) -> bool:
        return self._stops.count > 0 or self._fatal is not None

    @property
    def _is_behind(self) -> bool:
        return self._uploads is not None and self._uploads.is_behind

    def _start_what_may(self) -> None:
        while not (self._ending or self._is_behind) and (admitted := self._admitted()) is not None:
            self._start(*admitted)

    def _admitted(self) -> tuple[Worker, Admitted] | None:
        running = list(self._running.values())
        for worker in self._workers:
            admitted = worker.next(running)
            if admitted is not None:
                return worker, admitted
            if worker.has_machine_to_itself and (len(worker) or any(cell.worker is worker for cell in running)):
                return None
        return None

    def _start(self, worker: Worker, admitted: Admitted) -> None:
        planned = admitted.planned
        part = self._cells.begin(planned.key)

        def handle_event(event: CellEvent) -> None:
            worker.handle_event(planned, event)
            for observer in self._observers:
                observer.cell_event(planned, event)

        try:
            started = worker.start(Start(admitted, part, handle_event))
        except EngineError:
            self._cells.discard(part)
            raise
        stamp, beside = self._clock.stamp(), len(self._running)
        cell = RunningCell(planned, part, worker, started, stamp, beside, alone=not admitted.beside)
        for other in self._running.values():
            other.beside = max(other.beside, len(self._running))
        self._running[planned.key] = cell
        cell.watch(self._selector)
        for observer in self._observers:
            observer.cell_started(planned)

    def _wait(self) -> None:
        now = time.monotonic()
        due = self._next_window
        if self._is_behind:
            due = min(due, now + _BEHIND_S)
        if not self._ending:
            due = min([due, *(at for worker in self._workers if (at := worker.next_wakeup()) > now)])
        for key, _ in self._selector.select(max(0.0, due - now)):
            cell = key.data
            if cell is None:
                self._handle_stops(self._stops.take())
            elif cell.is_watched(key.fileobj):
                cell.execution.handle_readable(key.fileobj)
                cell.watch(self._selector)
        now = time.monotonic()
        if now >= self._next_window:
            self._next_window = now + (_ENDING_WINDOW_S if self._ending else WINDOW_S)
            self._handle_time(now)

    def _handle_time(self, now: float) -> None:
        for cell in self._running.values():
            if not cell.execution.done and now >= cell.execution.next_wakeup():
                cell.execution.handle_time(now)
                cell.watch(self._selector)
        if (by := self._clock.jump()) is not None:
            self.clock_jumps.append(ClockJump(self._clock.stamp(), round(by, 3)))
            for observer in self._observers:
                observer.remark(
                    f"the machine's clock was set by {by:+.1f} s, or it slept; times measured are not affected"
                )
        for worker in self._workers:
            window = worker.end_window(running=len(self._running))
            if window is not None:
                for observer in self._observers:
                    observer.concurrency(window)

    def _handle_stops(self, count: int) -> None:
        for _ in range(count):
            self._interrupt_all()
        # Overdue cells are killed at a window's end.
        self._next_window = time.monotonic()

    def _interrupt_all(self) -> None:
        for cell in self._running.values():
            cell.execution.interrupt()
            cell.watch(self._selector)

    # A cell's end

    def _keep_ended(self) -> None:
        """Keeps the files of ended cells, and where that disturbs nobody, starts the next ones before."""
        for cell in [cell for cell in self._running.values() if cell.execution.done]:
            del self._running[cell.planned.key]
            self._ended.append((cell, cell.execution.end(), self._clock.stamp()))
            cell.watch(self._selector)
            cell.worker.handle_end(cell)
        try:
            if self._ended and all(cell.worker.is_undisturbed and not end.failure for cell, end, _ in self._ended):
                self._start_what_may()
        finally:
            while self._ended:
                self._end(*self._ended.popleft())

    def _end(self, cell: RunningCell, end: CellEnd, stamp: str) -> None:
        failure = end.failure
        if failure is not None and self._ending:
            # The run's end caused the failure; the cell is not to blame.
            self._cells.discard(cell.part)
            return
        if failure is not None and failure.kind in _RUN_ENDING:
            self._cells.discard(cell.part)
            self._end_run(_RUN_ENDING[failure.kind](failure.message, hint=failure.hint))
            return
        try:
            if cell.worker.is_to_repeat(cell, end, is_last=self._ending):
                self._cells.commit_missed(cell.part, cell.result(end, ended=stamp))
                for observer in self._observers:
                    observer.cell_repeated(cell.planned, end)
                return
            self._cells.commit(cell.part, cell.result(end, ended=stamp))
        except EngineError as error:
            end = CellEnd(None, Failure(ErrorKind.PROTOCOL, error.message, error.hint), end.elapsed_ns)
            self._cells.commit_failed(cell.part, cell.result(end, ended=stamp))
        for observer in self._observers:
            observer.cell_ended(cell.planned, end)
        obstacle = cell.worker.obstacle()
        if obstacle is not None:
            self._end_run(obstacle)

    def _end_run(self, error: CrosswindError) -> None:
        self._fatal = error
        self._interrupt_all()

    def _abandon(self) -> None:
        for cell in self._running.values():
            cell.execution.kill()
            cell.execution.end()
            self._cells.discard(cell.part)
        self._running.clear()
        for cell, _, _ in self._ended:
            self._cells.discard(cell.part)
        self._ended.clear()
