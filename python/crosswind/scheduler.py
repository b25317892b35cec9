"""Runs what a store still misses: starts cells, follows them, commits each as it ends.

One loop owns everything: it starts ready cells while there is room (`jobs`, one for now), waits for input or time, and
hands both to the cell it belongs to. A cell that fails is committed as failed and the run goes on; only what would fail
every cell alike (no privilege, a full disk) ends the run.

A repetition whose emulation missed its fidelity budget is run again, later, up to three times in all. The first attempt
that keeps the budget counts, or else the last; the others stay in the store beside it.
"""

import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from crosswind.engine import CellProcess, Event, Failure, Outcome
from crosswind.errors import CrosswindError, DiskError, EngineError
from crosswind.store import Store

Entry = Mapping[str, Any]
"""One entry of the manifest's plan."""

ATTEMPTS = 3
"""How often a repetition is run at most until the emulation keeps its fidelity budget."""

_RUN_ENDING = {"privilege": EngineError, "disk": DiskError}
"""Failures that every further cell would share, by kind."""


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

    def run_ended(self) -> None:
        """Nothing more will come."""


@dataclass
class _Running:
    entry: Entry
    part: Path
    started: str
    process: CellProcess


@dataclass
class Scheduler:
    """One session of a run.

    Args: store: open for writing. binary: of crosswind-cell. watcher: told about everything. jobs: cells at a time.
    """

    store: Store
    binary: Path
    watcher: Watcher
    jobs: int = 1
    _ready: deque[Entry] = field(default_factory=deque)
    _running: list[_Running] = field(default_factory=list)
    _fatal: CrosswindError | None = None
    _stops: int = 0
    _wake: tuple[int, int] = field(default_factory=os.pipe)

    def run(self) -> bool:
        """Runs until nothing is missing or `stop` was called. Returns whether it got to the end.

        Raises: EngineError, DiskError when no cell could run after this one. What was finished stays.
        """
        missing = self.store.missing()
        wanted = set(missing)
        self._ready.extend(entry for entry in self.store.manifest.plan if entry["key"] in wanted)
        self.watcher.run_started(self.store.manifest.plan, missing)
        try:
            self._loop()
        except CrosswindError as error:
            self._fatal = self._fatal or error
        finally:
            self._abandon()
            self.watcher.run_ended()
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
        os.write(self._wake[1], b"x")

    def _loop(self) -> None:
        while (self._ready and not self._ending) or self._running:
            while self._ready and not self._ending and len(self._running) < self.jobs:
                self._start(self._ready.popleft())
            self._wait()
            for running in [one for one in self._running if one.process.done]:
                self._running.remove(running)
                self._end(running, running.process.outcome())

    @property
    def _ending(self) -> bool:
        return self._stops > 0 or self._fatal is not None

    def _start(self, entry: Entry) -> None:
        part = self.store.begin_cell(entry["key"])
        cell = cell_with_output(entry["parameters"], part)
        try:
            process = CellProcess(
                cell, binary=self.binary, on_event=lambda event: self.watcher.cell_event(entry, event)
            )
        except EngineError:
            self.store.discard_cell(part)
            raise
        self._running.append(_Running(entry, part, utc_now(), process))
        self.watcher.cell_started(entry)

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake[0], selectors.EVENT_READ)
            for running in self._running:
                for stream in running.process.streams():
                    selector.register(stream, selectors.EVENT_READ, running.process)
            wakeup = min((one.process.next_wakeup() for one in self._running), default=0.0)
            for key, _ in selector.select(max(0.0, wakeup - time.monotonic())):
                if key.data is None:
                    self._handle_stops(len(os.read(self._wake[0], 16)))
                elif key.fileobj in key.data.streams():
                    key.data.handle_readable(key.fileobj)
        for running in self._running:
            if not running.process.done:
                running.process.handle_time(time.monotonic())

    def _handle_stops(self, count: int) -> None:
        for _ in range(count):
            self._stops += 1
            for running in self._running:
                running.process.interrupt()

    def _end(self, running: _Running, outcome: Outcome) -> None:
        failure = outcome.failure
        if failure is not None and self._ending:
            # It was told to end, or what ends the run ended it: that says nothing about the cell.
            self.store.discard_cell(running.part)
            return
        if failure is not None and failure.kind in _RUN_ENDING:
            self.store.discard_cell(running.part)
            self._end_run(_RUN_ENDING[failure.kind](failure.message, hint=failure.hint))
            return
        entry = running.entry
        result = {
            **{name: entry[name] for name in ("key", "order", "cell", "repetition", "block", "seed", "levels")},
            "parameters": entry["parameters"],
            "finished": outcome.finished,
            "failure": outcome.failure_dict(),
            "started": running.started,
            "ended": utc_now(),
            "elapsed_ns": outcome.elapsed_ns,
        }
        try:
            missed = self.store.missed(entry["key"])
            if missed and outcome.finished:
                outcome.finished["warnings"].append(f"attempt {missed + 1}: those before missed the fidelity budget")
            if missed_budget(outcome) and not self._ending and missed + 1 < ATTEMPTS:
                # Later, not at once: what disturbed it may still be there.
                self.store.commit_missed(running.part, result)
                self._ready.append(entry)
                self.watcher.cell_repeated(entry, outcome)
                return
            self.store.commit_cell(running.part, result)
        except EngineError as error:
            outcome = Outcome(None, Failure("protocol", error.message, error.hint), outcome.elapsed_ns)
            self.store.commit_failed(running.part, {**result, "finished": None, "failure": outcome.failure_dict()})
        self.watcher.cell_ended(entry, outcome)

    def _end_run(self, error: CrosswindError) -> None:
        self._fatal = error
        for running in self._running:
            running.process.interrupt()

    def _abandon(self) -> None:
        for running in self._running:
            running.process.kill()
            running.process.outcome()
            self.store.discard_cell(running.part)
        self._running.clear()


def missed_budget(outcome: Outcome) -> bool:
    """Whether the emulation was too far from what was asked. That alone decides; what was measured has no say in it."""
    fidelity = outcome.finished["fidelity"] if outcome.finished else None
    return fidelity is not None and not fidelity["within_budget"]


def cell_with_output(parameters: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The cell as sent to the process: the plan's, with where to write."""
    output = {**parameters.get("output", {}), "directory": str(directory.absolute())}
    return {**parameters, "output": output}


def utc_now() -> str:
    """The time as stored: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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
