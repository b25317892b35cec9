"""Options for running a study, from a command line or a program."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.execution.clusters import check_cluster
from crosswind.execution.observer import Observer
from crosswind.store.manifest import Options


@dataclass(frozen=True)
class RunOptions:
    """Options for running a study.

    Attributes:
        output: the run's directory, absent or empty; None for `crosswind-runs/<study>-<UTC time>`.
        files: to keep for every cell.
        jobs: cells at a time; None for as many as the fidelity budget allows, or as the resumed run had.
        on: the cluster (docs/clusters.md); None for this machine.
        observers: see the run's events.
        command: for the run's provenance; None for this process's command line.
    """

    output: Path | None = None
    files: Options = field(default_factory=Options)
    jobs: int | None = None
    on: str | None = None
    observers: Sequence[Observer] = ()
    command: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Raises: UsageError for an unknown cluster."""
        if self.on is not None:
            check_cluster(self.on)

    def remark(self, text: str) -> None:
        """Tells every observer."""
        for observer in self.observers:
            observer.remark(text)
