"""A worker runs planned repetitions: it accepts some, admits them, and starts them.

The scheduler asks its workers in order, follows their cells, and stores the files. It knows of no clock, processor or
kernel. A new kind of worker is a class with the methods of `Worker`, and a line in `workers_of`.
"""

import math
import selectors
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from crosswind.catalog.tables import PARTS
from crosswind.cell.events import CellEvent
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.result import Finished
from crosswind.errors import EngineError
from crosswind.execution.admission import Admitted
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.processors import Placement
from crosswind.execution.stops import StopRequests
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult


class Execution(Protocol):
    """A repetition under way. It never blocks: its owner watches `streams` for input and `next_wakeup` for the time."""

    @property
    def done(self) -> bool:
        """Whether `end` may be called."""

    def streams(self) -> list[IO[bytes]]:
        """Streams to watch for input. Changes when one ends."""

    def next_wakeup(self) -> float:
        """When (time.monotonic) to call `handle_time`."""

    def handle_readable(self, stream: IO[bytes]) -> None:
        """Reads from one of `streams`, and passes events on."""

    def handle_time(self, now: float) -> None:
        """Ends overdue work."""

    def interrupt(self) -> None:
        """Asks it to end; the second call kills it."""

    def kill(self) -> None:
        """Ends it now."""

    def end(self) -> CellEnd:
        """How it ended. All its files are in its directory then."""


@dataclass(frozen=True)
class Start:
    """A request to a worker.

    Attributes: directory: to write into. on_event: hears its reports. output: for the cell's `output`, beside the
        directory (docs/cell-protocol.md).
    """

    admitted: Admitted
    directory: Path
    on_event: Callable[[CellEvent], None]
    output: Mapping[str, Any] = field(default_factory=dict)

    @property
    def planned(self) -> PlannedCell:
        """The repetition."""
        return self.admitted.planned

    def cell(self, **fields: object) -> dict[str, Any]:
        """The cell for a process, with a worker's additions."""
        return sent(self.planned, self.directory, self.output, **fields)


@dataclass(frozen=True)
class Launched:
    """A started repetition. Attributes: placement: on this machine. attempt: from 1."""

    execution: Execution
    placement: Placement = field(default_factory=Placement)
    attempt: int = 1


class Worker(ABC):
    """Runs repetitions in one place.

    Attributes:
        has_machine_to_itself: whether no later worker may run anything while this one has something to run.
        is_undisturbed: whether its cells' results stay the same whatever this process does beside them.
    """

    has_machine_to_itself = False
    is_undisturbed = False

    @abstractmethod
    def takes(self, planned: PlannedCell) -> bool:
        """Whether it can run a repetition."""

    @abstractmethod
    def add(self, added: Sequence[PlannedCell]) -> None:
        """Adds accepted repetitions."""

    @abstractmethod
    def __len__(self) -> int:
        """How many repetitions wait."""

    @abstractmethod
    def next(self, running: Sequence["RunningCell"]) -> Admitted | None:
        """The next repetition, if one may start now. Asked again after a cell's end, and at `next_wakeup`."""

    def next_wakeup(self) -> float:
        """The time (time.monotonic) to ask again without a cell's end; infinite for never."""
        return math.inf

    @abstractmethod
    def start(self, asked: Start) -> Launched:
        """Starts a repetition. Raises: EngineError when nothing can be started."""

    def handle_event(self, planned: PlannedCell, event: CellEvent) -> None:  # noqa: B027
        """A repetition's report."""

    def handle_end(self, cell: "RunningCell") -> None:  # noqa: B027
        """A repetition's end, however it came."""

    def is_to_repeat(self, cell: "RunningCell", end: CellEnd, *, is_last: bool) -> bool:  # noqa: ARG002
        """Whether an ended repetition is to run again. Args: is_last: whether the session ends."""
        return False

    def end_window(self, *, running: int) -> Concurrency | None:  # noqa: ARG002
        """Ends a window with so many running cells. Returns its summary, if the worker makes one."""
        return None

    def obstacle(self) -> EngineError | None:
        """An error common to all waiting repetitions."""
        return None

    def close(self) -> None:  # noqa: B027
        """Releases its resources."""


@dataclass
class RunningCell:
    """One repetition under way.

    Attributes: part: its directory. beside: maximum number of concurrent others, so far. alone: whether it must stay
        alone.
    """

    planned: PlannedCell
    part: Path
    worker: Worker
    started: Launched
    started_at: str
    beside: int = 0
    alone: bool = True
    _watched: list[IO[bytes]] = field(default_factory=list)

    @property
    def execution(self) -> Execution:
        """The worker's execution."""
        return self.started.execution

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Updates the selector to its open streams.

        To be called after each possible change, before anything else is opened: the system reuses closed streams'
        numbers.
        """
        wanted = self.execution.streams()
        for stream in self._watched:
            if stream not in wanted:
                selector.unregister(stream)
        for stream in wanted:
            if stream not in self._watched:
                selector.register(stream, selectors.EVENT_READ, self)
        self._watched = wanted

    def is_watched(self, stream: object) -> bool:
        """Whether a readable stream is still this cell's."""
        return stream in self._watched

    def result(self, end: CellEnd, *, ended: str) -> RepetitionResult:
        """The result to store."""
        return RepetitionResult(
            planned=self.planned,
            placement=self.started.placement,
            beside=self.beside,
            attempt=self.started.attempt,
            started=self.started_at,
            ended=ended,
            elapsed_ns=end.elapsed_ns,
            finished=end.finished,
            failure=end.failure,
            machine=end.machine,
            keeping_ns={} if end.parts_ns is None else {PARTS: end.parts_ns},
        )


def sent(
    planned: PlannedCell, directory: Path, output: Mapping[str, Any] | None = None, **fields: object
) -> dict[str, Any]:
    """The cell for a process: the plan's, with its directory and a worker's additions."""
    written = {**planned.parameters.get("output", {}), "directory": str(directory.absolute()), **(output or {})}
    return {**planned.parameters, "output": written, **fields}


def worker_for(planned: PlannedCell, workers: Iterable[Worker]) -> Worker:
    """The first worker accepting a repetition. Raises: EngineError without one."""
    for worker in workers:
        if worker.takes(planned):
            return worker
    raise EngineError(f"nothing here runs {planned.key}", hint="`crosswind doctor`")


def followed(execution: Execution, stops: StopRequests | None = None) -> CellEnd:
    """How a lone cell ended, after waiting. Each request in `stops` interrupts it once."""
    while not execution.done:
        with selectors.DefaultSelector() as selector:
            for stream in execution.streams():
                selector.register(stream, selectors.EVENT_READ)
            if stops is not None:
                selector.register(stops, selectors.EVENT_READ)
            ready = selector.select(max(0.0, execution.next_wakeup() - time.monotonic()))
        for key, _ in ready:
            if stops is not None and key.fileobj is stops:
                for _ in range(stops.take()):
                    execution.interrupt()
                continue
            for stream in execution.streams():
                if stream is key.fileobj:
                    execution.handle_readable(stream)
        if not execution.done and time.monotonic() >= execution.next_wakeup():
            execution.handle_time(time.monotonic())
    return execution.end()


def run_alone(
    cell: Mapping[str, Any], *, binary: Path, on_event: Callable[[CellEvent], None] = lambda _event: None
) -> Finished:
    """Runs a cell outside any run, to its end. Raises: EngineError without a result."""
    process = CellProcess(cell, binary=binary, on_event=on_event)
    try:
        end = followed(process)
    finally:
        process.kill()
    if end.failure is not None:
        raise EngineError(end.failure.message, hint=end.failure.hint)
    assert end.finished is not None
    return end.finished
