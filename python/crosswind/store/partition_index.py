"""Indices of a run's partitions, `partitions/<number>/index.json`: read without their tables."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.files.inside import plain
from crosswind.store.checksums import Checksum, damaged_file
from crosswind.store.files import ATTEMPT
from crosswind.store.manifest import read_sealed
from crosswind.store.run_file import RunFile

PARTITIONS = "partitions"
INDEX = "index.json"
PARTITION_SCHEMA = "crosswind.partition/1"
_NAME = re.compile(r"\d{5,}")


@dataclass(frozen=True)
class PartitionIndex:
    """One partition's index.

    Attributes: run: its directory. name: within `partitions`. keys: repetitions, in table order. files: beside the
        index. stored_sums: over the repetitions (crosswind.store.kept.Sums); None if only some count.
    """

    run: Path
    name: str
    keys: Sequence[str]
    files: Mapping[str, Checksum]
    stored_sums: Mapping[str, Any] | None

    def file(self, name: str) -> RunFile:
        """One file."""
        return file_of(self.run, self.name, name)


def file_of(run: Path, partition: str, name: str = INDEX) -> RunFile:
    """A partition's file."""
    return RunFile(run, f"{PARTITIONS}/{partition}/{name}")


def partition_names(run: Path) -> list[str]:
    """A run's partitions, in order."""
    return sorted(filter(_NAME.fullmatch, names_in(run / PARTITIONS)))


def damaged_partitions(run: Path) -> list[Path]:
    """Damaged partitions, set aside by a session."""
    return [run / PARTITIONS / name for name in sorted(names_in(run / PARTITIONS)) if ATTEMPT.fullmatch(name)]


def names_in(directory: Path) -> set[str]:
    """A directory's entries; none for a missing directory or a link."""
    if directory.is_symlink():
        return set()
    try:
        return set(os.listdir(directory))  # noqa: PTH208 (thousands of names, and no need of a Path for each)
    except (FileNotFoundError, NotADirectoryError):
        return set()


def read_index(run: Path, name: str, run_id: str) -> PartitionIndex:
    """A partition's index.

    Raises: OSError. UnreadableFileError for another schema, DamagedFileError for another run's, KeyError, TypeError or
        ValueError when changed.
    """
    index = file_of(run, name)
    data = read_sealed(index, known=PARTITION_SCHEMA)
    if data["run"] != run_id:
        raise damaged_file(index, "is the index of another run")
    files = {plain(name): Checksum.from_json(checksum) for name, checksum in data["files"].items()}
    keys = tuple(data["keys"])
    if len(set(keys)) < len(keys):
        raise damaged_file(index, "has a repetition twice")
    return PartitionIndex(run, name, keys, files, data["sums"])
