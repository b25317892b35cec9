"""Runs a study's repetitions one after another, each once, for a user watching the client.

`session` decides concurrency and retries by fidelity. A user's own program is to start once: a repetition over its
fidelity budget says so, and stays.
"""

from collections.abc import Callable
from pathlib import Path

from crosswind.cell.binary import find_binary
from crosswind.cell.streams import ClientStreams
from crosswind.execution.admission import Admitted
from crosswind.execution.options import RunOptions
from crosswind.execution.processors import Processors, restore
from crosswind.execution.session import note_end, start
from crosswind.execution.stops import StopRequests, stopped_by_signals
from crosswind.execution.workers.registry import workers_of
from crosswind.execution.workers.worker import RunningCell, Start, followed, worker_for
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult
from crosswind.store.run import StoredRun
from crosswind.store.wallclock import utc_now
from crosswind.study.design import Study

Look = Callable[[Path], None]
"""Called at a repetition's end, with its directory."""


def run_in_turn(study: Study, options: RunOptions, streams: ClientStreams | None, look: Look) -> StoredRun:
    """Runs a study in a new directory, to its end, to the first failed repetition, or until SIGINT or SIGTERM.

    Args: streams: for clients on the real clock; virtual-time clients write to files. look: sees each repetition before
        it is stored.
    Raises: StudyError, StoreError, EngineError, DiskError as `crosswind.run` does.
    """
    with start(study, options) as store:
        status = Status.STOPPED
        stops = StopRequests()
        turns = _Turns(store, stops, streams)
        try:
            with stopped_by_signals(stops.request):
                status = turns.run(look)
        finally:
            turns.close()
            stops.close()
            store.set_status(status)
            note_end(store, ())
    return StoredRun(store)


class _Turns:
    """A store's missing repetitions."""

    def __init__(self, store: Store, stops: StopRequests, streams: ClientStreams | None) -> None:
        self._cells = CellsFolder(store.directory, store.manifest.id, store.uploads)
        self._stops = stops
        self._streams = streams
        self._missing = store.missing()
        self._workers = workers_of(store, binary=find_binary(), jobs=1)

    def run(self, look: Look) -> Status:
        """Returns how far it got."""
        before = Processors().leave_to_emulators()
        try:
            for planned in self._missing:
                part = self._cells.begin(planned.key)
                result = self._result(planned, part)
                if self._stops.count and result.finished is None:
                    self._cells.discard(part)
                    return Status.INTERRUPTED
                look(part)
                self._cells.commit(part, result)
                if result.finished is None:
                    return Status.STOPPED
        finally:
            restore(before)
        return Status.DONE

    def close(self) -> None:
        """Ends the virtual-time kernels."""
        for worker in self._workers:
            worker.close()

    def _result(self, planned: PlannedCell, part: Path) -> RepetitionResult:
        """Runs one repetition."""
        worker = worker_for(planned, self._workers)
        streams = None if planned.is_virtual else self._streams
        output = {"client_whole": True} if streams is None else streams.as_json()
        started_at = utc_now()
        started = worker.start(Start(Admitted(planned, beside=0), part, lambda _event: None, output))
        cell = RunningCell(planned, part, worker, started, started_at)
        try:
            end = followed(started.execution, self._stops)
        finally:
            started.execution.kill()
            worker.handle_end(cell)
            if streams is not None:
                streams.restore()
        return cell.result(end, ended=utc_now())
