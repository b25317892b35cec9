"""A cell's processors, and its emulator's share of time for watching the clock.

Alone, the last processor is its emulator's and all others are its hosts'. Together, the last quarter is the emulators'
and the rest the hosts', two to each cell; with two or three processors this comes to the same.
"""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from crosswind.catalog.endpoints import EMULATOR, NETWORK

WATCHED = 0.3
"""Share of an emulators' processor for watching the clock, over all emulators on it."""

_STILL_TO_START = 4
"""So many times as many cells may run beside a cell later as are known when it starts."""

_LARGEST_WATCH = 0.7
"""Share of a processor's time, for one emulator."""


class Placement(TypedDict, total=False):
    """A cell's `placement` (docs/cell-protocol.md). Without a key, the cell chooses for itself.

    `watch`: the emulator's share of a processor for watching the clock; a cell alone has none.
    """

    watch: float
    emulator_cpus: list[int]
    host_cpus: list[int]


class Processors:
    """This process's processors, shared among cells.

    Args: usable: their numbers, by default all allowed for this process.
    """

    def __init__(self, usable: Sequence[int] | None = None) -> None:
        self.usable = sorted(usable if usable is not None else os.sched_getaffinity(0))
        count = len(self.usable)
        split = count - max(1, count // 4)
        self.hosts = self.usable[:split] or self.usable
        self.emulators = self.usable[split:]
        self._taken: Counter[int] = Counter()
        self._next = 0

    def place(self, backend: str, *, beside: int = 0) -> Placement:
        """A cell's place beside at most so many others; none means alone."""
        if backend == NETWORK:
            return Placement()
        if len(self.usable) < 2:
            return Placement(watch=0.0) if beside else Placement()
        if backend != EMULATOR:
            return Placement(host_cpus=self.usable)
        if not beside:
            return Placement(emulator_cpus=self.usable[-1:], host_cpus=self.usable[:-1])
        emulator = min(self.emulators, key=lambda cpu: (self._taken[cpu], cpu))
        self._taken[emulator] += 1
        hosts = self.hosts
        if len(hosts) > 2:
            hosts = [self.hosts[(self._next + step) % len(self.hosts)] for step in (0, 1)]
            self._next += 2
        share = min(_LARGEST_WATCH, WATCHED * len(self.emulators) / (_STILL_TO_START * (beside + 1)))
        return Placement(watch=round(share, 6), emulator_cpus=[emulator], host_cpus=hosts)

    def release(self, placement: Placement) -> None:
        """A cell with this placement has ended."""
        if "watch" in placement:
            self._taken.subtract(placement.get("emulator_cpus", ()))

    def leave_to_emulators(self) -> set[int]:
        """Moves every thread in this process off the emulators' processors. Returns the caller's set, for `restore`.

        A non-preemptible kernel finishes our system calls before an emulator runs, whatever its priority.
        """
        before = os.sched_getaffinity(0)
        _move(set(self.hosts))
        return before


def restore(processors: set[int]) -> None:
    """Lets every thread in this process run on `processors` again."""
    _move(processors)


def _move(processors: set[int]) -> None:
    try:
        threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
    except OSError:
        threads = [threading.get_native_id()]
    for thread in threads:
        with suppress(OSError):  # The thread may have ended, or be unmovable; the fidelity measures this cost.
            os.sched_setaffinity(thread, processors)
