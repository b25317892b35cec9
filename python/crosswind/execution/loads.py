"""How many processors cells keep busy: forecast, then corrected by what cells like them really took."""

from statistics import fmean

from crosswind.cell.result import Finished
from crosswind.store.plan import PlannedCell

_WITH_INTERRUPTS = 1.3
"""Processor time of a cell over that of its threads: what the kernel does for it in interrupts comes on top."""

_SHORTEST_NS = 1_000_000_000
"""Cells shorter than this are mostly set-up, which says nothing of the load while they run."""

_SMALLEST_CORRECTION, _LARGEST_CORRECTION = 0.2, 5.0
"""Of a forecast, by what other cells of the same workload took."""


class Loads:
    """What is known of the cells of one session."""

    def __init__(self) -> None:
        self._measured: dict[int, list[float]] = {}
        self._corrections: dict[str, list[float]] = {}

    def learn(self, planned: PlannedCell, finished: Finished) -> None:
        """A repetition ended with this result."""
        if finished.elapsed_ns < _SHORTEST_NS:
            return
        cpu = finished.cpu
        if cpu is None:
            return
        threads_ns = cpu.client_ns + cpu.server_ns + cpu.emulator_ns
        load = _WITH_INTERRUPTS * threads_ns / finished.elapsed_ns
        self._measured.setdefault(planned.cell, []).append(load)
        if planned.expected_load:
            self._corrections.setdefault(planned.workload, []).append(load / planned.expected_load)

    def of(self, planned: PlannedCell) -> float:
        """Processors that the repetition will keep busy."""
        if measured := self._measured.get(planned.cell):
            return fmean(measured)
        corrections = self._corrections.get(planned.workload)
        if not corrections:
            return planned.expected_load
        return planned.expected_load * min(_LARGEST_CORRECTION, max(_SMALLEST_CORRECTION, fmean(corrections)))
