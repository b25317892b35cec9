"""Sessions of made-up cells for tests of the scheduler: who watches them, and cells that wait for each other."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from conftest import GOOD_END
from crosswind.cell.events import CellEvent, Ready
from crosswind.cell.process import CellEnd
from crosswind.execution.concurrency import FIRST_PER_PROCESSOR, Concurrency
from crosswind.execution.observer import Observer
from crosswind.execution.scheduler import Scheduler
from crosswind.store.directory import Store
from crosswind.store.plan import PlannedCell
from runs import new_run, planned_cell

AFFINITY = os.sched_getaffinity(0)
"""Before any test."""
FIRST = min(10, FIRST_PER_PROCESSOR * len(AFFINITY))
"""Light cells that run at a time before anything is known."""


class Log(Observer):
    """An observer that remembers, and may act on an event."""

    def __init__(self, act: Callable[[CellEvent], None] = lambda _event: None) -> None:
        self.lines: list[str] = []
        self._act = act

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        self.lines.append(f"run {len(missing)}/{len(plan)}")

    def cell_started(self, planned: PlannedCell) -> None:
        self.lines.append(f"start {planned.key}")

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        self._act(event)

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        self.lines.append(f"end {planned.key} {end.failure.kind if end.failure else 'ok'}")

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        self.lines.append(f"again {planned.key}")

    def remark(self, text: str) -> None:
        self.lines.append(f"remark {text}")

    def run_ended(self) -> None:
        self.lines.append("over")


class Crowd(Log):
    """An observer of cells that wait for each other: opens a gate, by name, for every cell that is ready and that
    ended, for windows in which as many are ready as there ever will be, and for remarks.
    """

    def __init__(self, gates: Path, together: int) -> None:
        super().__init__()
        self.ready: list[str] = []
        self.when_together: Callable[[], None] = lambda: None
        self._gates = gates
        self._together = together

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        if isinstance(event, Ready):
            self.ready.append(planned.key)
            if len(self.ready) == self._together:
                self.when_together()
                (self._gates / "together").touch()

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        super().cell_ended(planned, end)
        (self._gates / f"{planned.key}-ended").touch()

    def concurrency(self, now: Concurrency) -> None:
        if len(self.ready) >= self._together:
            (self._gates / "a-window-together").touch()

    def remark(self, text: str) -> None:
        super().remark(text)
        (self._gates / "remark").touch()


GATED = (
    GOOD_END
    + """
key = os.path.basename(cell['output']['directory']).split('.')[0]
run = os.path.dirname(os.path.dirname(cell['output']['directory']))
def note(name): open(os.path.join(cell['output']['directory'], name), 'w').write(repr(time.monotonic()))
def begin(): start(); ready()
def wait_for(gate):
    for _ in range(4000):
        if os.path.exists(os.path.join(os.path.dirname(run), gate)): return
        time.sleep(0.005)
    sys.exit(f'{gate} was never opened')
"""
)
"""For cells that wait, for 20 s at most, until a Crowd opens a gate."""


def session(directory: Path, binary: Path, observer: Log, cells: int = 3, *, jobs: int | None = 1) -> Scheduler:
    fresh = not (directory / "manifest.json").exists()
    store = new_run(directory, cells) if fresh else Store.resume(directory)
    return Scheduler(store, binary, [observer], jobs=jobs)


def light(cells: int, *, heavy: int = 0) -> list[PlannedCell]:
    """A plan whose first cells are heavy and whose others hardly load a processor."""
    return [planned_cell(number, expected_load=1.0 if number < heavy else 0.01) for number in range(cells)]


def missing(store: Store) -> list[str]:
    return [planned.key for planned in store.missing()]


def result(run: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((run / "cells" / name / "result.json").read_text(encoding="utf-8"))
    return read
