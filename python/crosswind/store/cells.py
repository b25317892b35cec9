"""The folder `cells` of a run, written to: one directory a repetition, and one for every attempt that does not count.

The invariant: a directory `cells/<key>` is whole. It is written under another name, synced, and renamed; whatever dies
half-way leaves a `.part` that nobody reads and the next session removes.
"""

import os
import re
import shutil
from collections import Counter
from pathlib import Path

from crosswind.errors import DiskError
from crosswind.store.files import disk_errors, sync_path, sync_tree, write_json
from crosswind.store.result import RESULT, CellResult
from crosswind.store.tables import to_parquet

_MISSED = re.compile(r"(?P<key>[^.]+)\.missed-\d+")


class CellsFolder:
    """The cells of a run whose lock the caller holds. Args: run: its directory."""

    def __init__(self, run: Path) -> None:
        self._folder = run / "cells"

    def begin(self, key: str) -> Path:
        """An empty directory for the cell process to write into. Nobody reads it until `commit`."""
        # The number keeps an orphan of a killed session from writing into the directory of its successor.
        part = self._folder / f"{key}.{os.getpid()}.part"
        with disk_errors(part):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
        return part

    def commit(self, part: Path, result: CellResult) -> None:
        """Makes what `begin` gave a whole cell: tables to Parquet, result.json, sync, rename.

        An earlier, failed attempt of the same key is kept as `cells/<key>.failed-<n>`.
        Raises: DiskError when the disk refuses; nothing is left that reads as whole.
        """
        self._commit(part, result, name=result.key)

    def commit_missed(self, part: Path, result: CellResult) -> None:
        """As `commit`, for an attempt that does not count because another follows: `cells/<key>.missed-<n>`."""
        missed = self.missed()[result.key] + 1
        self._commit(part, result, name=f"{result.key}.missed-{missed}")

    def commit_failed(self, part: Path, result: CellResult) -> None:
        """As `commit`, without the tables, which cannot be read."""
        for table in (*part.glob("*.arrow"), *part.glob("*.parquet")):
            table.unlink()
        self.commit(part, result)

    def discard(self, part: Path) -> None:
        """Forgets a cell that was begun and will not be committed."""
        shutil.rmtree(part, ignore_errors=True)

    def missed(self) -> Counter[str]:
        """For each key, how many attempts do not count because they missed their fidelity budget.

        One look at the folder, which holds thousands of names.
        """
        with os.scandir(self._folder) as entries:
            matches = (_MISSED.fullmatch(entry.name) for entry in entries)
            return Counter(match["key"] for match in matches if match)

    def _commit(self, part: Path, result: CellResult, *, name: str) -> None:
        place = self._folder / name
        try:
            with disk_errors(part):
                for arrow in sorted(part.glob("*.arrow")):
                    to_parquet(arrow)
                for leftover in part.glob("*.part"):
                    leftover.unlink()
                write_json(part / RESULT, result.as_json())
                sync_tree(part)
                _set_aside(place)
                part.rename(place)
                sync_path(place.parent)
        except DiskError:
            shutil.rmtree(part, ignore_errors=True)
            raise


def _set_aside(place: Path) -> None:
    """Renames an earlier, failed attempt."""
    if not place.exists():
        return
    number = 1
    while place.with_name(f"{place.name}.failed-{number}").exists():
        number += 1
    place.rename(place.with_name(f"{place.name}.failed-{number}"))
