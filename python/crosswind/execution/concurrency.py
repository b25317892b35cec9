"""The number of concurrent cells: as many as the fidelity budget allows, found by trying (docs/decisions/0006).

The limit follows TCP's congestion control: fidelity is the path, late packets are its losses. It doubles until a first
sign of trouble, then grows by steps, and shrinks by a share whenever the budget is missed (Chiu and Jain 1989). Time is
an argument. Measurements are unknown here: fidelity alone decides.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Self

from crosswind.cell.events import ProgressFidelity

WINDOW_S = 0.5
"""How long fidelity is watched for one decision."""

FIRST_PER_PROCESSOR = 2
"""Cells at a time for each processor, before anything is known; after the first trouble, one for each is a step."""

MAX_LIMIT = 1000

SHRINK_FACTOR = 0.7
CALM, STRAINED = 0.25, 0.5
"""Shares of the budget: below CALM the limit grows, from STRAINED on it shrinks. The budget is each cell's, but the
pressure covers all together: at full use, half of the cells are over theirs."""

_LATE_SHARE = 0.01
"""The budget is about the 99th percentile: one packet in a hundred may be late."""

HALF_LIFE_WINDOWS = 4
"""After so many windows, a window counts half as much as when it was new."""

_SHORTEST_NS = 100_000_000
"""Counters over less time do not show shares; they wait for the next window."""

_FEWEST_PACKETS = 100
"""With fewer in a window, the share of late ones says little."""


@dataclass(frozen=True)
class WaitingBudget:
    """A cell's fidelity budget for threads: shares of time waiting for a processor."""

    starvation: float = 0.2
    probe_starvation: float = 0.4

    @classmethod
    def strictest(cls, budgets: Iterable[Mapping[str, float]]) -> Self:
        """The strictest among cells' budgets, with defaults for unset values."""
        usual = asdict(cls())
        every = [{**usual, **budget} for budget in budgets] or [usual]
        return cls(**{name: min(budget[name] for budget in every) for name in usual})


@dataclass(frozen=True)
class Counters:
    """A running cell's counters so far: packets released, late packets, and waits in nanoseconds.

    `exchange_delay`: used share of the budget for longer exchanges than alone.
    """

    elapsed_ns: int = 0
    released: int = 0
    late: int = 0
    wait_ns: int = 0
    probe_wait_ns: int = 0
    exchange_delay: float = 0.0

    @classmethod
    def of(cls, elapsed_ns: int, fidelity: ProgressFidelity) -> Self:
        """The counters in a progress event."""
        return cls(
            elapsed_ns,
            fidelity.released,
            fidelity.late,
            fidelity.wait_ns,
            fidelity.probe_wait_ns,
            fidelity.exchange_delay or 0.0,
        )


@dataclass(frozen=True)
class FidelityWindow:
    """Fidelity over one window, for all running cells together.

    Attributes: released, late: packets; fractional in remembered windows. starvation, probe_starvation: mean share of
        time spent waiting for a processor, by the emulators, and by the hosts' slowest threads. exchange_delay: mean
        used share of the cells' budgets for longer exchanges than alone. reports: number of reporting cells.
    """

    released: float = 0
    late: float = 0
    starvation: float = 0.0
    probe_starvation: float = 0.0
    exchange_delay: float = 0.0
    reports: int = 0

    @property
    def late_share(self) -> float:
        """Late packets / released packets."""
        return self.late / self.released if self.released else 0.0

    def pressure(self, budget: WaitingBudget) -> float:
        """The used share of the budget: 1 is all of it. Few packets say little and count as if they were more."""
        late = self.late / max(self.released, _FEWEST_PACKETS) / _LATE_SHARE
        waits = (
            (self.starvation, budget.starvation),
            (self.probe_starvation, budget.probe_starvation),
        )
        return max(
            late,
            self.exchange_delay,
            *(share / allowed if allowed else math.inf if share else 0.0 for share, allowed in waits),
        )


class Meter:
    """Adds up the cells' reports, window by window."""

    def __init__(self) -> None:
        self._now: dict[str, Counters] = {}
        self._before: dict[str, Counters] = {}

    def handle(self, key: str, counters: Counters) -> None:
        """A cell reported how it is going."""
        self._now[key] = counters

    def forget(self, key: str) -> None:
        """Drops an ended cell, with its last partial window: its own result has its fidelity."""
        self._before.pop(key, None)
        self._now.pop(key, None)

    def take(self) -> FidelityWindow:
        """The window since the last call, over cells with a report in it."""
        steps = []
        for key, now in self._now.items():
            before = self._before.get(key, Counters())
            if now.elapsed_ns - before.elapsed_ns >= _SHORTEST_NS:
                steps.append((now, before))
                self._before[key] = now
        elapsed_ns = sum(now.elapsed_ns - before.elapsed_ns for now, before in steps) or 1
        return FidelityWindow(
            released=sum(now.released - before.released for now, before in steps),
            late=sum(now.late - before.late for now, before in steps),
            starvation=sum(now.wait_ns - before.wait_ns for now, before in steps) / elapsed_ns,
            probe_starvation=sum(now.probe_wait_ns - before.probe_wait_ns for now, before in steps) / elapsed_ns,
            exchange_delay=fmean(now.exchange_delay for now, _ in steps) if steps else 0.0,
            reports=len(steps),
        )


class Limit:
    """The maximum number of concurrent cells.

    Windows are remembered with a half-life of HALF_LIFE_WINDOWS: the budget is for whole cells, and a moment's steal
    time does not show how many cells a processor can carry.

    Args: budget: the cells'. first: initial value. step: growth after the first trouble. largest: upper bound.
    """

    def __init__(self, budget: WaitingBudget | None = None, *, first: int, step: int, largest: int = MAX_LIMIT) -> None:
        self.budget = budget or WaitingBudget()
        self.largest = max(1, largest)
        self.value = min(first, self.largest)
        self._step = step
        self.pressure = 0.0
        self._memory = FidelityWindow()
        self._weight = 0.0
        self._doubling = True
        self._rest = 0
        self._missed = 0

    def handle_window(self, window: FidelityWindow, *, running: int, missed: int = 0) -> None:
        """Ends one window.

        Args: window: the fidelity in it. running: cells at its end. missed: cells ended over their budget.
        """
        self._remember(window)
        self._missed += missed
        if self._rest:
            # The last decision has to take effect before the next one.
            self._rest -= 1
            return
        if self.pressure >= STRAINED or self._missed > max(1, running // 20):
            if running > 1:  # A cell alone is not disturbed by others.
                self._doubling = False
                self.value = max(1, math.floor(min(self.value, running) * SHRINK_FACTOR))
            self._forget()
            return
        self._missed = 0
        # An unreached limit was not tested (RFC 7661), nor was one with most reports still to come.
        if self.pressure < CALM and running >= self.value and 2 * window.reports >= running:
            self.value = min(self.largest, 2 * self.value if self._doubling else self.value + self._step)
            self._rest = 1

    def _remember(self, window: FidelityWindow) -> None:
        fade = 0.5 ** (1 / HALF_LIFE_WINDOWS)
        self._weight = 1.0 + fade * self._weight
        share = 1.0 / self._weight
        old = self._memory
        self._memory = FidelityWindow(
            released=window.released + fade * old.released,
            late=window.late + fade * old.late,
            starvation=old.starvation + share * (window.starvation - old.starvation),
            probe_starvation=old.probe_starvation + share * (window.probe_starvation - old.probe_starvation),
            exchange_delay=old.exchange_delay + share * (window.exchange_delay - old.exchange_delay),
        )
        self.pressure = self._memory.pressure(self.budget)

    def _forget(self) -> None:
        self._memory, self._weight = FidelityWindow(), 0.0
        self._rest = 2
        self._missed = 0


@dataclass(frozen=True)
class Concurrency:
    """How many cells run, and how well the emulation keeps up.

    Attributes: limit: None when fixed by hand. window: the last one. pressure: share of the budget used lately.
    """

    running: int
    limit: int | None
    window: FidelityWindow
    pressure: float


class ConcurrencyControl(Meter):
    """Turns the cells' fidelity reports into their maximum concurrency, window by window.

    Args: budget: the cells'. processors, cells: their numbers. jobs: fixed concurrency; None for the budget's.
    """

    def __init__(self, budget: WaitingBudget, *, processors: int, cells: int, jobs: int | None) -> None:
        super().__init__()
        first = FIRST_PER_PROCESSOR * processors
        self._limit = Limit(budget, first=first, step=processors, largest=jobs or cells)
        self._is_fixed = jobs is not None
        self._missed = 0

    @property
    def limit(self) -> int:
        """The maximum concurrency, unless fixed."""
        return self._limit.value

    def handle_budget_missed(self) -> None:
        """Counts an ended cell over its budget."""
        self._missed += 1

    def end_window(self, *, running: int) -> Concurrency:
        """Ends a window with so many running cells. Returns its summary."""
        window = self.take()
        self._limit.handle_window(window, running=running, missed=self._missed)
        self._missed = 0
        return Concurrency(running, None if self._is_fixed else self.limit, window, self._limit.pressure)
