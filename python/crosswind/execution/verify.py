"""Checks a run's reproducibility: reruns cells in virtual time, and compares their files bit for bit.

    verification = verify(Path("crosswind-runs/latency-20260101T000000Z"))
    verification.differing

A cell in virtual time follows from its parameters, its seed, its kernel and crosswind-cell. The reruns are a run in a
temporary directory, and so repeat all its steps. Cells on the real clock are measurements, never exactly repeatable.
"""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosswind.cell.binary import find_binary
from crosswind.cell.kernels import build_hint, find_kernel
from crosswind.errors import EngineError, StoreError
from crosswind.execution.observer import Observer
from crosswind.execution.options import RunOptions
from crosswind.execution.session import execute, resume_command
from crosswind.files.damage import Damage, damage_texts
from crosswind.files.inside import files_inside, read_inside
from crosswind.files.temporary import temporary_directory
from crosswind.store.addresses import shown
from crosswind.store.directory import Store
from crosswind.store.manifest import Manifest, Session, Status
from crosswind.store.plan import PlannedCell
from crosswind.store.program_files import differences
from crosswind.store.provenance import cell_version
from crosswind.store.result import RESULT, RepetitionResult
from crosswind.store.wallclock import utc_now

CELLS = 5
"""Default number of cells to rerun."""

_MACHINE_KEYS = (
    "result.versions",
    "result.processors_awake",
    "result.fidelity.realtime",
    "result.fidelity.memory_locked",
    "result.fidelity.cpus",
    "result.peak_memory_bytes",
)
"""Keys in a result, or their beginnings, outside the measurement.

The kernel counts a process's memory in batches: its peak varies now and then, by a few pages.
"""


_TABLE = ".parquet"


@dataclass(frozen=True)
class RerunComparison:
    """One rerun repetition.

    Attributes: differing: changed files, and changed keys in the result, as `result.ledger.forward.in`. added: new keys
        in the result and columns in tables, written by a newer crosswind-cell; they have no counterpart.
    """

    key: str
    differing: tuple[str, ...]
    added: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether everything came out as before."""
        return not self.differing


@dataclass(frozen=True)
class Verification:
    """The verification's outcome.

    Attributes: comparisons: one per rerun repetition, in planned order. repeatable: their number in the run. real:
        repetitions on the real clock, left out. remarks: caveats.
    """

    comparisons: tuple[RerunComparison, ...]
    repeatable: int
    real: int
    remarks: tuple[str, ...]

    @property
    def differing(self) -> tuple[RerunComparison, ...]:
        """Comparisons with a difference."""
        return tuple(comparison for comparison in self.comparisons if not comparison.same)

    @property
    def added(self) -> tuple[str, ...]:
        """Additions in the reruns, each key and column once."""
        return tuple(sorted({name for comparison in self.comparisons for name in comparison.added}))


@dataclass(frozen=True)
class FileCheck:
    """The outcome of checking a run's files.

    Attributes: files: number checked. damaged: in repetitions that count. aside: damage in the other attempts, in
        words.
    """

    files: int
    damaged: tuple[Damage, ...]
    aside: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence for each damaged file."""
        return (*damage_texts(self.damaged), *(f"{text}: it does not count" for text in self.aside))


def verify(
    directory: Path, *, cells: int | None = CELLS, observer: Observer | None = None, on: str | None = None
) -> Verification:
    """Reruns repetitions and compares digests. Nothing in the run is changed.

    Args: cells: how many, spread over the plan; None for all. observer: sees the reruns. on: the cluster; None for this
        machine.
    Raises: StoreError when it is no run, or has nothing repeatable. EngineError when its kernel is missing here, or
        does not run.
    """
    store = Store.read(directory)
    checked = store.check()
    results = store.results()
    damaged = {damage.key for damage in checked.damaged}
    repeatable = [
        result
        for result in results.values()
        if result.planned.is_virtual and result.finished is not None and result.key not in damaged
    ]
    if not repeatable:
        raise _nothing_to_repeat(store, results)
    chosen = spread(repeatable, len(repeatable) if cells is None else cells)
    binary = find_binary()
    remarks = [*_kernel_remarks(store), *_version_remarks(store, binary), *differences(store.manifest.provenance)]
    with temporary_directory() as place:
        plan = [_to_rerun(result, store) for result in chosen]
        again = Store.create(place / "run", _manifest(store, len(chosen)), plan)
        if execute(again, RunOptions(observers=[observer] if observer else [], on=on)).interrupted:
            raise KeyboardInterrupt
        after = again.results()
        comparisons = [
            _compared(
                result, after[result.key], store.unpacked(result, place), again.unpacked(after[result.key], place)
            )
            for result in chosen
        ]
    real = sum(not result.planned.is_virtual for result in results.values())
    return Verification(tuple(comparisons), len(repeatable), real, tuple(remarks))


def _to_rerun(result: RepetitionResult, store: Store) -> PlannedCell:
    """A repetition by itself. One that took another's result has that one's hosts, and its own losses."""
    planned = replace(result.planned, repeats=None)
    if result.same_as is None:
        return planned
    host = planned.parameters.get("host") or {}
    drawn = {"random_seed": host.get("random_seed") or store.plan.with_key(result.same_as).seed}
    return replace(planned, parameters={**planned.parameters, "host": {**host, **drawn}})


def check_files(directory: Path) -> FileCheck:
    """Checks every file of a run against its checksum.

    Raises: StoreError when it is no run, or its manifest or its plan is damaged.
    """
    store = Store.read(directory)
    counted, aside = store.check(), store.check_attempts()
    # The repetitions' files, and the manifest and plan read above.
    files = 2 + counted.files + aside.files
    return FileCheck(files, tuple(counted.damaged), tuple(f"{damage.file} {damage.reason}" for damage in aside.damaged))


def spread(results: Sequence[RepetitionResult], count: int) -> list[RepetitionResult]:
    """So many results, evenly spread over the design."""
    count = min(count, len(results))
    return [results[number * len(results) // count] for number in range(count)]


def digests(directory: Path, *, columns: Mapping[str, list[str]] | None = None) -> dict[str, str]:
    """SHA-256 of a repetition's files, by name, without the result.

    A table's digest is over its contents: Parquet's packing is not the cell's doing.

    Args: columns: by file name, the columns to compare; None for all.
    """
    names = (name for name in _names(directory) if name != RESULT)
    chosen = columns or {}
    return {name: hashlib.sha256(_contents(directory, name, chosen.get(name))).hexdigest() for name in names}


def result_values(finished: Mapping[str, Any]) -> dict[str, str]:
    """Values in a cell's result by dotted key, without the machine's, user's or software's names.

    Args: finished: the result as it is stored.
    """
    values = dict(_flat(finished, "result"))
    return {key: text for key, text in values.items() if not key.startswith(_MACHINE_KEYS)}


def compare_cells(key: str, before: Path, after: Path) -> RerunComparison:
    """Compares two finished repetitions' files. Args: before, after: their directories."""
    schemas = [_schemas(place) for place in (before, after)]
    both = [name for name in schemas[0] if name in schemas[1]]
    columns = {name: [column for column in schemas[0][name] if column in schemas[1][name]] for name in both}
    old, new = (
        digests(place, columns=columns)
        | {f"{name}.{column}": str(kind) for name in both for column, kind in schema[name].items()}
        | result_values(json.loads(read_inside(place, RESULT))["finished"])
        for place, schema in zip((before, after), schemas, strict=True)
    )
    may_be_added = {f"{name}.{column}" for name in both for column in schemas[1][name]}
    may_be_added |= {name for name in new if name.startswith("result.") and not _is_inside(name, old)}
    added = sorted(name for name in may_be_added if name not in old)
    differing = (name for name in sorted(old | new) if old.get(name) != new.get(name) and name not in added)
    return RerunComparison(key, tuple(differing), tuple(added))


def _schemas(directory: Path) -> dict[str, pl.Schema]:
    tables = (name for name in _names(directory) if name.endswith(_TABLE))
    return {name: pl.Schema(pl.read_parquet_schema(io.BytesIO(read_inside(directory, name)))) for name in tables}


def _names(directory: Path) -> list[str]:
    """The files directly in a directory."""
    return [name for name in files_inside(directory) if "/" not in name]


def _is_inside(key: str, known: Mapping[str, str]) -> bool:
    """Whether a dotted key lies inside another with a value, as where the value was null before."""
    parts = key.split(".")
    return any(".".join(parts[:length]) in known for length in range(1, len(parts)))


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}")
    else:
        yield name, json.dumps(value, sort_keys=True)


def _contents(directory: Path, name: str, columns: list[str] | None) -> bytes:
    content = read_inside(directory, name)
    if not name.endswith(_TABLE):
        return content
    table = io.BytesIO()
    contents = pl.read_parquet(io.BytesIO(content), columns=columns)
    contents.select(columns or contents.columns).rechunk().write_ipc(table, compression="uncompressed")
    return table.getvalue()


def _compared(before: RepetitionResult, after: RepetitionResult, place: Path, place_again: Path) -> RerunComparison:
    if before.finished is None or after.finished is None:
        return RerunComparison(before.key, (f"result ({after.failure.message})" if after.failure else "result",))
    return compare_cells(before.key, place, place_again)


def _manifest(store: Store, planned: int) -> Manifest:
    return replace(
        store.manifest,
        planned=planned,
        sessions=(Session(started=utc_now()),),
        status=Status.RUNNING,
    )


def _nothing_to_repeat(store: Store, results: Mapping[str, RepetitionResult]) -> StoreError:
    planned = [item for item in store.plan if item.is_virtual]
    if planned:
        failed = sum(result.failure is not None for result in results.values())
        return StoreError(
            f"no cell of {shown(store.directory)} in virtual time has finished"
            + (f"; {failed} failed" if failed else ""),
            hint=f"{resume_command(store.directory)} continues it",
        )
    return StoreError(
        f"{shown(store.directory)} ran on the machine's clock: nothing in it can be repeated exactly",
        hint="run the study with --clock virtual; measurements of the machine are repeated by `--repetitions N`",
    )


def _kernel_remarks(store: Store) -> list[str]:
    """Remarks on the kernel. Raises: EngineError when it is not the run's."""
    recorded = store.manifest.provenance.get("kernels")
    here = find_kernel().name
    if recorded is None:
        return [f"the run does not say which kernel it had; this is {here}"]
    if here not in recorded:
        raise EngineError(
            f"the kernel that the run had is not here: it had {', '.join(recorded)}, and here is {here}",
            hint=f"{build_hint()}; the digest is that of the sources, so check out the version that made the run",
        )
    if len(recorded) > 1:
        return [f"the run had the kernels {', '.join(recorded)}; these cells are run on {here}"]
    return []


def _version_remarks(store: Store, binary: Path) -> list[str]:
    was = store.manifest.provenance.get("versions", {}).get("crosswind_cell")
    now = cell_version(binary)
    return [f"the run was made by crosswind-cell {was}, and this is {now}"] if was != now else []
