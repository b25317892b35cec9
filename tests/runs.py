"""Plans, run directories and samples for tests, without a study behind them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cell_events import finished
from crosswind.catalog import ColumnType, SampleColumn
from crosswind.catalog.path_effect import NO_EFFECT
from crosswind.catalog.tables import SAMPLES, Table
from crosswind.cell.failure import Failure
from crosswind.cell.process import CellEnd
from crosswind.cell.record import CellRun
from crosswind.execution.durations import Taken
from crosswind.store.cells import CellsFolder, checksums_in
from crosswind.store.directory import Store
from crosswind.store.files import write_sealed
from crosswind.store.manifest import Manifest, Options, Session
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RESULT, RepetitionResult

RUN_ID = "0123456789abcdef"
STARTED = "2026-01-01T00:00:00.000+00:00"


def taken(*ends: tuple[PlannedCell, CellEnd]) -> Taken:
    """What a session with these repetitions took."""
    summed = Taken()
    for planned, end in ends:
        summed.cell_ended(planned, end)
    return summed


def planned_cell(number: int, **changes: Any) -> PlannedCell:
    """The first repetition of a cell."""
    fields: dict[str, Any] = {
        "key": f"c{number:03d}-r00",
        "order": number,
        "cell": number,
        "repetition": 0,
        "block": 0,
        "seed": 1,
        "levels": {"path.loss": f"{number}%"},
        "parameters": {"schema": "crosswind.cell/1", "workload": {"kind": "echo"}, "output": {"packets": False}},
        "effect": NO_EFFECT,
        "expected_ns": 1,
        "expected_packets": 2,
        "expected_bytes": 60,
        "expected_load": 1.0,
    }
    return PlannedCell(**fields | changes)


def plan_of(cells: int) -> list[PlannedCell]:
    """One repetition of so many cells."""
    return [planned_cell(number) for number in range(cells)]


def manifest(cells: int = 2, name: str = "a-study", started: str = STARTED, **changes: Any) -> Manifest:
    """A run of so many repetitions."""
    fields: dict[str, Any] = {
        "id": RUN_ID,
        "name": name,
        "study": {"title": "A study"},
        "study_digest": "d1",
        "presentation": {"name": name, "title": "A study", "asked": {}, "compare_by": ["median"]}
        | {key: [] for key in ("models", "limits", "left_out", "notes")},
        "options": Options(),
        "planned": cells,
        "provenance": {"started": started},
        "sessions": (Session(started=started),),
    }
    return Manifest(**fields | changes)


def new_run(directory: Path, cells: int = 2, *, plan: Sequence[PlannedCell] | None = None, **changes: Any) -> Store:
    """A run directory with its plan and no results, open for writing."""
    planned = plan_of(cells) if plan is None else plan
    return Store.create(directory, manifest(len(planned), **changes), planned)


def cell_result(planned: PlannedCell, *, failure: Failure | None = None, **changes: Any) -> RepetitionResult:
    """How a repetition ended, well unless a failure is given."""
    fields: dict[str, Any] = {
        "planned": planned,
        "placement": {},
        "beside": 0,
        "attempt": 1,
        "started": STARTED,
        "ended": STARTED,
        "elapsed_ns": 1,
        "finished": None if failure else finished(),
        "failure": failure,
    }
    return RepetitionResult(**fields | changes)


def integers(*names: str) -> Table:
    """A table of whole numbers."""
    return Table("made", tuple(SampleColumn(name, ColumnType.I64, None, nullable=False, help="") for name in names))


def change_sealed(path: Path, **changes: Any) -> None:
    """Gives keys of a manifest or a result other values, as if they had been written so."""
    data = json.loads(path.read_bytes()) | changes
    del data["checksum"]
    write_sealed(path, data)


def reseal(cell: Path) -> None:
    """Has the result in a directory of a repetition say of the files beside it what they are now."""
    beside = {name: found for name, found in checksums_in(cell).items() if name != RESULT}
    change_sealed(cell / RESULT, files={name: checksum.as_json() for name, checksum in beside.items()})


def kept_run(directory: Path, repetitions: Sequence[CellRun]) -> Path:
    """A run directory with these repetitions."""
    plan = [
        planned_cell(
            one.cell, key=f"c{one.cell:03d}-r{one.repetition:02d}", repetition=one.repetition, levels=one.levels,
            parameters=one.parameters,
        )
        for one in repetitions
    ]  # fmt: skip
    with new_run(directory, plan=plan) as store:
        folder = CellsFolder(store.directory, store.manifest.id)
        for planned, one in zip(plan, repetitions, strict=True):
            part = folder.begin(planned.key)
            one.samples.write_parquet(part / "samples.parquet")
            folder.commit(part, cell_result(planned, finished=one.finished, failure=one.failure))
    return directory


def echo_samples(n: int = 60) -> pl.DataFrame:
    """Samples of a clean echo: round trips of 20.0, 20.1, ... ms in a seeded order."""
    rtt_ns = np.random.default_rng(1).permutation(20_000_000 + 100_000 * np.arange(n))
    sent_ns = np.arange(n) * 30_000_000
    columns = {
        "exchange": np.arange(n),
        "connection": np.zeros(n),
        "intended_ns": sent_ns,
        "sent_ns": sent_ns,
        "received_ns": sent_ns + rtt_ns,
        "request_ns": rtt_ns // 2,
        "reply_ns": rtt_ns // 2,
        "server_ns": np.zeros(n),
        "sent_bytes": np.ones(n),
        "received_bytes": np.ones(n),
        "outcome": ["ok"] * n,
        "flow": np.zeros(n),
    }
    return pl.DataFrame({name: columns.get(name, [None] * n) for name in SAMPLES.schema}).cast(dict(SAMPLES.schema))
