"""Cells in virtual time: one at a time on each processor, each on a fresh copy of a kernel that was booted once."""

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosswind.cell.guests import MEMORY_MB, PROGRAM_MEMORY_MB, Template
from crosswind.cell.kernels import find_kernel
from crosswind.peers.registry import PEERS
from crosswind.store.plan import PlannedCell


@dataclass(frozen=True)
class Seat:
    """Where a cell in virtual time runs."""

    template: Template
    cpu: int


def trusts(planned: PlannedCell) -> bool:
    """Whether a guest for a cell trusts its programs: Crosswind's own and the peers that come with it, no user's."""
    return not planned.runs_programs and all(name in PEERS for name in planned.peers.values())


def memory_mb(planned: PlannedCell) -> int:
    """What a guest gets for a cell. A cell whose client or server is a peer runs a program too."""
    return PROGRAM_MEMORY_MB if planned.runs_programs or planned.peers else MEMORY_MB


class VirtualQueue:
    """What is to run in virtual time, in order.

    Args: missing: the repetitions. processors: that guests may use. jobs: cells at a time; None for one a processor.
    """

    def __init__(
        self, missing: Iterable[PlannedCell], *, processors: Sequence[int], binary: Path, jobs: int | None = None
    ) -> None:
        self._ready = deque(missing)
        # Several processes that run few cells each at the same time should not all take the same processors.
        own = deque(processors)
        own.rotate(os.getpid())
        self._free = deque(list(own)[:jobs])
        self._binary = binary
        self._templates: dict[tuple[str | None, int, bool], Template] = {}

    def __len__(self) -> int:
        return len(self._ready)

    def extend(self, added: Iterable[PlannedCell]) -> None:
        """Further repetitions are to run."""
        self._ready.extend(added)

    def next(self) -> tuple[PlannedCell, Seat] | None:
        """What may start now. Raises: EngineError when there is no such kernel, or it does not run."""
        if not self._ready or not self._free:
            return None
        planned = self._ready.popleft()
        key = series, memory, trusted = planned.kernel, memory_mb(planned), trusts(planned)
        if key not in self._templates:
            self._templates[key] = Template(find_kernel(series), self._binary, memory_mb=memory, trusted=trusted)
        return planned, Seat(self._templates[key], self._free.popleft())

    def release(self, seat: Seat) -> None:
        """A cell has left it."""
        self._free.append(seat.cpu)

    def close(self) -> None:
        """Ends the kernels, and what runs on them."""
        for template in self._templates.values():
            template.close()
        self._templates.clear()
