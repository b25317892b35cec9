"""A run's partitions, `partitions/<number>`: finished repetitions, packed into one directory.

    index.json          the repetitions' keys, and every other file's checksum
    results.parquet     cell, repetition, and their results as JSON
    samples.parquet     cell, repetition, and the table's columns; the others likewise

The invariant: a partition is whole and never changes. Its repetitions stay directories in `cells/` until it has its
name, and are removed after that; the partition's copy counts.
"""

import io
import json
import os
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import polars as pl

from crosswind.catalog.tables import PACKETS, TABLES, Table
from crosswind.cell.record import OF_REPETITION
from crosswind.store.checksums import (
    CHANGED,
    MISSING,
    Checksum,
    DamagedFileError,
    check_file,
    checked_bytes,
    damaged_file,
)
from crosswind.store.files import sync_path, sync_tree, write_sealed
from crosswind.store.kept import Sums
from crosswind.store.partition_index import (
    INDEX,
    PARTITION_SCHEMA,
    PARTITIONS,
    PartitionIndex,
    file_of,
    partition_names,
    read_index,
)
from crosswind.store.plan import PlannedCell, StoredPlan
from crosswind.store.result import RepetitionResult, refusals
from crosswind.store.run_file import RunFile
from crosswind.store.tables import unreadable

RESULTS = "results.parquet"

PACKED_AT_ONCE = 1000
"""Repetitions in a partition, limited by bytes too. A smaller run stays readable file by file."""
MOST_BYTES = 32 << 20
"""Bytes in a partition's files: it is read in one piece."""
_MOST_BYTES_OF_ONE = 1 << 20

_PACKABLE = frozenset(table.file for table in TABLES if table is not PACKETS)
"""Packable files. A repetition with any other file stays a directory: captures and outputs are for other programs."""


@dataclass(frozen=True)
class Partition(PartitionIndex):
    """One partition, with its tables.

    Attributes: counted: whether each row in RESULTS counts; None: all do. The others, missing from `keys`, are in
        another partition too.
    """

    counted: Sequence[bool] | None = None

    def without(self, keys: Container[str]) -> "Partition":
        """The same partition as if it lacked some repetitions."""
        counted = [key not in keys for key in self.keys]
        left = tuple(key for key, counts in zip(self.keys, counted, strict=True) if counts)
        return replace(self, keys=left, counted=counted, stored_sums=None)

    def table(self, name: str) -> pl.DataFrame | None:
        """A table of all its repetitions; None where none has it. Raises: DamagedFileError."""
        if name not in self.files:
            return None
        table = _table(self.file(name), self.files[name])
        return table if name == RESULTS else self._counted_rows(table)

    def every_row(self, table: Table) -> pl.DataFrame:
        """A table over all its repetitions. Raises: DamagedFileError."""
        if table.file not in self.files:
            return pl.DataFrame(schema={**OF_REPETITION, **table.schema})
        columns = (*OF_REPETITION, *table.schema)
        return self._counted_rows(_shaped(self.file(table.file), self.files[table.file], columns))

    def _counted_rows(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows if self.counted is None else rows.join(self.texts(), on=list(OF_REPETITION), how="semi")

    def rows_of(self, planned: PlannedCell, table: Table) -> pl.DataFrame:
        """One repetition's table. Raises: DamagedFileError."""
        if table.file not in self.files:
            return table.empty
        file, checksum = self.file(table.file), self.files[table.file]
        start, length = _places(file, checksum).get((planned.cell, planned.repetition), (0, 0))
        return _shaped(file, checksum, tuple(table.schema)).slice(start, length)

    def texts(self) -> pl.DataFrame:
        """The repetitions' results as JSON: `cell`, `repetition`, `result`. Raises: DamagedFileError."""
        table = self.table(RESULTS)
        if table is None or table.height != len(self.keys if self.counted is None else self.counted):
            raise damaged_file(self.file(RESULTS), MISSING if table is None else CHANGED)
        return table if self.counted is None else table.filter(pl.Series(self.counted, dtype=pl.Boolean))

    def results(self, plan: StoredPlan, cells: Container[int] | None = None) -> Iterator[RepetitionResult]:
        """The repetitions' results, each parsed on demand. Args: cells: only these cells'; None: all.

        Raises: DamagedFileError.
        """
        stored_cells = () if self.stored_sums is None else self.stored_sums["cells"]
        if cells is not None and stored_cells and not any(cell in cells for cell in stored_cells):
            return
        table = self.texts()
        for key, cell, text in zip(self.keys, table["cell"], table["result"], strict=True):
            if cells is not None and cell not in cells:
                continue
            with refusals(self.file(RESULTS)):
                result = RepetitionResult.packed(plan.with_key(key), json.loads(text), self.name)
            yield result

    def sums(self, plan: StoredPlan) -> Sums:
        """Totals of its repetitions. Raises: DamagedFileError where their results have changed since."""
        if self.stored_sums is None:
            return Sums.of(self.results(plan))
        for error in self.damaged_files([RESULTS]):
            raise error
        with refusals(self.file(INDEX)):
            return Sums.from_json(self.stored_sums)

    def damaged_files(self, names: Iterable[str] | None = None) -> Iterator[DamagedFileError]:
        """Its changed files, among all or some."""
        for name, checksum in self.files.items():
            if names is None or name in names:
                try:
                    check_file(self.file(name), checksum)
                except DamagedFileError as error:
                    yield error


@lru_cache(maxsize=16)
def _table(file: RunFile, checksum: Checksum) -> pl.DataFrame:
    try:
        return pl.read_parquet(io.BytesIO(checked_bytes(file, checksum)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise unreadable(file, error) from error


@lru_cache(maxsize=16)
def _shaped(file: RunFile, checksum: Checksum, columns: tuple[str, ...]) -> pl.DataFrame:
    try:
        return _table(file, checksum).select(columns)
    except pl.exceptions.PolarsError as error:
        raise unreadable(file, error) from error


@lru_cache(maxsize=16)
def _places(file: RunFile, checksum: Checksum) -> Mapping[tuple[int, int], tuple[int, int]]:
    """Each repetition's first row and number of rows."""
    runs = _table(file, checksum).select(pl.struct(*OF_REPETITION).rle().alias("run"))["run"].struct.unnest()
    places: dict[tuple[int, int], tuple[int, int]] = {}
    start = 0
    for length, own in runs.iter_rows():
        places[own["cell"], own["repetition"]] = start, length
        start += length
    return places


def read_partition(run: Path, name: str, run_id: str) -> Partition:
    """Raises: DamagedFileError; UnreadableFileError for another schema."""
    with refusals(file_of(run, name)):
        index = read_index(run, name, run_id)
    return Partition(run, name, index.keys, index.files, index.stored_sums)


def is_packable(result: RepetitionResult) -> bool:
    """Whether a repetition may be packed: it finished, and left only small tables."""
    return result.failure is None and _PACKABLE.issuperset(result.files) and result.size_bytes <= _MOST_BYTES_OF_ONE


def is_partition(repetitions: int, size_bytes: int) -> bool:
    """Whether so many repetitions with so many bytes make one."""
    return repetitions >= PACKED_AT_ONCE or size_bytes >= MOST_BYTES


def batches(results: Iterable[RepetitionResult], *, whole: bool = True) -> Iterator[list[RepetitionResult]]:
    """Batches for partitions. Args: whole: without a remainder too small for one."""
    batch: list[RepetitionResult] = []
    size_bytes = 0
    for result in results:
        batch.append(result)
        size_bytes += result.size_bytes
        if is_partition(len(batch), size_bytes):
            yield batch
            batch, size_bytes = [], 0
    if batch and not whole:
        yield batch


def pack(run: Path, run_id: str, results: Sequence[RepetitionResult]) -> Path:
    """Packs repetitions into a partition, and removes their directories.

    Returns: the partition's directory. Raises: DamagedFileError for a changed file; the directories then stay. OSError.
    """
    results = sorted(results, key=lambda result: (result.planned.cell, result.planned.repetition))
    names = sorted({name for result in results for name in result.files})
    tables = {name: pl.concat(list(_labelled(run, results, name)), how="diagonal_relaxed") for name in names}
    tables[RESULTS] = texts_of(results)
    partition = write_partition(run, run_id, [result.key for result in results], tables, Sums.of(results))
    for result in results:
        shutil.rmtree(run / "cells" / result.key)
    return partition


def pack_copies(
    run: Path,
    run_id: str,
    results: Sequence[RepetitionResult],
    originals: Mapping[str, RepetitionResult],
    read: Callable[[RepetitionResult, Table], pl.DataFrame],
) -> Path:
    """Packs repetitions that are the same as others.

    Args:    results: each names its original. read: an original's table.
    They count no bytes and no time of their own.

    Returns: the partition's directory. Raises: as `pack`.
    """
    named = (replace(result, files=dict.fromkeys(result.files, Checksum(0, "")), keeping_ns={}) for result in results)
    ordered = sorted(named, key=lambda result: (result.planned.cell, result.planned.repetition))
    copies: dict[str, list[tuple[int, int]]] = {}
    for result in ordered:
        assert result.same_as is not None
        copies.setdefault(result.same_as, []).append((result.planned.cell, result.planned.repetition))
    labels = {key: pl.DataFrame(numbers, schema=OF_REPETITION, orient="row") for key, numbers in copies.items()}
    tables: dict[str, pl.DataFrame] = {RESULTS: texts_of(ordered)}
    for table in TABLES:
        of_table = [key for key in labels if table.file in originals[key].files]
        if of_table:
            frames = [labels[key].join(read(originals[key], table), how="cross") for key in of_table]
            whole = pl.concat(frames, how="diagonal_relaxed")
            tables[table.file] = whole.sort("cell", "repetition", maintain_order=True)
    return write_partition(run, run_id, [result.key for result in ordered], tables, Sums.of(ordered))


def pack_again(partition: Partition, plan: StoredPlan, run_id: str) -> None:
    """Packs a partition's counted repetitions anew. Raises: DamagedFileError, OSError."""
    tables = {name: table for name in partition.files if (table := partition.table(name)) is not None}
    tables[RESULTS] = partition.texts()
    write_partition(partition.run, run_id, partition.keys, tables, Sums.of(partition.results(plan)))


def texts_of(results: Sequence[RepetitionResult]) -> pl.DataFrame:
    """The table RESULTS."""
    return pl.DataFrame(
        {
            "cell": [result.planned.cell for result in results],
            "repetition": [result.planned.repetition for result in results],
            "result": list(map(packed_text, results)),
        },
        schema={**OF_REPETITION, "result": pl.String},
    )


def packed_text(result: RepetitionResult) -> str:
    """A result's row in RESULTS."""
    return json.dumps(result.packed_json(), separators=(",", ":"), ensure_ascii=False)


def write_partition(
    run: Path, run_id: str, keys: Sequence[str], tables: Mapping[str, pl.DataFrame], sums: Sums
) -> Path:
    """Writes a partition under another name, syncs it, and renames it. Returns: its directory. Raises: OSError."""
    numbers = [int(name) for name in partition_names(run)]
    place = run / PARTITIONS / f"{max(numbers, default=-1) + 1:05d}"
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, table in tables.items():
        table.write_parquet(part / name, compression="zstd")
    files = {name: Checksum.of(RunFile(part, name)).as_json() for name in tables}
    index = {"schema": PARTITION_SCHEMA, "run": run_id, "keys": list(keys), "files": files, "sums": sums.as_json()}
    write_sealed(part / INDEX, index)
    sync_tree(part)
    part.rename(place)
    sync_path(place.parent)
    return place


def _labelled(run: Path, results: Iterable[RepetitionResult], name: str) -> Iterator[pl.DataFrame]:
    for result in results:
        checksum = result.files.get(name)
        if checksum is not None:
            content = checked_bytes(RunFile(run, f"cells/{result.key}/{name}"), checksum)
            numbers = {"cell": result.planned.cell, "repetition": result.planned.repetition}
            labels = [pl.lit(value, dtype=pl.UInt32).alias(label) for label, value in numbers.items()]
            yield pl.read_parquet(io.BytesIO(content), parallel="none").select(*labels, pl.all())
