"""Runs the repetitions of a study one after another, each once, for somebody who watches the client as it runs.

`session` decides by fidelity how many cells run at a time and which are run again. Whoever started a program of his own
wants it started once: what missed its fidelity budget says so, and stays.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from crosswind.cell.binary import find_binary
from crosswind.cell.placement import Placement
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.streams import ClientStreams
from crosswind.execution.guests import Seat, VirtualQueue
from crosswind.execution.processors import Processors, restore
from crosswind.execution.running import cell_as_sent, followed
from crosswind.execution.session import note_end, start
from crosswind.execution.stops import StopRequests, stopped_by_signals
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.manifest import Options, Status
from crosswind.store.plan import PlannedCell
from crosswind.store.result import CellResult
from crosswind.store.run import Run
from crosswind.store.wallclock import utc_now
from crosswind.study.design import Study

Look = Callable[[Path], None]
"""Is called when a repetition has ended, with the directory that it wrote into."""


def run_in_turn(
    study: Study,
    options: Options,
    *,
    output: Path | None,
    command: Sequence[str],
    streams: ClientStreams | None,
    look: Look,
) -> Run:
    """Runs a study in a new directory, to its end, to the first repetition that fails, or until SIGINT or SIGTERM.

    Args: output, command: as of `crosswind.run`. streams: of clients on the machine's clock; those in virtual time
        write to files. look: sees each repetition, before it is stored.
    Raises: StudyError, StoreError, EngineError, DiskError as `crosswind.run` does.
    """
    with start(study, output=output, options=options, jobs=1, command=command) as store:
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
    return Run(store)


class _Turns:
    """The repetitions that a store misses."""

    def __init__(self, store: Store, stops: StopRequests, streams: ClientStreams | None) -> None:
        self._binary = find_binary()
        self._cells = CellsFolder(store.directory, store.manifest.id)
        self._stops = stops
        self._streams = streams
        self._processors = Processors()
        self._missing = store.missing()
        self._virtual = VirtualQueue(
            (planned for planned in self._missing if planned.is_virtual),
            processors=self._processors.usable,
            binary=self._binary,
            jobs=1,
        )

    def run(self, look: Look) -> Status:
        """Returns how far it got."""
        before = self._processors.leave_to_emulators()
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
        """Ends the kernels of virtual time."""
        self._virtual.close()

    def _result(self, planned: PlannedCell, part: Path) -> CellResult:
        """Runs one repetition."""
        seat = None
        if planned.is_virtual:
            _, seat = self._virtual.next() or (planned, None)
        placement = Placement() if seat else self._processors.place(planned.backend)
        started = utc_now()
        end = self._end_of(planned, part, placement, seat)
        if seat is not None:
            self._virtual.release(seat)
        return CellResult(
            planned=planned,
            placement=placement,
            beside=0,
            attempt=1,
            started=started,
            ended=utc_now(),
            elapsed_ns=end.elapsed_ns,
            finished=end.finished,
            failure=end.failure,
        )

    def _end_of(self, planned: PlannedCell, part: Path, placement: Placement, seat: Seat | None) -> CellEnd:
        cell = cell_as_sent(planned, part, placement, beside=0)
        streams = None if seat else self._streams
        passed = {"client_whole": True} if streams is None else streams.as_json()
        cell = {**cell, "output": {**cell["output"], **passed}}
        template, cpu = (seat.template, seat.cpu) if seat else (None, None)
        process = CellProcess(cell, binary=self._binary, template=template, cpu=cpu)
        try:
            return followed(process, self._stops)
        finally:
            process.kill()
            if streams is not None:
                streams.restore()
