"""Measures what the repetitions of a session take, and their shares of its time, for forecasts of the next runs."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from crosswind.cell.process import CellEnd
from crosswind.execution.durations import (
    cell_time,
    company_of,
    computed_s,
    forecast_of,
    key_of_plan,
    learn,
    one_of_each,
)
from crosswind.execution.observer import Forwarding, Observer
from crosswind.forecast.kinds import CellTime
from crosswind.forecast.learned import Durations, Taken
from crosswind.store.plan import PlannedCell


class Shares:
    """Shares of a session's time: while some run side by side, each has an equal part of it. Times are in seconds."""

    def __init__(self) -> None:
        self._shares: defaultdict[str, float] = defaultdict(float)
        self._running: list[str] = []
        self._since = 0.0

    def handle_start(self, now: float, key: str) -> None:
        """A repetition starts."""
        self._share_out(now)
        self._running.append(key)

    def handle_end(self, now: float, key: str) -> None:
        """It ends; it may start again."""
        self._share_out(now)
        if key in self._running:
            self._running.remove(key)

    def of(self, key: str) -> float:
        """What a repetition has had, all its attempts together."""
        return self._shares[key]

    def _share_out(self, now: float) -> None:
        for key in self._running:
            self._shares[key] += (now - self._since) / len(self._running)
        self._since = now


class Timekeeper(Forwarding):
    """Notes how long every repetition of a session took.

    Args: observer: sees the run go by too. clock: says how many seconds have passed.
    """

    def __init__(self, observer: Observer, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(observer)
        self._clock = clock
        self._shares = Shares()
        self._taken: dict[str, tuple[PlannedCell, float]] = {}
        self._plan: str | None = None
        self._planned = 0

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Notes what is to be run, where that is a whole plan."""
        self._plan = key_of_plan(plan) if len(missing) == len(plan) else None
        self._planned = len(plan)
        super().run_started(name, plan, missing)

    def cell_started(self, planned: PlannedCell) -> None:
        """From here on it has its share."""
        self._shares.handle_start(self._clock(), planned.key)
        super().cell_started(planned)

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """Notes it, unless the cell failed, whose time says nothing."""
        self._shares.handle_end(self._clock(), planned.key)
        if end.finished is not None:
            self._taken[planned.key] = (planned, end.elapsed_ns / 1e9)
        super().cell_ended(planned, end)

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        """Counts an attempt that does not count for the run: it took its share like any other."""
        self._shares.handle_end(self._clock(), planned.key)
        super().cell_repeated(planned, end)

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """From here on it is no plan that was known before."""
        self._plan = None
        super().plan_grew(added)

    def learn(self, wall_s: float | None) -> None:
        """Learns from the session. Args: wall_s: what it took; None where that says nothing, as when it was stopped."""
        taken = self._means()
        if not taken:
            return
        # A session with repetitions that failed says nothing of one in which they do not.
        is_whole = wall_s is not None and len(self._taken) >= self._planned

        def change(durations: Durations) -> None:
            durations.learn_cells(taken)
            if wall_s is None or not is_whole:
                return
            if self._plan is not None:
                durations.learn_plan(self._plan, wall_s)
            clocks = {one.cell.clock for one in taken}
            if len(clocks) == 1:
                clock = clocks.pop()
                durations.learn_session(clock, sum(self._shares.of(key) for key in self._taken), wall_s)
                self._learn_companies(durations, clock)

        learn(change)

    def _learn_companies(self, durations: Durations, clock: str) -> None:
        shares_s: defaultdict[str, float] = defaultdict(float)
        runs = []
        for key, (planned, seconds) in self._taken.items():
            runs.append(replace(forecast_of(planned), duration_ns=round(1e9 * seconds)))
            shares_s[company_of(runs[-1], clock)] += self._shares.of(key)
        for name, seconds in computed_s(runs, clock).items():
            durations.learn_company(name, shares_s[name], seconds)

    def _means(self) -> list[Taken]:
        """What the repetitions of each cell took. Cells of a study may be the same."""
        times = {
            planned.cell: cell_time(planned) for planned in one_of_each(planned for planned, _ in self._taken.values())
        }
        groups: defaultdict[CellTime, list[tuple[float, float]]] = defaultdict(list)
        for key, (planned, seconds) in self._taken.items():
            groups[times[planned.cell]].append((seconds, self._shares.of(key)))
        return [
            Taken(cell, fmean(seconds for seconds, _ in own), fmean(share_s for _, share_s in own), len(own))
            for cell, own in groups.items()
        ]
