"""Observers of a run: a live display, a log, a user's program."""

from collections.abc import Sequence

from crosswind.catalog.precision import CellPrecision
from crosswind.cell.events import CellEvent
from crosswind.cell.process import CellEnd
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.reach import Reached
from crosswind.store.plan import PlannedCell


class Observer:
    """Callbacks during a run. They do nothing; subclasses override some."""

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Before the first cell. Args: name: the study's. missing: planned repetitions still to run."""

    def cell_started(self, planned: PlannedCell) -> None:
        """A process was started for this repetition."""

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        """It printed an event."""

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """It ended, well or not, and is stored."""

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        """It ended, missed its fidelity budget, is stored aside, and will be run again."""

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """Some cells will be run again: they are imprecise, or each of their packets is lost in turn."""

    def precision(self, state: Sequence[CellPrecision]) -> None:
        """How narrow the intervals are, after each round. Called where a study asks for a precision."""

    def concurrency(self, now: Concurrency) -> None:
        """A window is over."""

    def reached(self, server: str, tried: Sequence[Reached]) -> None:
        """Before a run over a real network: each transport's trial."""

    def remark(self, text: str) -> None:
        """A note for the user."""

    def run_ended(self) -> None:
        """Nothing more will come."""
