"""Repetitions in virtual time: one at a time on each processor, each on a fresh copy of a booted kernel."""

import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from crosswind.cell.guests import MEMORY_MB, PROGRAM_MEMORY_MB, Template
from crosswind.cell.kernels import find_kernel
from crosswind.cell.process import CellProcess
from crosswind.execution.admission import Admitted
from crosswind.execution.workers.worker import Launched, RunningCell, Start, Worker
from crosswind.store.plan import PlannedCell

HEARTBEAT_NS = 10_000_000_000
"""A cell's report interval, in its own time."""


class VirtualWorker(Worker):
    """The guests of one session.

    Args: jobs: cells at a time; None for one a processor. directory: that of their programs; None for this process's.
    """

    is_undisturbed = True

    def __init__(
        self, missing: Sequence[PlannedCell], *, binary: Path, jobs: int | None, directory: Path | None = None
    ) -> None:
        self._directory = directory
        self._ready = deque(planned for planned in missing if self.takes(planned))
        # Concurrent processes with few cells each should not all take the same processors.
        processors = deque(sorted(os.sched_getaffinity(0)))
        processors.rotate(os.getpid())
        self._free = deque(list(processors)[:jobs])
        self._cpus: dict[str, int] = {}
        self._binary = binary
        self._templates: dict[int, Template] = {}

    def takes(self, planned: PlannedCell) -> bool:
        """Every repetition in virtual time."""
        return planned.is_virtual

    def add(self, added: Sequence[PlannedCell]) -> None:
        """Appends to the queue."""
        self._ready.extend(added)

    def __len__(self) -> int:
        return len(self._ready)

    def next(self, running: Sequence[RunningCell]) -> Admitted | None:
        """The next one, as long as a processor is free."""
        if not self._ready or not self._free:
            return None
        return Admitted(self._ready.popleft(), beside=len(running))

    def start(self, asked: Start) -> Launched:
        """A copy of the kernel. Raises: EngineError also when there is no such kernel."""
        cpu = self._free.popleft()
        self._cpus[asked.planned.key] = cpu
        cell, template = asked.cell(heartbeat_ns=HEARTBEAT_NS), self._template(asked.planned)
        process = CellProcess(
            cell,
            binary=self._binary,
            on_event=asked.on_event,
            template=template,
            cpu=cpu,
            directory=self._directory,
        )
        return Launched(process)

    def handle_end(self, cell: RunningCell) -> None:
        """Its processor is free."""
        self._free.append(self._cpus.pop(cell.planned.key))

    def close(self) -> None:
        """Ends the kernels and their cells."""
        for template in self._templates.values():
            template.close()
        self._templates.clear()

    def _template(self, planned: PlannedCell) -> Template:
        memory = memory_mb(planned)
        if memory not in self._templates:
            self._templates[memory] = Template(find_kernel(), self._binary, memory_mb=memory)
        return self._templates[memory]


MOST_IN_LITTLE = 32
"""Maximum flows in a guest's usual memory, whatever they do."""


def memory_mb(planned: PlannedCell) -> int:
    """A guest's memory for a cell. A peer is a program too; a flow takes 0.5 MB over TCP and 8 MB over QUIC."""
    flows = sum(int(flow.get("count", 1)) for flow in planned.parameters.get("flows") or ())
    is_large = planned.has_programs or planned.peers or flows > MOST_IN_LITTLE
    return PROGRAM_MEMORY_MB if is_large else MEMORY_MB
