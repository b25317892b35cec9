"""A run's outcome for analysis and report: plain values, no store, no scheduler, no process.

A `RunRecord` holds one `CellRun` per executed repetition. A runner or loader builds it; nothing below this module knows
its origin, so a report renders on any machine.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from crosswind.catalog.disturbed import Disturbed
from crosswind.catalog.endpoints import is_virtual
from crosswind.catalog.path_effect import PathEffect
from crosswind.catalog.tables import FLOWS, OBJECTS, PACKETS, PIECES, SAMPLES, SPENT
from crosswind.cell.failure import Failure
from crosswind.cell.result import Finished
from crosswind.files.damage import Damage

PROBES = 1
"""`stream` of requests beside a transfer, on its connection."""

OF_REPETITION = {"cell": pl.UInt32, "repetition": pl.UInt32}
"""Columns naming a row's repetition, in tables over several."""


def output_of_program(key: str, name: str = "client.err") -> str:
    """A repetition's program output, within the run's directory."""
    return f"cells/{key}/{name}"


@dataclass(frozen=True)
class CellRun:
    """One executed repetition.

    Attributes:
        key: unique within the run.
        cell: index in the plan, shared by its repetitions.
        repetition: 0-based. block: 0-based index of its randomised block.
        levels: factor key to level, as written, e.g. {"path.loss": "5%"}.
        parameters: the cell as sent to crosswind-cell (docs/cell-protocol.md). effect: its path's.
        finished: its result, None after a failure. failure: None after a result.
        attempts: its number; earlier ones missed their fidelity budget.
        exact: whether nothing in it was random, so any repetition would be the same.
        same_as: the repetition run in its place, since it loses the same packets; None: it was run itself.
        disturbed: packets that it loses or holds back by design; None: none.
        beside: maximum number of concurrent other cells; None if unknown.
        machine: its machine's name; None for the session's.
        samples: shape of SAMPLES, without flows beside the workload; empty after a failure and for programs.
        probes: requests beside transfers, on their own connections, shape of SAMPLES.
        spent: its exchanges' time breakdown, shape of SPENT; empty if unknown.
        intervals: each flow's packets over time, shape of FLOWS; empty for a workload alone.
        objects: shape of OBJECTS; empty except for pages.
        packets: of a clean repetition beside disturbed ones, shape of PACKETS; empty for others.
        pieces: reads its exchanges' intervals, shape of PIECES.
        client_out: a client program's standard output; its end, if long.
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
    same_as: str | None = None
    disturbed: Disturbed | None = None
    beside: int | None = None
    machine: str | None = None
    samples: pl.DataFrame = field(default_factory=lambda: SAMPLES.empty)
    probes: pl.DataFrame = field(default_factory=lambda: SAMPLES.empty)
    spent: pl.DataFrame = field(default_factory=lambda: SPENT.empty)
    intervals: pl.DataFrame = field(default_factory=lambda: FLOWS.empty)
    objects: pl.DataFrame = field(default_factory=lambda: OBJECTS.empty)
    packets: pl.DataFrame = field(default_factory=lambda: PACKETS.empty)
    pieces: Callable[[], pl.DataFrame] = field(default=lambda: PIECES.empty, compare=False, repr=False)
    client_out: str = ""

    @property
    def clock(self) -> Literal["real", "virtual"]:
        """Its clock; without a result, the planned one."""
        virtual = is_virtual(self.parameters) if self.finished is None else self.finished.virtual_time
        return "virtual" if virtual else "real"


@dataclass(frozen=True)
class RunPart:
    """Some repetitions, one below the other.

    Attributes:
        cells: theirs. repetitions: their number.
        texts: `cell`, `repetition`, and its JSON, `result`; None if unrequested and all valid. samples: `cell`,
            `repetition`, and the columns of SAMPLES.
    """

    cells: frozenset[int]
    repetitions: int
    texts: pl.DataFrame | None
    samples: pl.DataFrame


@dataclass(frozen=True)
class RunRecord:
    """A whole run: the study as written, every executed repetition, and its origin.

    Attributes:
        study: as a plain mapping. title: its heading. name: its short name.
        asked: the study's findings by kind, in stored form (crosswind.findings); `cells` are their cells' indices.
        models: names for models beside the measurement (crosswind.models.registry).
        notes: sentences for the report. left_out: omissions, likewise.
        limits: cells with fewer repetitions, each {at_most, cells}.
        compare_by: statistics for comparing levels beside the mean.
        cells: executed repetitions, in any order. planned: number in the plan.
        provenance: versions, machine, seeds, command line.
        precision: intervals' targets, as in the manifest; None without any.
        damaged: executed repetitions left out for a damaged file.
        keeps_parts: whether time breakdowns were requested.
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
    """A run too large for a look at each repetition.

    Attributes:
        record: the run, with repetitions only for cells under a finding.
        cells: each planned cell, as a repetition without a result. planned: number of repetitions.
        seeds: `cell`, `repetition` and `seed`. parts: all repetitions, to be read once. damaged: omissions, complete
            after reading the parts.
    """

    record: RunRecord
    cells: Sequence[CellRun]
    planned: int
    seeds: pl.DataFrame
    parts: Iterable[RunPart]
    damaged: list[Damage]
