"""Which repetition starts next, and whether it may have company: decided from what fidelity said, never from what was
measured.

Cells that mostly wait run side by side, in the order of the plan. Cells that keep a processor busy run alone, after
those that wait. A repetition that missed its fidelity budget goes to the end of its queue, and its last attempt is made
alone. When nothing keeps the budget, some are tried alone at once: if these miss it too, no cell of the run can keep
it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind.forecast.cost import HEAVY

Entry = Mapping[str, Any]
"""One entry of the manifest's plan."""

ATTEMPTS = 3
"""How often a repetition is run at most until the emulation keeps its fidelity budget."""

CAPACITY = 0.5
"""Share of the processors that may be busy by forecast; beyond it threads wait for each other."""

_WITNESSES = 3
"""Misses, and then cells that miss alone, until the budget counts as one that nothing can keep."""

_KERNEL = 1.3
"""Processor time of a cell over that of its threads: what the kernel does for it in interrupts."""

_LONG_ENOUGH_NS = 1_000_000_000
"""Cells shorter than this are mostly set-up, which says nothing of the load while they run."""


@dataclass(frozen=True)
class Admitted:
    """A repetition that is to start now. `beside`: up to how many others may run at the same time."""

    entry: Entry
    beside: int


class Loads:
    """Processors that a cell keeps busy: forecast, then corrected by what its repetitions took, and others like it."""

    def __init__(self) -> None:
        self._measured: dict[int, list[float]] = {}
        self._ratios: dict[str, list[float]] = {}

    def learn(self, entry: Entry, finished: Mapping[str, Any]) -> None:
        """A repetition ended: `finished` is its event."""
        elapsed_ns = finished.get("elapsed_ns") or 0
        cpu = finished.get("cpu") or {}
        if elapsed_ns < _LONG_ENOUGH_NS or not cpu:
            return
        load = _KERNEL * sum(cpu.get(f"{part}_ns") or 0 for part in ("client", "server", "emulator")) / elapsed_ns
        self._measured.setdefault(entry["cell"], []).append(load)
        if expected := _forecast(entry):
            self._ratios.setdefault(_kind(entry), []).append(load / expected)

    def of(self, entry: Entry) -> float:
        """Processors that the repetition will keep busy."""
        if known := self._measured.get(entry["cell"]):
            return fmean(known)
        ratios = self._ratios.get(_kind(entry))
        return _forecast(entry) * (min(5.0, max(0.2, fmean(ratios))) if ratios else 1.0)


class Admission:
    """The queues of one session.

    Args: entries: what is to run, in order. processors: how many there are. jobs: cells at a time, fixed by hand; None
        leaves it to loads and to the limit given to `next`.
    """

    def __init__(self, entries: Sequence[Entry], *, processors: int, jobs: int | None = None) -> None:
        self.loads = Loads()
        self._jobs = jobs
        self._capacity = CAPACITY * processors
        self._ready = deque(entries)
        self._alone: deque[Entry] = deque()
        self._attempts: dict[str, int] = {}
        self._kept = False
        self._missed: deque[Entry] = deque()
        self._hopeless: dict[int, Entry] = {}
        self._cells = len({entry["cell"] for entry in entries})

    def __len__(self) -> int:
        return len(self._ready) + len(self._alone) + len(self._missed)

    @property
    def hopeless(self) -> list[Entry]:
        """Repetitions that missed the budget even alone, when nothing has ever kept it; empty while there is hope."""
        enough = len(self._hopeless) >= min(_WITNESSES, self._cells)
        return list(self._hopeless.values()) if enough and not self._kept else []

    def attempts(self, entry: Entry) -> int:
        """How often it was run before."""
        return self._attempts.get(entry["key"], 0)

    def recall(self, entry: Entry, attempts: int) -> None:
        """An earlier session ran it so often without success."""
        self._attempts[entry["key"]] = attempts

    def next(self, running: Sequence[Entry], *, limit: int, alone: bool = False) -> Admitted | None:
        """What may start now, if anything.

        Args: running: what runs. limit: cells at a time. alone: whether what runs must have no company.
        """
        if alone:
            return None
        if self._in_doubt and self._missed:
            return Admitted(self._missed.popleft(), beside=0) if not running else None
        self._ready.extend(self._missed)
        self._missed.clear()
        self._set_aside()
        if self._ready:
            return self._together(running, limit)
        if running or not self._alone:
            return None
        return Admitted(self._alone.popleft(), beside=0)

    def handle_kept(self) -> None:
        """A repetition kept its budget."""
        self._kept = True
        self._hopeless.clear()

    def handle_missed(self, entry: Entry, *, alone: bool) -> bool:
        """A repetition missed its budget. Returns whether it will run again; if not, this attempt is the one that
        counts.
        """
        attempts = self._attempts[entry["key"]] = self.attempts(entry) + 1
        witness = alone and attempts > 1 and self._in_doubt and self._cells >= _WITNESSES
        if attempts >= ATTEMPTS or witness:
            if alone and not self._kept:
                self._hopeless[entry["cell"]] = entry
            return False
        (self._ready if self._kept else self._missed).append(entry)
        return True

    @property
    def _in_doubt(self) -> bool:
        """Nothing has kept the budget, and several have missed it."""
        return not self._kept and len(self._attempts) >= min(_WITNESSES, self._cells)

    def _set_aside(self) -> None:
        """Moves what must run alone from the head of the queue; what turned out light comes back."""
        while self._ready and self._runs_alone(self._ready[0]):
            self._alone.append(self._ready.popleft())
        if not self._ready:
            # All at once: a single one would have no company to run with.
            while self._alone and not self._runs_alone(self._alone[0]):
                self._ready.append(self._alone.popleft())

    def _runs_alone(self, entry: Entry) -> bool:
        if self._jobs == 1:
            return False  # Everything does; the order of the plan is kept.
        if self.attempts(entry) >= ATTEMPTS - 1:
            return True
        return self._jobs is None and self.loads.of(entry) > HEAVY

    def _together(self, running: Sequence[Entry], limit: int) -> Admitted | None:
        most = self._jobs or limit
        if len(running) >= most:
            return None
        if self._jobs is None and running:
            load = sum(map(self.loads.of, running)) + self.loads.of(self._ready[0])
            if load > self._capacity:
                return None
        beside = min(most, len(self._ready) + len(running)) - 1
        return Admitted(self._ready.popleft(), beside=beside)


def _forecast(entry: Entry) -> float:
    # Runs of earlier versions have no forecast: as if heavy, they go one after another, as they did then.
    return float(entry.get("expected_load", 1.0))


def _kind(entry: Entry) -> str:
    work = entry["parameters"]["workload"]
    return f"{work.get('kind')} {work.get('transport')}"
