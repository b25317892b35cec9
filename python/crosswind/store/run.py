"""A run on the disk for programs: settings, progress, measurements."""

from collections.abc import Collection, Container, Iterator
from pathlib import Path

import polars as pl

from crosswind.catalog.tables import Table
from crosswind.cell.record import CellRun, LargeRun, RunRecord
from crosswind.errors import StoreError
from crosswind.store.addresses import place_of, shown
from crosswind.store.directory import Store
from crosswind.store.kept import Sums
from crosswind.store.manifest import Manifest, Status
from crosswind.store.record import cell_run, large_run_of, packets_of, record_of
from crosswind.store.result import RepetitionResult

MOST_CELLS = 1000
MOST_REPETITIONS = 50_000
"""Limit for a full analysis. A larger run has an overview of its cells."""


class StoredRun:
    """A run. Made by `crosswind.run`, `crosswind.resume` and `crosswind.load`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"Run({shown(self.directory)!r}, {self.status.value})"

    @property
    def directory(self) -> Path:
        """Where it is kept; of a run on an object store, its copy on this machine."""
        return self._store.directory

    @property
    def manifest(self) -> Manifest:
        """Its study, options, provenance, sessions and status."""
        return self._store.manifest

    @property
    def status(self) -> Status:
        """How far it is."""
        return self.manifest.status

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early; `crosswind.resume` continues it."""
        return self.status is Status.INTERRUPTED

    @property
    def planned(self) -> int:
        """How many repetitions its plan holds."""
        return self.manifest.planned

    @property
    def valid(self) -> bool:
        """Whether every repetition of the plan was run and is valid, and in every cell some exchange succeeded."""
        sums = self.sums()
        return sums.valid == self.planned and sums.cells == sums.succeeded

    def sums(self) -> Sums:
        """Totals over its undamaged repetitions. Raises: StoreError."""
        return self._store.sums()

    def results(self) -> dict[str, RepetitionResult]:
        """Every repetition's result by key, in planned order. Raises: StoreError."""
        return self._store.results()

    def iter_results(self) -> Iterator[RepetitionResult]:
        """The same one after another, in no order: a large run has more than fit into memory. Raises: StoreError."""
        return self._store.iter_results()

    @property
    def cells(self) -> Collection[int]:
        """Indices of its planned cells. Raises: StoreError."""
        return {kind.cell for kind in self._store.plan.kinds}

    @property
    def is_large(self) -> bool:
        """Whether it has more than is analysed in depth as a whole. Raises: StoreError."""
        return self.planned > MOST_CELLS and (len(self.cells) > MOST_CELLS or self.planned > MOST_REPETITIONS)

    def record(self, cells: Container[int] | None = None) -> RunRecord:
        """The run with its tables, as `crosswind.analysis.analyse` takes it.

        Args: cells: the repetitions of these alone; None: all. Raises: StoreError.
        """
        return record_of(self._store, cells)

    def large(self, cells: Container[int], *, results: bool = True) -> LargeRun:
        """The run for reading part by part, with some cells' tables.

        Args: as for `large_run_of`. Raises: StoreError.
        """
        return large_run_of(self._store, cells, results=results)

    def measured(self, cells: Container[int] | None = None) -> RunRecord:
        """As `record`. Raises: StoreError, also without an undamaged result."""
        record = self.record(cells)
        if record.cells:
            return record
        hint = f"`crosswind run --resume {shown(self.directory)}` continues it"
        if record.damaged:
            raise StoreError(f"{shown(self.directory)} has no undamaged result: {record.damaged[0].text}", hint=hint)
        raise StoreError(f"{shown(self.directory)} has no results yet", hint=hint)

    def cell_run(self, result: RepetitionResult) -> CellRun:
        """One repetition with its tables. Raises: DamagedFileError when one has changed."""
        return cell_run(self._store, result)

    def table(self, result: RepetitionResult, table: Table) -> pl.DataFrame:
        """A repetition's table; empty where none was written. Raises: StoreError."""
        return self._store.table(result, table)

    def packets(self, result: RepetitionResult) -> pl.DataFrame | None:
        """The packets of a repetition (docs/result.md); None where they were not kept. Raises: StoreError."""
        return packets_of(self._store, result)


def load(directory: Path | str) -> StoredRun:
    """The run in a directory or at an address, whether or not a session is at work on it.

    Raises: StoreError when it is no run.
    """
    return StoredRun(Store.read(place_of(directory)))
