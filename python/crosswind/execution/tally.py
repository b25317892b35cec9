"""What has become of a run's cells so far, and how long it still takes."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from crosswind.cell.events import Event, Progress
from crosswind.cell.process import CellEnd
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.durations import learned_s
from crosswind.execution.observer import Observer
from crosswind.precision import CellPrecision
from crosswind.store.plan import PlannedCell


@dataclass
class TimeLeft:
    """How long a run still takes: what is forecast of its cells, corrected by how long they really took.

    Attributes: forecast_s: of each cell, what a repetition takes in seconds; of another cell it is what its plan has.
    """

    forecast_s: Mapping[int, float] = field(default_factory=dict)
    _of_cell: dict[int, list[float]] = field(default_factory=dict)
    _measured_s: float = 0.0
    _predicted_s: float = 0.0

    def add(self, planned: PlannedCell, elapsed_s: float) -> None:
        """A repetition took so long."""
        self._of_cell.setdefault(planned.cell, []).append(elapsed_s)
        self._measured_s += elapsed_s
        self._predicted_s += self._predicted(planned)

    def expected_s(self, planned: PlannedCell) -> float:
        """How long a repetition will take: the mean of its cell's so far; before there is any, the forecast times by
        how much forecasts were wrong.
        """
        measured = self._of_cell.get(planned.cell)
        if measured:
            return fmean(measured)
        error = self._measured_s / self._predicted_s if self._predicted_s else 1.0
        return self._predicted(planned) * error

    def _predicted(self, planned: PlannedCell) -> float:
        return self.forecast_s.get(planned.cell, planned.expected_ns / 1e9)

    def seconds(
        self,
        waiting: Collection[PlannedCell],
        running: Collection[tuple[PlannedCell, float, float | None]],
        jobs: float = 1,
    ) -> float:
        """Wall time left: all work shared out to `jobs` at a time, but never less than the longest that is left.

        Args: waiting: repetitions to come. running: those under way, each with the seconds so far and the fraction that
            is done, None where that is not known.
        """
        left = [self.expected_s(planned) for planned in waiting]
        left += [
            so_far_s * (1 - fraction) / fraction if fraction else max(0.0, self.expected_s(planned) - so_far_s)
            for planned, so_far_s, fraction in running
        ]
        return max(sum(left) / max(1.0, jobs), max(left, default=0.0))


@dataclass
class CellUnderWay:
    """A running repetition: when it started, and what it reported last."""

    planned: PlannedCell
    started: float
    progress: Progress | None = None

    @property
    def fraction(self) -> float | None:
        """The share that is done; None where that is not known."""
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
        self.time_left = TimeLeft()
        self.virtual_ns = 0
        self._clock = clock
        self._started = self._seconds_left = 0.0
        self._estimated_at = -math.inf

    @property
    def done_with_fractions(self) -> float:
        """Cells that are done, and what the running ones have done of theirs."""
        return self.done + sum(cell.fraction or 0.0 for cell in list(self.running.values()))

    @property
    def only_virtual(self) -> bool:
        """Whether all that runs is in virtual time, where no packet is late and nobody waits for a processor."""
        running = list(self.running.values())
        return bool(running) and all(cell.planned.is_virtual for cell in running)

    def virtual_so_far_ns(self) -> int:
        """Virtual time of the cells that ran, and of those that are running."""
        running = [cell for cell in list(self.running.values()) if cell.planned.is_virtual]
        return self.virtual_ns + sum(cell.progress.elapsed_ns for cell in running if cell.progress)

    def wall_s(self, cell: CellUnderWay | None = None) -> float:
        """Wall time of a running cell so far; without one, of the session."""
        return self._clock() - (self._started if cell is None else cell.started)

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:  # noqa: ARG002
        """A session begins."""
        self._started = self._clock()
        self.total = len(plan)
        self.done = len(plan) - len(missing)
        self.waiting = {planned.key: planned for planned in missing}
        self.time_left.forecast_s = learned_s(missing)

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """There is more to run."""
        self.total += len(added)
        self.waiting |= {planned.key: planned for planned in added}

    def precision(self, state: Sequence[CellPrecision]) -> None:
        """Keeps how narrow the intervals are."""
        self.last_precision = state

    def cell_started(self, planned: PlannedCell) -> None:
        """A cell is no longer waiting."""
        del self.waiting[planned.key]
        self.running[planned.key] = CellUnderWay(planned, self._clock())

    def cell_event(self, planned: PlannedCell, event: Event) -> None:
        """Keeps what a cell reports of its progress."""
        if isinstance(event, Progress):
            self.running[planned.key].progress = event

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """A cell is done."""
        self.running.pop(planned.key)
        self.done += 1
        self.time_left.add(planned, end.elapsed_ns / 1e9)
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
        self.time_left.add(planned, end.elapsed_ns / 1e9)

    def concurrency(self, now: Concurrency) -> None:
        """Keeps how many cells run."""
        self.last_concurrency = now

    def seconds_left(self) -> float:
        """Wall time left, computed anew once a second: with thousands of cells that takes a while."""
        now = self._clock()
        if now - self._estimated_at >= 1.0:
            running = [(cell.planned, now - cell.started, cell.fraction) for cell in list(self.running.values())]
            self._seconds_left = self.time_left.seconds(list(self.waiting.values()), running, self._at_a_time())
            self._estimated_at = now
        return self._seconds_left

    def _at_a_time(self) -> float:
        """Cells that will run side by side: as many as may, but no more than there are."""
        now = self.last_concurrency
        if now is None:
            return max(1, len(self.running))
        allowed = now.limit or now.running
        # Loads may keep the limit from being reached: what will run lies between what may and what does.
        return max(1.0, (allowed + now.running) / 2 if self.waiting else now.running)
