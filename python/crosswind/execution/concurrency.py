"""How many cells may run at a time: as many as the fidelity budget allows, found by trying (docs/decisions/0006).

The limit follows TCP's congestion control: fidelity is the path, late packets are its losses. It doubles until a first
sign of trouble, then grows by steps, and shrinks by a share whenever the budget is missed (Chiu and Jain 1989). Time is
an argument. Nothing here knows what a cell measures: fidelity alone decides.
"""

import math
from dataclasses import dataclass

WINDOW_S = 0.5
"""How long fidelity is watched for one decision."""

FIRST = 16
"""Cells at a time before anything is known."""

MOST = 1000
SHRINK = 0.7
GROW = 4
CALM, STRAINED = 0.25, 0.5
"""Shares of the budget. Below the first the limit grows, from the second on it shrinks. The budget is each cell's, and
what is watched is all cells together: where all of them use it up, half of the cells have overdrawn it."""

_LATE_SHARE = 0.01
"""The budget is one of the 99th percentile: one packet of a hundred may be late."""

MEMORY = 4
"""Windows after which one counts half."""

_SHORTEST_NS = 100_000_000
"""Counters over less time than this say nothing about shares of it; they wait for the next window."""

_FEWEST = 100
"""Packets that a window must have before late ones among them are a rate."""


@dataclass(frozen=True)
class Budget:
    """What a cell's fidelity budget allows: shares of time that a thread may wait for a processor."""

    starvation: float = 0.2
    probe_starvation: float = 0.4


@dataclass(frozen=True)
class Counters:
    """What a running cell has told of itself so far: packets released, those late, and waits in nanoseconds."""

    elapsed_ns: int = 0
    released: int = 0
    late: int = 0
    wait_ns: int = 0
    probe_wait_ns: int = 0


@dataclass(frozen=True)
class Window:
    """Fidelity of all running cells together over one window.

    Attributes: released, late: packets; fractions of them where windows are remembered. starvation, probe_starvation:
        mean share of time that the emulators, and the hosts' slowest threads, waited for a processor.
    """

    released: float = 0
    late: float = 0
    starvation: float = 0.0
    probe_starvation: float = 0.0

    @property
    def late_share(self) -> float:
        """Late packets of all."""
        return self.late / self.released if self.released else 0.0

    def pressure(self, budget: Budget) -> float:
        """How much of the budget is used: 1 is all of it. Few packets say little and count as if they were more."""
        late = self.late / max(self.released, _FEWEST) / _LATE_SHARE
        waits = (
            (self.starvation, budget.starvation),
            (self.probe_starvation, budget.probe_starvation),
        )
        return max(late, *(share / allowed if allowed else math.inf if share else 0.0 for share, allowed in waits))


class Meter:
    """Adds up what cells tell, window by window."""

    def __init__(self) -> None:
        self._now: dict[str, Counters] = {}
        self._before: dict[str, Counters] = {}

    def handle(self, key: str, counters: Counters) -> None:
        """A cell told how it is going."""
        self._now[key] = counters

    def forget(self, key: str) -> None:
        """A cell has ended. What it did since the last window is not counted: its own result is its verdict."""
        self._before.pop(key, None)
        self._now.pop(key, None)

    def take(self) -> Window:
        """The window since the last call, of the cells that told anything in it."""
        steps = []
        for key, one in self._now.items():
            before = self._before.get(key, Counters())
            if one.elapsed_ns - before.elapsed_ns >= _SHORTEST_NS:
                steps.append((one, before))
                self._before[key] = one
        elapsed_ns = sum(one.elapsed_ns - before.elapsed_ns for one, before in steps) or 1
        return Window(
            released=sum(one.released - before.released for one, before in steps),
            late=sum(one.late - before.late for one, before in steps),
            starvation=sum(one.wait_ns - before.wait_ns for one, before in steps) / elapsed_ns,
            probe_starvation=sum(one.probe_wait_ns - before.probe_wait_ns for one, before in steps) / elapsed_ns,
        )


class Limit:
    """The number of cells that may run at a time.

    Windows are remembered with a half-life of MEMORY of them: the budget is one of whole cells, and a processor that
    the hypervisor takes away for a moment says nothing about how many there are.

    Args: budget: of the cells. first: to begin with. most: never more.
    """

    def __init__(self, budget: Budget | None = None, *, first: int = FIRST, most: int = MOST) -> None:
        self.budget = budget or Budget()
        self.most = max(1, most)
        self.value = min(first, self.most)
        self.pressure = 0.0
        self._memory = Window()
        self._weight = 0.0
        self._doubling = True
        self._rest = 0
        self._missed = 0

    def handle_window(self, window: Window, *, running: int, missed: int = 0) -> None:
        """One window is over.

        Args: window: the fidelity in it. running: cells at its end. missed: cells that ended in it, over their budget.
        """
        self._remember(window)
        self._missed += missed
        if self._rest:
            # What was decided last has to show before the next decision.
            self._rest -= 1
            return
        if self.pressure >= STRAINED or self._missed > max(1, running // 20):
            if running > 1:  # Whatever strains one cell is not the company it keeps.
                self._doubling = False
                self.value = max(1, math.floor(min(self.value, running) * SHRINK))
            self._forget()
            return
        self._missed = 0
        if self.pressure < CALM and running >= self.value:
            # A limit that was not reached was not tested (RFC 7661).
            self.value = min(self.most, 2 * self.value if self._doubling else self.value + GROW)
            self._rest = 1

    def _remember(self, window: Window) -> None:
        fade = 0.5 ** (1 / MEMORY)
        self._weight = 1.0 + fade * self._weight
        share = 1.0 / self._weight
        old = self._memory
        self._memory = Window(
            released=window.released + fade * old.released,
            late=window.late + fade * old.late,
            starvation=old.starvation + share * (window.starvation - old.starvation),
            probe_starvation=old.probe_starvation + share * (window.probe_starvation - old.probe_starvation),
        )
        self.pressure = self._memory.pressure(self.budget)

    def _forget(self) -> None:
        self._memory, self._weight = Window(), 0.0
        self._rest = 2
        self._missed = 0
