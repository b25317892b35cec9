"""Whether a run can be repeated: cells in virtual time are run again, and what they leave is compared bit for bit.

    verification = verify(Path("crosswind-runs/latency-20260101T000000Z"))
    verification.differing

A cell in virtual time follows from its parameters, its seed, its kernel and crosswind-cell. Those that are run again
are a run of their own in a temporary directory, so that whatever a run does is repeated too. Cells on the machine's
clock are measurements, which nobody can repeat exactly.
"""

import hashlib
import io
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from crosswind.cell.binary import find_binary
from crosswind.cell.events import Finished
from crosswind.cell.kernels import build_hint, find_kernel
from crosswind.errors import EngineError, StoreError
from crosswind.execution.observer import Observer
from crosswind.execution.session import execute, resume_command
from crosswind.store.directory import Store
from crosswind.store.manifest import Manifest, Session, Status
from crosswind.store.plan import PlannedCell
from crosswind.store.provenance import cell_version
from crosswind.store.result import RESULT, CellResult
from crosswind.store.wallclock import utc_now

CELLS = 5
"""That are run again where nobody says how many."""

_OF_THE_MACHINE = (
    "result.versions",
    "result.processors_awake",
    "result.fidelity.realtime",
    "result.fidelity.memory_locked",
    "result.fidelity.cpus",
    "result.peak_memory_bytes",
)
"""Keys of a result, or their beginnings, that do not belong to what was measured.

The kernel counts a process's memory in batches: its peak comes out otherwise now and then, by a few pages.
"""


@dataclass(frozen=True)
class Comparison:
    """One repetition that was run again.

    Attributes: differing: files that came out otherwise, and what differs of the result, as `result.ledger.forward.in`.
    """

    key: str
    differing: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether everything came out as before."""
        return not self.differing


@dataclass(frozen=True)
class Verification:
    """What came of it.

    Attributes: comparisons: one for each repetition that was run again, in the order of the plan. repeatable: how many
        there are in the run. real: repetitions on the machine's clock, which were left out. remarks: what bears on it.
    """

    comparisons: tuple[Comparison, ...]
    repeatable: int
    real: int
    remarks: tuple[str, ...]

    @property
    def differing(self) -> tuple[Comparison, ...]:
        """Those that did not come out the same."""
        return tuple(comparison for comparison in self.comparisons if not comparison.same)


def verify(directory: Path, *, cells: int | None = CELLS, observer: Observer | None = None) -> Verification:
    """Runs repetitions of a run again and compares digests. Nothing in the run is changed.

    Args: cells: how many, spread over the plan; None for all. observer: sees them go by.
    Raises: StoreError when it is no run, or nothing in it can be repeated exactly. EngineError when the kernel that it
        ran on is not here, or does not run.
    """
    store = Store.read(directory)
    results = store.results()
    repeatable = [result for result in results.values() if result.planned.is_virtual and result.finished is not None]
    if not repeatable:
        raise _nothing_to_repeat(store, results)
    chosen = spread(repeatable, len(repeatable) if cells is None else cells)
    binary = find_binary()
    remarks = [*_kernel_remarks(store, [result.planned for result in chosen]), *_version_remarks(store, binary)]
    with tempfile.TemporaryDirectory(prefix="crosswind-verify-", ignore_cleanup_errors=True) as name:
        again = Store.create(Path(name), _manifest(store, len(chosen)), [result.planned for result in chosen])
        if execute(again, progress=observer).interrupted:
            raise KeyboardInterrupt
        after = again.results()
        comparisons = [
            _compared(result, after[result.key], store.directory / "cells", again.directory / "cells")
            for result in chosen
        ]
    real = sum(not result.planned.is_virtual for result in results.values())
    return Verification(tuple(comparisons), len(repeatable), real, tuple(remarks))


def spread(results: Sequence[CellResult], count: int) -> list[CellResult]:
    """So many of them, evenly, so that every part of the design has its share."""
    count = min(count, len(results))
    return [results[number * len(results) // count] for number in range(count)]


def digests(directory: Path) -> dict[str, str]:
    """SHA-256 of what a repetition left, by name of file but for its result.

    That of a table is of its contents: how Parquet packs them is not the cell's doing.
    """
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != RESULT)
    return {path.name: hashlib.sha256(_contents(path)).hexdigest() for path in files}


def result_values(finished: Finished) -> dict[str, str]:
    """What a cell's result says, by dotted key, without what names the machine, its user or the software."""
    values = dict(_flat(finished.as_json(), "result"))
    return {key: text for key, text in values.items() if not key.startswith(_OF_THE_MACHINE)}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}")
    else:
        yield name, json.dumps(value, sort_keys=True)


def _contents(path: Path) -> bytes:
    if path.suffix != ".parquet":
        return path.read_bytes()
    table = io.BytesIO()
    pl.read_parquet(path).rechunk().write_ipc(table, compression="uncompressed")
    return table.getvalue()


def _compared(before: CellResult, after: CellResult, cells: Path, cells_again: Path) -> Comparison:
    if before.finished is None or after.finished is None:
        return Comparison(before.key, (f"result ({after.failure.message})" if after.failure else "result",))
    old = digests(cells / before.key) | result_values(before.finished)
    new = digests(cells_again / before.key) | result_values(after.finished)
    return Comparison(before.key, tuple(name for name in sorted(old | new) if old.get(name) != new.get(name)))


def _manifest(store: Store, planned: int) -> Manifest:
    return replace(
        store.manifest,
        planned=planned,
        sessions=(Session(started=utc_now()),),
        status=Status.RUNNING,
        plan_inside=None,
    )


def _nothing_to_repeat(store: Store, results: Mapping[str, CellResult]) -> StoreError:
    planned = [item for item in store.plan if item.is_virtual]
    if planned:
        failed = sum(result.failure is not None for result in results.values())
        return StoreError(
            f"no cell of {store.directory} in virtual time has finished" + (f"; {failed} failed" if failed else ""),
            hint=f"{resume_command(store.directory)} goes on with it",
        )
    return StoreError(
        f"{store.directory} ran on the machine's clock: nothing in it can be repeated exactly",
        hint="run the study with --clock virtual; measurements of the machine are repeated by `--repetitions N`",
    )


def _kernel_remarks(store: Store, cells: Sequence[PlannedCell]) -> list[str]:
    """What to say of the kernel. Raises: EngineError when it is another one than the run's."""
    recorded = store.manifest.provenance.get("kernels")
    here = sorted({find_kernel(series).name for series in {planned.kernel for planned in cells}})
    if recorded is None:
        return [f"the run does not say which kernel it had; this is {', '.join(here)}"]
    if not set(here) <= set(recorded):
        raise EngineError(
            f"the kernel that the run had is not here: it had {', '.join(recorded)}, and here is {', '.join(here)}",
            hint=f"{build_hint()}; the digest is that of the sources, so check out the version that made the run",
        )
    if len(recorded) > len(here):
        return [f"the run had the kernels {', '.join(recorded)}; these cells are run on {', '.join(here)}"]
    return []


def _version_remarks(store: Store, binary: Path) -> list[str]:
    was = store.manifest.provenance.get("versions", {}).get("crosswind_cell")
    now = cell_version(binary)
    return [f"the run was made by crosswind-cell {was}, and this is {now}"] if was != now else []
