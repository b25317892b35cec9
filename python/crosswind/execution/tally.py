"""Counts a run's cells so far, and forecasts the time left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosswind.catalog.precision import CellPrecision
from crosswind.cell.events import CellEvent, Progress
from crosswind.cell.process import CellEnd
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.durations import expected_s, read_durations
from crosswind.execution.observer import Observer
from crosswind.store.plan import PlannedCell


@dataclass
class CellUnderWay:
    """A running repetition: its start, and last report."""

    planned: PlannedCell
    started: float
    progress: Progress | None = None

    @property
    def fraction(self) -> float | None:
        """The finished share; None if unknown."""
        return self.progress.fraction if self.progress else None


class Tally(Observer):
    """Counts the cells of a run: done, failed, invalid, repeated, running, waiting; exchanges lost; and virtual time.

    Args: clock: seconds since whenever.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = self.done = self.failed = self.invalid = self.lost = self.repeated = 0
        self.first_miss = ""
        """Why a cell was repeated, the first time."""
        self.waiting: dict[str, PlannedCell] = {}
        self.running: dict[str, CellUnderWay] = {}
        self.last_concurrency: Concurrency | None = None
        self.last_precision: Sequence[CellPrecision] = ()
        self._expected_s: dict[int, float] = {}
        self._done_s = self._waiting_s = 0.0
        self.virtual_ns = 0
        self._clock = clock
        self._started = 0.0

    @property
    def done_with_fractions(self) -> float:
        """Finished cells, plus the running ones' finished shares."""
        return self.done + sum(cell.fraction or 0.0 for cell in list(self.running.values()))

    @property
    def only_virtual(self) -> bool:
        """Whether all running cells are in virtual time, without late packets or waits for a processor."""
        running = list(self.running.values())
        return bool(running) and all(cell.planned.is_virtual for cell in running)

    def virtual_so_far_ns(self) -> int:
        """Virtual time, including running cells."""
        running = [cell for cell in list(self.running.values()) if cell.planned.is_virtual]
        return self.virtual_ns + sum(cell.progress.elapsed_ns for cell in running if cell.progress)

    def wall_s(self, cell: CellUnderWay | None = None) -> float:
        """A running cell's wall time so far; without one, the session's."""
        return self._clock() - (self._started if cell is None else cell.started)

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:  # noqa: ARG002
        """A session begins."""
        self._started = self._clock()
        self.total = len(plan)
        self.done = len(plan) - len(missing)
        self.waiting = {planned.key: planned for planned in missing}
        learned = read_durations()
        one_of_each = {planned.cell: planned for planned in missing}
        self._expected_s = {cell: expected_s(planned, learned) for cell, planned in one_of_each.items()}
        self._waiting_s = sum(map(self._forecast_s, missing))

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """There is more to run."""
        self.total += len(added)
        self.waiting |= {planned.key: planned for planned in added}
        self._waiting_s += sum(map(self._forecast_s, added))

    def precision(self, state: Sequence[CellPrecision]) -> None:
        """Keeps how narrow the intervals are."""
        self.last_precision = state

    def cell_started(self, planned: PlannedCell) -> None:
        """A cell is no longer waiting."""
        del self.waiting[planned.key]
        self._waiting_s -= self._forecast_s(planned)
        self.running[planned.key] = CellUnderWay(planned, self._clock())

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        """Keeps a cell's last progress."""
        if isinstance(event, Progress):
            self.running[planned.key].progress = event

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """A cell is done."""
        self.running.pop(planned.key)
        self.done += 1
        self._done_s += self._forecast_s(planned)
        if end.finished is None:
            self.failed += 1
            return
        self.virtual_ns += end.finished.elapsed_ns if end.finished.virtual_time else 0
        if end.finished.samples.succeeded:
            self.invalid += not end.finished.valid
        else:
            self.failed += 1
        self.lost += end.finished.samples.lost

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        """A cell missed its budget and goes to the end of the queue."""
        self.running.pop(planned.key)
        self.repeated += 1
        self.first_miss = self.first_miss or "; ".join(end.finished.reasons if end.finished else ())
        self.waiting[planned.key] = planned
        self._waiting_s += self._forecast_s(planned)

    def concurrency(self, now: Concurrency) -> None:
        """Keeps how many cells run."""
        self.last_concurrency = now

    def seconds_left(self) -> float:
        """Wall time left: the forecast, scaled by the error so far."""
        running = [(self._forecast_s(cell.planned), self._fraction(cell)) for cell in list(self.running.values())]
        left_s = max(0.0, self._waiting_s) + sum(each_s * (1 - fraction) for each_s, fraction in running)
        done_s = self._done_s + sum(each_s * fraction for each_s, fraction in running)
        return left_s * self.wall_s() / done_s if done_s else left_s / max(1, len(running))

    def _forecast_s(self, planned: PlannedCell) -> float:
        return self._expected_s.get(planned.cell, planned.expected_ns / 1e9)

    def _fraction(self, cell: CellUnderWay) -> float:
        """A running cell's finished share, by forecast if it reports no progress."""
        if cell.fraction is not None:
            return cell.fraction
        forecast_s = self._forecast_s(cell.planned)
        return min(1.0, self.wall_s(cell) / forecast_s) if forecast_s else 0.0
