"""A run's folder `cells`, for writing: one directory a repetition, and one for every attempt that does not count.

The invariant: a directory `cells/<key>` is whole. It is written under another name, synced, and renamed; a crash leaves
a `.part`, ignored by readers and removed by the next session. Many cells are packed (`partitions.py`).
"""

import os
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.errors import DiskError
from crosswind.files.inside import files_inside, open_inside, remove_path
from crosswind.store.checksums import Checksum, DamagedFileError
from crosswind.store.files import ATTEMPT, disk_errors, set_aside, sync_path, sync_tree, write_sealed
from crosswind.store.kept import kind_of
from crosswind.store.partitions import is_packable, is_partition, pack
from crosswind.store.result import RESULT, RepetitionResult
from crosswind.store.run_file import RunFile
from crosswind.store.tables import to_parquet

if TYPE_CHECKING:
    from crosswind.store.uploads import Uploads


KEYS = "keys.log"
"""The keys for a capture's connections."""


class CellsFolder:
    """A locked run's cells.

    Args: run: its directory. run_id: as in the manifest. uploads: sends whole entries to an object store.
    """

    def __init__(self, run: Path, run_id: str, uploads: "Uploads | None" = None) -> None:
        self._run = run
        self._uploads = uploads
        self._folder = run / "cells"
        self._run_id = run_id
        self._waiting: list[RepetitionResult] = []
        """The next partition's repetitions, without their measurements."""
        self._waiting_bytes = 0

    def begin(self, key: str) -> Path:
        """An empty directory for the cell process to write into. Nobody reads it until `commit`."""
        # The number keeps a killed session's orphan out of its successor's directory.
        part = self._folder / f"{key}.{os.getpid()}.part"
        with disk_errors(part):
            remove_path(part)
            part.mkdir()
        return part

    def commit(self, part: Path, result: RepetitionResult) -> None:
        """Makes a directory from `begin` a whole cell: tables to Parquet, result.json, sync, rename.

        An earlier, failed attempt at the same key is kept as `cells/<key>.failed-<n>`.
        Raises: DiskError when the disk refuses; no half-written cell reads as whole.
        """
        stored = self._commit(part, result, name=result.key)
        if is_packable(stored):
            self._waiting.append(stored)
            self._waiting_bytes += stored.size_bytes
            if is_partition(len(self._waiting), self._waiting_bytes):
                self._pack()

    def commit_missed(self, part: Path, result: RepetitionResult) -> None:
        """As `commit`, for an attempt with a successor: `cells/<key>.missed-<n>`."""
        missed = self.missed()[result.key] + 1
        self._commit(part, result, name=f"{result.key}.missed-{missed}")

    def commit_failed(self, part: Path, result: RepetitionResult) -> None:
        """As `commit`, without the unreadable tables."""
        for table in (*part.glob("*.arrow"), *part.glob("*.parquet")):
            table.unlink()
        self.commit(part, result)

    def discard(self, part: Path) -> None:
        """Drops an uncommitted cell."""
        shutil.rmtree(part, ignore_errors=True)

    def missed(self) -> Counter[str]:
        """Attempts by key that missed their fidelity budget. One scan: the folder holds thousands of names."""
        with os.scandir(self._folder) as entries:
            matches = (ATTEMPT.fullmatch(entry.name) for entry in entries)
            return Counter(match["key"] for match in matches if match and match["why"] == "missed")

    def _pack(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            with disk_errors(self._run):
                partition = pack(self._run, self._run_id, waiting)
        except DamagedFileError:
            return  # They stay directories; readers report the change.
        if self._uploads is not None:
            packed = {f"cells/{result.key}" for result in waiting}
            self._uploads.put(partition.relative_to(self._run).as_posix(), replaces=packed)

    def _commit(self, part: Path, result: RepetitionResult, *, name: str) -> RepetitionResult:
        place = self._folder / name
        try:
            with disk_errors(part):
                keeping_ns = Counter(result.keeping_ns)
                for arrow in sorted(part.glob("*.arrow")):
                    started_ns = time.perf_counter_ns()
                    to_parquet(arrow)
                    if (kind := kind_of(arrow.name)) is not None:
                        keeping_ns[kind] += time.perf_counter_ns() - started_ns
                for leftover in part.glob("*.part"):
                    leftover.unlink()
                _make_keys_private(part)
                stored = replace(result, files=checksums_in(part), keeping_ns=keeping_ns)
                write_sealed(part / RESULT, {"run": self._run_id, **stored.as_json()})
                sync_tree(part)
                aside = set_aside(place, "failed")
                part.rename(place)
                sync_path(place.parent)
        except DiskError:
            shutil.rmtree(part, ignore_errors=True)
            raise
        if self._uploads is not None:
            self._uploads.put(*(f"cells/{path.name}" for path in (aside, place) if path is not None))
        return stored


def _make_keys_private(part: Path) -> None:
    """Makes the connections' keys private: they decrypt captures. Raises: OSError."""
    with suppress(FileNotFoundError):
        descriptor = open_inside(part, KEYS)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)


def checksums_in(directory: Path) -> dict[str, Checksum]:
    """The checksum of every file below a directory, by its path within it. Links are left out. Raises: OSError."""
    return {name: Checksum.of(RunFile(directory, name)) for name in files_inside(directory)}
