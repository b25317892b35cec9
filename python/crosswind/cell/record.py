"""What one run left behind, as analysis and report see it: plain values, no store, no scheduler, no process.

A `RunRecord` holds one `CellRun` per executed repetition of a cell. Whoever runs or loads a study builds it; nothing
below this module knows where it came from, so a report renders on any machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from crosswind.catalog.endpoints import is_virtual
from crosswind.catalog.path_effect import PathEffect
from crosswind.catalog.tables import FLOWS, OBJECTS, SAMPLES, SPENT
from crosswind.cell.failure import Failure
from crosswind.cell.result import Finished
from crosswind.files.damage import Damage

PROBES = 1
"""`stream` of requests beside a transfer, on its connection."""

OF_REPETITION = {"cell": pl.UInt32, "repetition": pl.UInt32}
"""The columns that say of which repetition a row is, where a table has those of several."""


def output_of_program(key: str, name: str = "client.err") -> str:
    """Where a run keeps what a program of a repetition printed, within the run's directory."""
    return f"cells/{key}/{name}"


@dataclass(frozen=True)
class CellRun:
    """One executed repetition of one cell.

    Attributes:
        key: unique name of this repetition within the run.
        cell: index of the cell in the plan; the repetitions of a cell share it.
        repetition: 0-based. block: 0-based index of the randomised block it ran in.
        levels: factor key to level, as written, e.g. {"path.loss": "5%"}.
        parameters: the cell as sent to crosswind-cell (docs/cell-protocol.md). effect: what its path does.
        finished: its result, None when the repetition failed. failure: why it failed, None when it finished.
        attempts: how often it was run, this being the one that counts; the others missed their fidelity budget.
        exact: whether nothing in it was left to chance, so that any repetition would have come out the same.
        beside: most other cells that ran at the same time; None where that is not known.
        machine: the name of the one that it ran on; None for the one that the run was started on.
        samples: its samples table, shape of SAMPLES, without those of flows beside the workload; empty when
            failed or for a program workload.
        probes: requests that transfers beside the workload sent on their own connections, shape of SAMPLES.
        spent: what the time of its exchanges was spent on, shape of SPENT; empty where that is not known.
        intervals: what became of the packets of each flow over time, shape of FLOWS; empty where the workload
            runs alone.
        objects: its objects table, shape of OBJECTS; empty for all but pages.
        client_out: what the client of a program workload printed on its standard output; of much, the end of it.
    """

    key: str
    cell: int
    repetition: int
    block: int
    levels: dict[str, str]
    parameters: dict[str, Any]
    effect: PathEffect
    finished: Finished | None
    failure: Failure | None
    attempts: int = 1
    exact: bool = False
    beside: int | None = None
    machine: str | None = None
    samples: pl.DataFrame = field(default_factory=lambda: SAMPLES.empty)
    probes: pl.DataFrame = field(default_factory=lambda: SAMPLES.empty)
    spent: pl.DataFrame = field(default_factory=lambda: SPENT.empty)
    intervals: pl.DataFrame = field(default_factory=lambda: FLOWS.empty)
    objects: pl.DataFrame = field(default_factory=lambda: OBJECTS.empty)
    client_out: str = ""

    @property
    def clock(self) -> Literal["real", "virtual"]:
        """The clock that it ran on; of a repetition without a result, the one that it was to run on."""
        virtual = is_virtual(self.parameters) if self.finished is None else self.finished.virtual_time
        return "virtual" if virtual else "real"


@dataclass(frozen=True)
class RunPart:
    """Some repetitions of a run, one below the other.

    Attributes:
        cells: of which they are. repetitions: how many.
        texts: `cell`, `repetition`, and what each was as JSON, `result`; None where they are not asked for, and all are
            valid. samples: `cell`, `repetition`, and the columns of SAMPLES.
    """

    cells: frozenset[int]
    repetitions: int
    texts: pl.DataFrame | None
    samples: pl.DataFrame


@dataclass(frozen=True)
class RunRecord:
    """A whole run: the study as written, every repetition that was executed, and where it came from.

    Attributes:
        study: the study as a plain mapping. title: its heading. name: its short name.
        asked: what the study is to find, by kind, in the stored form of each (crosswind.findings); `cells` are the
            indices of the cells that it is about.
        models: names of the models to set beside the measurement (crosswind.models.registry).
        notes: sentences to print in the report. left_out: what of the study was not run, and why, likewise.
        limits: cells that the study runs less often than the others, each {at_most, cells}.
        compare_by: statistics by which levels are compared beside the mean.
        cells: executed repetitions, in any order. planned: how many the plan holds.
        provenance: versions, machine, seeds, command line.
        precision: what intervals were to be narrowed to, as the manifest has it; None where nothing was asked.
        damaged: repetitions that were executed and are left out, because a file of theirs is damaged.
        keeps_parts: whether it was to keep what time was spent on.
    """

    study: dict[str, Any]
    title: str
    name: str
    asked: Mapping[str, Sequence[Mapping[str, Any]]]
    models: list[str]
    notes: list[str]
    cells: list[CellRun]
    planned: int
    provenance: dict[str, Any]
    precision: dict[str, Any] | None = None
    limits: list[dict[str, Any]] = field(default_factory=list)
    compare_by: tuple[str, ...] = ("median",)
    damaged: list[Damage] = field(default_factory=list)
    keeps_parts: bool = True
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class LargeRun:
    """A run of more repetitions than are looked at one by one.

    Attributes:
        record: the run, with the repetitions of those cells alone that something is asked about.
        cells: what each cell of the plan is: a repetition without a result. planned: how many repetitions it holds.
        seeds: `cell`, `repetition` and `seed` of each. parts: all repetitions, to be read once. damaged: what is left
        out, complete when the parts were read.
    """

    record: RunRecord
    cells: Sequence[CellRun]
    planned: int
    seeds: pl.DataFrame
    parts: Iterable[RunPart]
    damaged: list[Damage]
