"""A cell that is running: its process, its directory, and what the selector watches of it."""

import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from crosswind.cell.events import Event
from crosswind.cell.placement import Placement
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.result import Finished
from crosswind.errors import EngineError
from crosswind.execution.guests import Seat
from crosswind.execution.stops import StopRequests
from crosswind.store.plan import PlannedCell
from crosswind.store.result import CellResult

VIRTUAL_HEARTBEAT_NS = 10_000_000_000
"""How often a cell in virtual time reports its progress, of its own time."""

HEARTBEAT_NS = 500_000_000
"""How often a cell that others run beside reports its progress; one that runs alone does so twice as often."""


@dataclass
class RunningCell:
    """One repetition under way.

    Attributes: part: the directory it writes into. beside: most other cells that ran at the same time, so far.
        alone: whether nothing may run beside it. attempt: from 1. seat: where it runs in virtual time.
    """

    planned: PlannedCell
    part: Path
    started: str
    process: CellProcess
    placement: Placement
    beside: int
    alone: bool
    attempt: int
    seat: Seat | None = None
    _watched: list[IO[bytes]] = field(default_factory=list)

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Has the selector follow which of the process's streams are open.

        To be called whenever that may have changed, before anything else is opened: the system gives the numbers of
        closed streams to new ones.
        """
        wanted = self.process.streams()
        for stream in self._watched:
            if stream not in wanted:
                selector.unregister(stream)
        for stream in wanted:
            if stream not in self._watched:
                selector.register(stream, selectors.EVENT_READ, self)
        self._watched = wanted

    def is_watched(self, stream: object) -> bool:
        """Whether a stream that the selector found readable is still this cell's."""
        return stream in self._watched

    def result(self, end: CellEnd, *, ended: str) -> CellResult:
        """What is stored of it."""
        return CellResult(
            planned=self.planned,
            placement=self.placement,
            beside=self.beside,
            attempt=self.attempt,
            started=self.started,
            ended=ended,
            elapsed_ns=end.elapsed_ns,
            finished=end.finished,
            failure=end.failure,
        )


def start_process(
    planned: PlannedCell,
    directory: Path,
    placement: Placement,
    seat: Seat | None,
    *,
    binary: Path,
    on_event: Callable[[Event], None],
    beside: int,
) -> CellProcess:
    """Starts the process of a cell, which writes into `directory`. Raises: EngineError when it cannot be started."""
    return CellProcess(
        cell_as_sent(planned, directory, placement, beside=beside),
        binary=binary,
        on_event=on_event,
        template=seat.template if seat else None,
        cpu=seat.cpu if seat else None,
    )


def cell_as_sent(planned: PlannedCell, directory: Path, placement: Placement, *, beside: int) -> Mapping[str, Any]:
    """The cell as sent to the process: the plan's, with where to write and where to run."""
    output = {**planned.parameters.get("output", {}), "directory": str(directory.absolute())}
    if planned.is_virtual:
        return {**planned.parameters, "output": output, "heartbeat_ns": VIRTUAL_HEARTBEAT_NS}
    heartbeat = {"heartbeat_ns": HEARTBEAT_NS} if beside else {}
    return {**planned.parameters, "output": output, "placement": placement.as_json(), **heartbeat}


def run_alone(
    cell: Mapping[str, Any], *, binary: Path, on_event: Callable[[Event], None] = lambda _event: None
) -> Finished:
    """Runs a cell that belongs to no run, to its end. Raises: EngineError when it has no result."""
    process = CellProcess(cell, binary=binary, on_event=on_event)
    try:
        end = followed(process)
    finally:
        process.kill()
    if end.failure is not None:
        raise EngineError(end.failure.message, hint=end.failure.hint)
    assert end.finished is not None
    return end.finished


def followed(process: CellProcess, stops: StopRequests | None = None) -> CellEnd:
    """How a cell that nothing runs beside ended, once it has. Each request of `stops` interrupts it once."""
    while not process.done:
        with selectors.DefaultSelector() as selector:
            for stream in process.streams():
                selector.register(stream, selectors.EVENT_READ)
            if stops is not None:
                selector.register(stops, selectors.EVENT_READ)
            ready = selector.select(max(0.0, process.next_wakeup() - time.monotonic()))
        for key, _ in ready:
            if key.fileobj in process.streams():
                process.handle_readable(key.fileobj)
            elif stops is not None and key.fileobj is stops:
                for _ in range(stops.take()):
                    process.interrupt()
        if not process.done and time.monotonic() >= process.next_wakeup():
            process.handle_time(time.monotonic())
    return process.end()
