"""Runs what a store still misses: starts cells, follows them, commits each as it ends.

One loop owns everything. It starts what admission lets in, waits for input or time, hands both to the cell they belong
to, and turns what cells tell of their fidelity into the number that may run at a time. A cell that fails is committed
as failed and the run goes on; only what would fail every cell alike (no privilege, a full disk, a budget that nothing
can keep) ends it.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from crosswind.cell.process import CellProcess, Event, Failure, Outcome
from crosswind.errors import CrosswindError, DiskError, EngineError
from crosswind.execution.admission import ATTEMPTS, Admission, Admitted, Entry
from crosswind.execution.concurrency import WINDOW_S, Budget, Counters, Limit, Meter, Window
from crosswind.execution.processors import Processors, restore
from crosswind.store.directory import Store
from crosswind.store.wallclock import WallClock

START_S = 0.025
"""Between two starts. One takes some 10 ms of processor time, which other cells would wait for."""

HEARTBEAT_NS = 500_000_000
"""How often a cell with company tells of its progress; one alone does so twice as often."""

_ENDING_WINDOW_S = 0.1
"""Windows while a run ends, so that cells which do not are killed in time."""

_RUN_ENDING = {"privilege": EngineError, "disk": DiskError}
"""Failures that every further cell would share, by kind."""


@dataclass(frozen=True)
class Concurrency:
    """How many cells run, and how that goes.

    Attributes: limit: None when fixed by hand. window: the last one. pressure: share of the budget used lately.
    """

    running: int
    limit: int | None
    window: Window
    pressure: float


class Watcher(Protocol):
    """Who wants to see a run go by: a live display, a log, nobody."""

    def run_started(self, plan: list[dict[str, Any]], missing: list[str]) -> None:
        """Before the first cell; `missing` are the keys that will run."""

    def cell_started(self, entry: Entry) -> None:
        """A process was started for this repetition."""

    def cell_event(self, entry: Entry, event: Event) -> None:
        """It said something."""

    def cell_ended(self, entry: Entry, outcome: Outcome) -> None:
        """It ended, well or not, and is stored."""

    def cell_repeated(self, entry: Entry, outcome: Outcome) -> None:
        """It ended, missed its fidelity budget, is stored aside, and will be run again."""

    def concurrency(self, now: Concurrency) -> None:
        """A window is over."""

    def remark(self, text: str) -> None:
        """Something that whoever watches should know."""

    def run_ended(self) -> None:
        """Nothing more will come."""


@dataclass
class _Running:
    entry: Entry
    part: Path
    started: str
    process: CellProcess
    placement: dict[str, Any]
    beside: int
    """Most other cells that ran at the same time."""

    alone: bool
    attempt: int
    streams: list[IO[bytes]] = field(default_factory=list)


class Scheduler:
    """One session of a run.

    Args: store: open for writing. binary: of crosswind-cell. watcher: told about everything.
        jobs: cells at a time, fixed by hand; None for as many as the fidelity budget allows.
    """

    def __init__(
        self,
        store: Store,
        binary: Path,
        watcher: Watcher,
        *,
        jobs: int | None = None,
        clock: WallClock | None = None,
    ) -> None:
        self.store = store
        self.jumps: list[dict[str, Any]] = []
        self._binary = binary
        self._watcher = watcher
        self._jobs = jobs
        self._clock = clock or WallClock()
        self._processors = Processors()
        self._running: dict[str, _Running] = {}
        self._fatal: CrosswindError | None = None
        self._stops = 0
        self._wake = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake[0], selectors.EVENT_READ)
        missing = set(store.missing())
        entries = [entry for entry in store.manifest.plan if entry["key"] in missing]
        self._admission = Admission(entries, processors=len(self._processors.usable), jobs=jobs)
        if any(_kept_budget(result) for result in store.results().values()):
            self._admission.handle_kept()
        earlier = store.all_missed()
        for entry in entries:
            if missed := earlier[entry["key"]]:
                self._admission.recall(entry, missed)
        self._entries = entries
        self._limit = Limit(budget=_budget_of(entries), most=jobs or len(entries) or 1)
        self._meter = Meter()
        self._missed_in_window = 0
        self._next_start = self._next_window = 0.0

    def run(self) -> bool:
        """Runs until nothing is missing or `stop` was called. Returns whether it got to the end.

        Raises: EngineError, DiskError when no cell could run after this one. What was finished stays.
        """
        self._watcher.run_started(self.store.manifest.plan, [entry["key"] for entry in self._entries])
        before = self._processors.leave_to_emulators()
        try:
            self._loop()
        except CrosswindError as error:
            self._fatal = self._fatal or error
        finally:
            self._abandon()
            restore(before)
            self._selector.close()
            self._close_wake()
            self._watcher.run_ended()
        status = "stopped" if self._fatal else "interrupted" if self._stops else "done"
        try:
            self.store.update(status=status)
        except DiskError as error:
            self._fatal = self._fatal or error
        if self._fatal:
            raise self._fatal
        return status == "done"

    def stop(self) -> None:
        """Ends the run: cells are asked to end; the second call kills them. Callable from a signal handler."""
        with suppress(OSError):  # Too late: the run is over.
            os.write(self._wake[1], b"x")

    def _close_wake(self) -> None:
        for end in self._wake:
            os.close(end)
        self._wake = (-1, -1)

    # The loop

    def _loop(self) -> None:
        self._next_window = time.monotonic() + WINDOW_S
        while self._running or (len(self._admission) and not self._ending):
            self._start_what_may()
            self._wait()
            for running in [one for one in self._running.values() if one.process.done]:
                del self._running[running.entry["key"]]
                self._end(running, running.process.outcome())

    @property
    def _ending(self) -> bool:
        return self._stops > 0 or self._fatal is not None

    def _start_what_may(self) -> None:
        while not self._ending:
            now = time.monotonic()
            if self._running and now < self._next_start:
                return
            entries = [one.entry for one in self._running.values()]
            alone = any(one.alone for one in self._running.values())
            admitted = self._admission.next(entries, limit=self._limit.value, alone=alone)
            if admitted is None:
                return
            self._start(admitted)
            self._next_start = now + START_S

    def _start(self, admitted: Admitted) -> None:
        entry = admitted.entry
        part = self.store.begin_cell(entry["key"])
        backend = entry["parameters"].get("path", {}).get("backend", "tun")
        placement = self._processors.place(backend, beside=admitted.beside)
        cell = cell_as_sent(entry["parameters"], part, placement, beside=admitted.beside)

        def handle_event(event: Event) -> None:
            if event["event"] == "progress" and event.get("fidelity"):
                self._meter.handle(entry["key"], Counters(elapsed_ns=event["elapsed_ns"], **event["fidelity"]))
            self._watcher.cell_event(entry, event)

        try:
            process = CellProcess(cell, binary=self._binary, on_event=handle_event)
        except EngineError:
            self.store.discard_cell(part)
            raise
        running = _Running(
            entry=entry,
            part=part,
            started=self._clock.stamp(),
            process=process,
            placement=placement,
            beside=len(self._running),
            alone=not admitted.beside,
            attempt=self._admission.attempts(entry) + 1,
        )
        for other in self._running.values():
            other.beside = max(other.beside, len(self._running))
        self._running[entry["key"]] = running
        self._watch_streams(running)
        self._watcher.cell_started(entry)

    def _wait(self) -> None:
        now = time.monotonic()
        due = self._next_window
        if len(self._admission) and not self._ending and now < self._next_start:
            due = min(due, self._next_start)
        for key, _ in self._selector.select(max(0.0, due - now)):
            if key.data is None:
                self._handle_stops(len(os.read(self._wake[0], 16)))
            elif key.fileobj in key.data.streams:
                key.data.process.handle_readable(key.fileobj)
                self._watch_streams(key.data)
        now = time.monotonic()
        if now >= self._next_window:
            self._next_window = now + (_ENDING_WINDOW_S if self._ending else WINDOW_S)
            self._handle_time(now)

    def _watch_streams(self, running: _Running) -> None:
        """Follows which streams of a process are open. Before any other is opened: numbers of closed ones are used
        again.
        """
        wanted = running.process.streams()
        for stream in running.streams:
            if stream not in wanted:
                self._selector.unregister(stream)
        for stream in wanted:
            if stream not in running.streams:
                self._selector.register(stream, selectors.EVENT_READ, running)
        running.streams = wanted

    def _handle_time(self, now: float) -> None:
        for running in self._running.values():
            if not running.process.done and now >= running.process.next_wakeup():
                running.process.handle_time(now)
                self._watch_streams(running)
        if (by := self._clock.jump()) is not None:
            self.jumps.append({"at": self._clock.stamp(), "by_s": round(by, 3)})
            self._watcher.remark(
                f"the machine's clock was set by {by:+.1f} s, or it slept; times measured are not affected"
            )
        window = self._meter.take()
        self._limit.handle_window(window, running=len(self._running), missed=self._missed_in_window)
        self._missed_in_window = 0
        limit = None if self._jobs else self._limit.value
        self._watcher.concurrency(Concurrency(len(self._running), limit, window, self._limit.pressure))

    def _handle_stops(self, count: int) -> None:
        for _ in range(count):
            self._stops += 1
            for running in self._running.values():
                running.process.interrupt()
                self._watch_streams(running)
        # Those that do not end in time are killed when a window is over.
        self._next_window = time.monotonic()

    # The end of a cell

    def _end(self, running: _Running, outcome: Outcome) -> None:
        self._watch_streams(running)
        self._processors.release(running.placement)
        self._meter.forget(running.entry["key"])
        failure = outcome.failure
        if failure is not None and self._ending:
            # It was told to end, or what ends the run ended it: that says nothing about the cell.
            self.store.discard_cell(running.part)
            return
        if failure is not None and failure.kind in _RUN_ENDING:
            self.store.discard_cell(running.part)
            self._end_run(_RUN_ENDING[failure.kind](failure.message, hint=failure.hint))
            return
        try:
            if self._is_to_repeat(running, outcome):
                self.store.commit_missed(running.part, self._result(running, outcome))
                self._watcher.cell_repeated(running.entry, outcome)
                return
            self.store.commit_cell(running.part, self._result(running, outcome))
        except EngineError as error:
            outcome = Outcome(None, Failure("protocol", error.message, error.hint), outcome.elapsed_ns)
            self.store.commit_failed(running.part, self._result(running, outcome))
        self._watcher.cell_ended(running.entry, outcome)
        if self._admission.hopeless and len(self._admission):
            self._end_run(hopeless_error(self.store, self._admission.hopeless))

    def _is_to_repeat(self, running: _Running, outcome: Outcome) -> bool:
        """Fidelity alone decides; what was measured has no say in it."""
        entry = running.entry
        if outcome.finished is None:
            return False
        self._admission.loads.learn(entry, outcome.finished)
        if running.attempt > 1:
            text = f"attempt {running.attempt}: those before missed the fidelity budget"
            outcome.finished["warnings"].append(text)
        if not missed_budget(outcome):
            if outcome.finished["fidelity"] is not None:
                self._admission.handle_kept()
            return False
        self._missed_in_window += 1
        if self._ending:
            # Not the last attempt that it may have: the next session goes on with it.
            return running.attempt < ATTEMPTS
        return self._admission.handle_missed(entry, alone=running.alone)

    def _result(self, running: _Running, outcome: Outcome) -> dict[str, Any]:
        entry = running.entry
        return {
            **{name: entry[name] for name in ("key", "order", "cell", "repetition", "block", "seed", "levels")},
            "parameters": entry["parameters"],
            "placement": running.placement,
            "beside": running.beside,
            "attempt": running.attempt,
            "finished": outcome.finished,
            "failure": outcome.failure_dict(),
            "started": running.started,
            "ended": self._clock.stamp(),
            "elapsed_ns": outcome.elapsed_ns,
        }

    def _end_run(self, error: CrosswindError) -> None:
        self._fatal = error
        for running in self._running.values():
            running.process.interrupt()
            self._watch_streams(running)

    def _abandon(self) -> None:
        for running in self._running.values():
            running.process.kill()
            running.process.outcome()
            self.store.discard_cell(running.part)
        self._running.clear()


def missed_budget(outcome: Outcome) -> bool:
    """Whether the emulation was too far from what was asked."""
    fidelity = outcome.finished["fidelity"] if outcome.finished else None
    return fidelity is not None and not fidelity["within_budget"]


def _kept_budget(result: Mapping[str, Any]) -> bool:
    fidelity = (result["finished"] or {}).get("fidelity")
    return fidelity is not None and bool(fidelity["within_budget"])


def hopeless_error(store: Store, tried: list[Entry]) -> EngineError:
    """Why a run ends whose budget nothing keeps, with the figures that show it."""
    results = store.results()
    finished = {entry["key"]: results[entry["key"]]["finished"] or {} for entry in tried}
    said = [f"{key}: {'; '.join(one.get('reasons', ['no result']))}" for key, one in finished.items()]
    return EngineError(
        f"no cell of this run keeps the fidelity budget, not even alone: {' · '.join(said)}",
        hint="ask for less (a lower rate, fewer connections), or for a budget that this machine can keep: "
        "--set budget.delay_error_p99=5ms",
    )


def cell_as_sent(
    parameters: Mapping[str, Any], directory: Path, placement: Mapping[str, Any], *, beside: int
) -> dict[str, Any]:
    """The cell as sent to the process: the plan's, with where to write and where to run."""
    output = {**parameters.get("output", {}), "directory": str(directory.absolute())}
    heartbeat = {"heartbeat_ns": HEARTBEAT_NS} if beside else {}
    return {**parameters, "output": output, "placement": dict(placement), **heartbeat}


def _budget_of(entries: Sequence[Entry]) -> Budget:
    """The strictest of the cells' budgets."""
    budgets = [entry["parameters"].get("budget") or {} for entry in entries]
    standard = Budget()
    return Budget(
        starvation=min((one.get("starvation", standard.starvation) for one in budgets), default=standard.starvation),
        probe_starvation=min(
            (one.get("probe_starvation", standard.probe_starvation) for one in budgets),
            default=standard.probe_starvation,
        ),
    )


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` on SIGINT and SIGTERM while inside."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):
                signal.signal(number, handler)
