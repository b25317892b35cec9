"""Which processors a cell gets, and how long its emulator may watch the clock there.

Alone, the last processor is its emulator's and all others are its hosts'. Together, the last quarter of the processors
is the emulators' and the rest the hosts', two to each cell; with two or three processors that comes to the same.
"""

import os
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

WATCHED = 0.3
"""Share of an emulators' processor that all who share it may spend watching the clock, together."""


_COMPANY = 4
"""More may join than are known when a cell starts: so many times as many."""


class Processors:
    """The processors of this process, shared out to cells.

    Args: usable: their numbers, all that this process may use by default.
    """

    def __init__(self, usable: Sequence[int] | None = None) -> None:
        self.usable = sorted(usable if usable is not None else os.sched_getaffinity(0))
        count = len(self.usable)
        split = count - max(1, count // 4)
        self.hosts = self.usable[:split] or self.usable
        self.emulators = self.usable[split:]
        self._taken: Counter[int] = Counter()
        self._next = 0

    def place(self, backend: str, *, beside: int = 0) -> dict[str, Any]:
        """A placement (docs/cell-protocol.md) for a cell that runs beside up to so many others; with none, for one
        alone.
        """
        if len(self.usable) < 2:
            return {"watch": 0.0} if beside else {}
        if backend == "direct":
            return {"host_cpus": self.usable}
        if not beside:
            return {"emulator_cpus": self.usable[-1:], "host_cpus": self.usable[:-1]}
        emulator = min(self.emulators, key=lambda cpu: (self._taken[cpu], cpu))
        self._taken[emulator] += 1
        hosts = self.hosts
        if len(hosts) > 2:
            hosts = [self.hosts[(self._next + step) % len(self.hosts)] for step in (0, 1)]
            self._next += 2
        share = min(0.7, WATCHED * len(self.emulators) / (_COMPANY * (beside + 1)))
        return {"watch": round(share, 6), "emulator_cpus": [emulator], "host_cpus": hosts}

    def release(self, placement: dict[str, Any]) -> None:
        """A cell with this placement has ended."""
        if "watch" in placement:
            self._taken.subtract(placement.get("emulator_cpus", ()))

    def leave_to_emulators(self) -> set[int]:
        """Moves every thread of this process off the emulators' processors. Returns what the caller had, for `restore`.

        A kernel that is not preemptible finishes our system calls before an emulator runs, whatever its priority.
        """
        before = os.sched_getaffinity(0)
        _move(set(self.hosts))
        return before


def restore(processors: set[int]) -> None:
    """Lets every thread of this process run on `processors` again."""
    _move(processors)


def _move(processors: set[int]) -> None:
    try:
        threads = [int(one.name) for one in Path("/proc/self/task").iterdir()]
    except OSError:
        threads = [threading.get_native_id()]
    for thread in threads:
        with suppress(OSError):  # A thread may have ended, or may not be moved; that costs fidelity, which is measured.
            os.sched_setaffinity(thread, processors)
