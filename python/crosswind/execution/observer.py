"""Who sees a run go by: a live display, a log, a program of the user's; or nobody."""

from collections.abc import Sequence

from crosswind.catalog.precision import CellPrecision
from crosswind.cell.events import CellEvent
from crosswind.cell.process import CellEnd
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.reach import Reached
from crosswind.store.plan import PlannedCell


class Observer:
    """Is called as a run goes on. Its methods do nothing; one that wants to see something overrides some of them."""

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Before the first cell. Args: name: of the study. missing: what of the plan will be run."""

    def cell_started(self, planned: PlannedCell) -> None:
        """A process was started for this repetition."""

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        """It printed an event."""

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """It ended, well or not, and is stored."""

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        """It ended, missed its fidelity budget, is stored aside, and will be run again."""

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """Cells that are not precise enough yet will be run again."""

    def precision(self, state: Sequence[CellPrecision]) -> None:
        """How narrow the intervals are, after each round. Called where a study asks for a precision."""

    def concurrency(self, now: Concurrency) -> None:
        """A window is over."""

    def reached(self, server: str, tried: Sequence[Reached]) -> None:
        """Before a run over a real network: what came of trying each transport."""

    def remark(self, text: str) -> None:
        """Something that whoever watches should know."""

    def run_ended(self) -> None:
        """Nothing more will come."""
