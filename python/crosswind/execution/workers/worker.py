"""A worker runs planned repetitions: it says which it takes, when one may start, and starts it.

The scheduler asks its workers in their order, follows what they start, and stores what it leaves. It knows of no clock,
processor or kernel. Another kind of worker is a class that does what `Worker` says, and a line in `workers_of`.
"""

import math
import selectors
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from crosswind.cell.events import CellEvent
from crosswind.cell.placement import Placement
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.result import Finished
from crosswind.errors import EngineError
from crosswind.execution.admission import Admitted
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.stops import StopRequests
from crosswind.store.kept import PARTS
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult


class Execution(Protocol):
    """A repetition under way. It never blocks: its owner watches `streams` for input and `next_wakeup` for the time."""

    @property
    def done(self) -> bool:
        """Whether `end` may be called."""

    def streams(self) -> list[IO[bytes]]:
        """What to watch for input. Changes when one ends."""

    def next_wakeup(self) -> float:
        """When (time.monotonic) to call `handle_time`."""

    def handle_readable(self, stream: IO[bytes]) -> None:
        """Takes what one of `streams` has to give, and passes events on."""

    def handle_time(self, now: float) -> None:
        """Ends what took too long."""

    def interrupt(self) -> None:
        """Asks it to end; the second call kills it."""

    def kill(self) -> None:
        """Ends it now."""

    def end(self) -> CellEnd:
        """How it ended. All its files are in its directory then."""


@dataclass(frozen=True)
class Start:
    """What a worker is to start.

    Attributes: directory: it writes into. on_event: hears what it reports. output: of the cell's `output`, beside the
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
        """The cell as a process takes it, with what a worker adds."""
        return sent(self.planned, self.directory, self.output, **fields)


@dataclass(frozen=True)
class Launched:
    """What a worker has started. Attributes: placement: where on this machine. attempt: from 1."""

    execution: Execution
    placement: Placement = field(default_factory=Placement)
    attempt: int = 1


class Worker(ABC):
    """Runs repetitions in one place.

    Attributes: has_machine_to_itself: whether no later worker may run anything while this one has something to run.
    """

    has_machine_to_itself = False

    @abstractmethod
    def takes(self, planned: PlannedCell) -> bool:
        """Whether it can run a repetition."""

    @abstractmethod
    def add(self, added: Sequence[PlannedCell]) -> None:
        """Repetitions that it takes are to run."""

    @abstractmethod
    def __len__(self) -> int:
        """How many repetitions wait."""

    @abstractmethod
    def next(self, running: Sequence["RunningCell"]) -> Admitted | None:
        """What may start now beside all that runs. Asked again when a cell has ended, and at `next_wakeup`."""

    def next_wakeup(self) -> float:
        """When (time.monotonic) something that waits may start though no cell has ended; infinite for never."""
        return math.inf

    @abstractmethod
    def start(self, asked: Start) -> Launched:
        """Starts a repetition. Raises: EngineError when nothing can be started."""

    def handle_event(self, planned: PlannedCell, event: CellEvent) -> None:  # noqa: B027
        """One of its repetitions reported something."""

    def handle_end(self, cell: "RunningCell") -> None:  # noqa: B027
        """One of its repetitions has ended, in whatever way."""

    def is_to_repeat(self, cell: "RunningCell", end: CellEnd, *, is_last: bool) -> bool:  # noqa: ARG002
        """Whether a repetition that ended is to run again. Args: is_last: whether the session ends."""
        return False

    def end_window(self, *, running: int) -> Concurrency | None:  # noqa: ARG002
        """A window is over, at whose end so many cells run. Returns how it went, where the worker looks at that."""
        return None

    def obstacle(self) -> EngineError | None:
        """Why nothing that waits needs to be tried."""
        return None

    def close(self) -> None:  # noqa: B027
        """Ends what it keeps."""


@dataclass
class RunningCell:
    """One repetition under way.

    Attributes: part: the directory it writes into. beside: most other cells that ran at the same time, so far.
        alone: whether nothing may run beside it.
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
        """What was started."""
        return self.started.execution

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Has the selector follow which of its streams are open.

        To be called whenever that may have changed, before anything else is opened: the system gives the numbers of
        closed streams to new ones.
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
        """Whether a stream that the selector found readable is still this cell's."""
        return stream in self._watched

    def result(self, end: CellEnd, *, ended: str) -> RepetitionResult:
        """What is stored of it."""
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
    """The cell as a process takes it: the plan's, with where to write and what a worker adds."""
    written = {**planned.parameters.get("output", {}), "directory": str(directory.absolute()), **(output or {})}
    return {**planned.parameters, "output": written, **fields}


def worker_for(planned: PlannedCell, workers: Iterable[Worker]) -> Worker:
    """The first that takes a repetition. Raises: EngineError where none does."""
    for worker in workers:
        if worker.takes(planned):
            return worker
    raise EngineError(f"nothing here runs {planned.key}", hint="`crosswind doctor`")


def followed(execution: Execution, stops: StopRequests | None = None) -> CellEnd:
    """How a cell that nothing runs beside ended, once it has. Each request of `stops` interrupts it once."""
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
