"""Lists runs and their progress.

A listing opens as little as possible: manifests, but not plans; names in `cells/` tell the finished cells; sizes come
from a few cells. Nothing here waits for a lock or keeps one.
"""

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.errors import StoreError
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.files.inside import read_inside
from crosswind.store.addresses import address_of, place_of
from crosswind.store.files import ATTEMPT
from crosswind.store.lock import in_use
from crosswind.store.manifest import (
    FAMILY,
    MANIFEST,
    MARKER,
    NOT_A_RUN_HINT,
    Manifest,
    Status,
    UnreadableFileError,
    read_manifest,
)
from crosswind.store.partition_index import PARTITIONS, damaged_partitions, names_in, partition_names, read_index
from crosswind.study.identity import KEY

if TYPE_CHECKING:
    from crosswind.store.details import Details

DEFAULT_ROOT = Path("crosswind-runs")

SAMPLED_CELLS = 64
"""Maximum number of cells read for their size; the others are estimated from them."""

_CONCURRENT = 8
"""Concurrent looks at runs on an object store."""
_LEFTOVER = re.compile(r"\..+\.removed(-\d+)?")
_PARTS = (".json.part", ".jsonl.part")


@dataclass(frozen=True)
class ListedRun:
    """One run in a listing.

    Attributes:
        started: first session; active: last sign of life in the manifest; both UTC.
        done: repetitions with a result. planned: repetitions. attempts: earlier ones that do not count.
        size_bytes: on the disk; exact: read, or estimated from some cells.
        details: on request only.
    """

    directory: Path
    study: str
    title: str
    status: Status
    started: datetime
    active: datetime
    done: int
    planned: int
    attempts: int
    parts: int
    size_bytes: int
    exact: bool
    details: "Details | None" = None

    @property
    def unfinished(self) -> bool:
        """Whether it ended before its end."""
        return self.status in (Status.DIED, Status.INTERRUPTED, Status.STOPPED)

    @property
    def problem(self) -> str | None:
        """An unreadable result, and why; None without one."""
        return self.details.problem if self.details else None


@dataclass(frozen=True)
class Unreadable:
    """An unreadable run directory, and why. `leftover`: from an interrupted removal."""

    directory: Path
    problem: str
    leftover: bool = False


Listed = ListedRun | Unreadable


def list_runs(root: Path, *, details: bool = False) -> list[Listed]:
    """Every directory under `root`, or `root` itself if it is a run: readable runs latest first, then the others.

    Raises: StoreError when `root` is unreadable.
    """
    if address_of(root) is not None:
        return _list_objects(root, details)
    if (root / MANIFEST).exists():
        return [examine_directory(root, details=details)]
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if _is_directory(entry))
    except OSError as error:
        raise StoreError(f"cannot read {root}: {error.strerror}", hint=NOT_A_RUN_HINT) from None
    return _latest_first([examine_directory(root / name, details=details) for name in names])


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # A link to itself.
        return False


def _latest_first(examined: Sequence[Listed]) -> list[Listed]:
    runs = sorted((run for run in examined if isinstance(run, ListedRun)), key=lambda run: run.started, reverse=True)
    return [*runs, *(other for other in examined if isinstance(other, Unreadable))]


def examine_directory(directory: Path, *, details: bool = False) -> Listed:
    """Classifies a directory. Never raises for its content."""
    if address_of(directory) is not None:
        return _examine_objects(directory, details)
    try:
        if is_leftover(directory):
            return Unreadable(directory, "its removal did not end", leftover=True)
        return _examined(directory, details)
    except UnreadableFileError as error:
        return Unreadable(directory, error.reason)
    except (OSError, *NOT_WHAT_WAS_WRITTEN) as error:
        return Unreadable(directory, _problem(error))


def _list_objects(root: Path, details: bool) -> list[Listed]:
    """The runs below an address, or the one there."""
    from concurrent.futures import ThreadPoolExecutor

    from crosswind.store.objects import RunObjects

    objects = RunObjects(root)
    names, files = objects.bucket.top()
    if {MANIFEST, MARKER}.intersection(files) or (objects.address.prefix and not names):
        return [_examine_objects(root, details)]
    places = [place_of(f"{objects.address}/{name}") for name in names]
    with ThreadPoolExecutor(_CONCURRENT) as pool:
        return _latest_first(list(pool.map(lambda place: _examine_objects(place, details), places)))


def _examine_objects(copy: Path, details: bool) -> Listed:
    """Classifies the objects at a copy's address. Reads a run's manifest and its partitions' indices; names and sizes
    tell the rest. Raises: ObjectError.
    """
    from crosswind.store.objects import LAST, RunObjects, entry_of

    objects = RunObjects(copy)
    try:
        # While a session works on this machine, only the copy counts.
        there = objects.pull(index_only=not details) or objects.bucket.listed()
        manifest = read_manifest(copy)
    except UnreadableFileError as error:
        if MARKER in objects.bucket.listed():
            return Unreadable(copy, "its removal did not end", leftover=True)
        return Unreadable(copy, error.reason)
    entries = {entry_of(name) for name in there}
    whole = {entry for entry in entries if f"{entry}/{LAST.get(entry.partition('/')[0])}" in there}
    return _listed_run(
        copy,
        manifest,
        sorted(entry.partition("/")[2] for entry in whole if entry.startswith("cells/")),
        size=(sum(found.size_bytes for found in there.values()), True),
        used=objects.is_in_use(there),
        parts=sum(entry.partition("/")[0] in LAST and entry not in whole for entry in entries),
        details=details,
    )


def _problem(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"its manifest lacks {error}" if isinstance(error, KeyError) else f"its manifest is damaged: {error}"


def fresh_directory(name: str, stamp: str, *, root: Path = DEFAULT_ROOT) -> Path:
    """`<root>/<name>-<stamp>`, with -2, -3, ... where that is taken already."""
    first = root / f"{name}-{stamp}"
    place, number = first, 1
    while place.exists():
        number += 1
        place = first.with_name(f"{first.name}-{number}")
    return place


def latest_run(root: Path = DEFAULT_ROOT, *, name: str | None = None) -> Path:
    """The run under `root` (of the study `name`, if given) with the latest start. Raises: StoreError without one."""
    # A leading dot marks a run under removal.
    runs = [path.parent for path in root.glob(f"[!.]*/{MANIFEST}")]
    dated = [(started, run) for run in runs if (started := _started(run, name)) is not None]
    if not dated:
        what = f"run of {name}" if name else "run"
        raise StoreError(
            f"there is no {what} in {root}/", hint="name its directory, or start one: crosswind run quickstart"
        )
    return max(dated)[1]


def is_leftover(directory: Path) -> bool:
    """Whether a directory is left from an interrupted removal."""
    if not _LEFTOVER.fullmatch(directory.name) or directory.is_symlink():
        return False
    return is_run(directory) or _is_manifest(directory, MARKER) or not any(directory.iterdir())


def is_run(directory: Path) -> bool:
    """Whether a directory, not a link to one, has a run's manifest, whatever its version."""
    return not directory.is_symlink() and _is_manifest(directory, MANIFEST)


def half_written(directory: Path) -> list[Path]:
    """A dead session's half-written files: `cells/*.part`, and those beside the manifest."""
    inside = [directory / folder / name for folder in ("cells", PARTITIONS) for name in _names(directory / folder)]
    return [path for path in inside if path.name.endswith(".part")] + [
        directory / name for name in _names(directory) if name.endswith(_PARTS)
    ]


def attempts_of(directory: Path) -> list[Path]:
    """Superseded attempts: `cells/<key>.missed-<n>` and `.failed-<n>`, for keys with a later one, and a done run's
    damaged entries.
    """
    names = _names(directory / "cells")
    manifest = read_manifest(directory)
    whole = {*names, *packed_keys(directory, manifest.id)}
    matches = filter(None, map(ATTEMPT.fullmatch, names))
    cells = [directory / "cells" / match[0] for match in matches if match["key"] in whole]
    return [*cells, *(damaged_partitions(directory) if manifest.status is Status.DONE else ())]


def disk_size(path: Path) -> int:
    """Bytes in a file or below a directory. Links count as themselves."""
    try:
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_size
        with os.scandir(path) as entries:
            return sum(disk_size(Path(e)) if e.is_dir(follow_symlinks=False) else _lstat_size(e) for e in entries)
    except FileNotFoundError:
        return 0  # A session at work renames and removes.


def _examined(directory: Path, details: bool) -> ListedRun:
    manifest = read_manifest(directory)
    inside = directory.resolve()  # A link to a run is listed like the run; only removal stops at links.
    cells = _names(inside / "cells")
    return _listed_run(
        directory,
        manifest,
        cells,
        size=_size(inside, cells, everything=details),
        used=manifest.status is Status.RUNNING and in_use(directory),
        parts=sum(path.parent.name in ("cells", PARTITIONS) for path in half_written(inside)),
        details=details,
    )


def _listed_run(
    directory: Path,
    manifest: Manifest,
    cells: Sequence[str],
    *,
    size: tuple[int, bool],
    used: bool,
    parts: int,
    details: bool,
) -> ListedRun:
    """Args: cells: names in the folder `cells`. size: bytes, and whether exact. used: whether a session is at work.
    parts: half-written files. details: read its results, too.
    """
    status = Status.DIED if manifest.status is Status.RUNNING and not used else manifest.status
    inside = directory.resolve()
    packed = packed_keys(inside, manifest.id)
    whole = [name for name in cells if KEY.fullmatch(name) and name not in packed]
    aside = [name for name in cells if "." in name]
    size_bytes, exact = size
    started = _time(manifest.started)
    times = [time for session in manifest.sessions for time in (session.started, session.ended) if time]
    return ListedRun(
        directory=directory,
        study=manifest.name,
        title=manifest.title,
        status=status,
        started=started,
        active=max([started, *map(_time, times)]),
        done=len(whole) + len(packed),
        planned=manifest.planned,
        attempts=sum(ATTEMPT.fullmatch(name) is not None for name in aside),
        parts=parts,
        size_bytes=size_bytes,
        exact=exact,
        details=_details(inside, whole, manifest.id) if details else None,
    )


def packed_keys(directory: Path, run: str) -> set[str]:
    """A run's packed repetitions, without those under an unreadable index."""
    keys: set[str] = set()
    for name in partition_names(directory):
        with suppress(StoreError, OSError, *NOT_WHAT_WAS_WRITTEN):
            keys.update(read_index(directory, name, run).keys)
    return keys


def _details(directory: Path, whole: Sequence[str], run: str) -> "Details":
    from crosswind.store.details import details_of

    return details_of(directory, whole, run)


def _started(directory: Path, name: str | None) -> str | None:
    """When the run was started; None when it is unreadable or another study's."""
    try:
        manifest = read_manifest(directory)
    except StoreError:
        return None
    return manifest.started if name in (None, manifest.name) else None


def _is_manifest(directory: Path, name: str) -> bool:
    try:
        data = json.loads(read_inside(directory, name))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("schema")).startswith(FAMILY)


def _size(directory: Path, cells: Sequence[str], *, everything: bool) -> tuple[int, bool]:
    """Bytes on the disk, and whether all were looked at: else every n-th cell by name stands for those beside it."""
    files_bytes = sum(disk_size(directory / name) for name in _names(directory) if name != "cells")
    exact = everything or len(cells) <= SAMPLED_CELLS
    step = 1.0 if exact else len(cells) / SAMPLED_CELLS
    some = [cells[int((number + 0.5) * step)] for number in range(int(len(cells) / step + 0.5))]
    return files_bytes + round(sum(disk_size(directory / "cells" / name) for name in some) * step), exact


def _names(directory: Path) -> list[str]:
    return sorted(names_in(directory))


def _lstat_size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
