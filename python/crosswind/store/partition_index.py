"""Which repetitions the partitions of a run hold, `partitions/<number>/index.json`, without a look at their tables."""

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
    """One of them.

    Attributes: run: the directory of the run. name: of its own within `partitions`. keys: of its repetitions, in the
        order of its tables. files: beside its index. stored_sums: of its repetitions (crosswind.store.kept.Sums);
        None where only some of them count.
    """

    run: Path
    name: str
    keys: Sequence[str]
    files: Mapping[str, Checksum]
    stored_sums: Mapping[str, Any] | None

    def file(self, name: str) -> RunFile:
        """One of its files."""
        return file_of(self.run, self.name, name)


def file_of(run: Path, partition: str, name: str = INDEX) -> RunFile:
    """A file of a partition of a run."""
    return RunFile(run, f"{PARTITIONS}/{partition}/{name}")


def partition_names(run: Path) -> list[str]:
    """The names of a run's partitions, in their order."""
    return sorted(filter(_NAME.fullmatch, names_in(run / PARTITIONS)))


def damaged_partitions(run: Path) -> list[Path]:
    """Partitions that a session found damaged and set aside."""
    return [run / PARTITIONS / name for name in sorted(names_in(run / PARTITIONS)) if ATTEMPT.fullmatch(name)]


def names_in(directory: Path) -> set[str]:
    """What is in a directory; nothing in one that is not there, or is a link to somewhere else."""
    if directory.is_symlink():
        return set()
    try:
        return set(os.listdir(directory))  # noqa: PTH208 (thousands of names, and no need of a Path for each)
    except (FileNotFoundError, NotADirectoryError):
        return set()


def read_index(run: Path, name: str, run_id: str) -> PartitionIndex:
    """The index of a partition.

    Raises: OSError. UnreadableFileError where it is of another schema, DamagedFileError where it is of another run,
        KeyError, TypeError or ValueError where it has changed.
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
