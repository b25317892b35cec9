"""A run on disk: one directory, append-only, resumable (docs/store.md).

    manifest.json                  study, options, provenance, sessions, status
    plan.jsonl                     every repetition that is to run, in order
    cells/<key>/result.json        what one repetition was and how it ended
    cells/<key>/*.parquet, ...     its tables

One process at a time has a run open for writing; anyone may read. How cells are written is in `cells.py`.
"""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self

from crosswind.errors import StoreError
from crosswind.store.files import disk_errors
from crosswind.store.lock import LOCK, lock_run
from crosswind.store.manifest import MANIFEST, Manifest, Session, Status, read_manifest, write_manifest
from crosswind.store.plan import PLAN, PlannedCell, read_plan, write_plan
from crosswind.store.result import RESULT, CellResult, read_result

_FILES_OF_A_START = (LOCK, PLAN, f"{PLAN}.part", f"{MANIFEST}.part")


class Store:
    """One run directory. `create` and `resume` open it for writing and hold its lock until `close`; `read` does not."""

    def __init__(self, directory: Path, manifest: Manifest, lock: IO[bytes] | None) -> None:
        self.directory = directory
        self.manifest = manifest
        self._lock = lock

    # Opening

    @classmethod
    def create(cls, directory: Path, manifest: Manifest, plan: Sequence[PlannedCell]) -> Self:
        """Starts a run in `directory`, which must be absent, empty, or left by a start that was killed.

        Raises: StoreError when something else is there. DiskError when the disk refuses.
        """
        _refuse_taken(directory)
        with disk_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
            lock = lock_run(directory)
            try:
                (directory / "cells").mkdir(exist_ok=True)
                write_plan(directory, plan)
                write_manifest(directory, manifest)
            except OSError:
                for name in _FILES_OF_A_START:
                    (directory / name).unlink(missing_ok=True)
                shutil.rmtree(directory / "cells", ignore_errors=True)
                raise
        return cls(directory, manifest, lock)

    @classmethod
    def resume(cls, directory: Path, *, digest: str | None = None) -> Self:
        """Opens a run to go on with it, and removes what a dead session left half-written.

        Args: digest: of the study that is to go on; None takes the run's own.
        Raises: StoreError when it is not a run, is in use, or holds another study.
        """
        manifest = read_manifest(directory)
        if digest is not None and digest != manifest.study_digest:
            raise StoreError(
                f"{directory} holds another study: {manifest.study_digest[:19]}, not {digest[:19]}",
                hint="resume with the same study and settings, or leave both out: `crosswind run --resume DIR`",
            )
        with disk_errors(directory):
            lock = lock_run(directory)
            try:
                manifest = _tidied(directory, manifest)
            except OSError:
                lock.close()
                raise
        return cls(directory, manifest, lock)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Opens a run for reading, whether or not a session is writing it.

        Raises: StoreError when it is not a run or of another schema.
        """
        return cls(directory, read_manifest(directory), None)

    def close(self) -> None:
        """Gives the lock back."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    def set_status(self, status: Status) -> None:
        """Says in the manifest how far the run is. Raises: DiskError."""
        self._replace_manifest(replace(self.manifest, status=status))

    def extend_plan(self, added: Sequence[PlannedCell]) -> None:
        """Adds repetitions to the plan. Raises: DiskError."""
        plan = (*self.plan, *added)
        with disk_errors(self.directory):
            write_plan(self.directory, plan)
        self.plan = plan
        self._replace_manifest(replace(self.manifest, planned=len(plan)))

    def begin_session(self, session: Session) -> None:
        """Adds a session to the manifest of a run that goes on. Raises: DiskError."""
        sessions = (*self.manifest.sessions, session)
        self._replace_manifest(replace(self.manifest, status=Status.RUNNING, sessions=sessions))

    def end_session(self, session: Session, *, provenance: Mapping[str, Any]) -> None:
        """Replaces the last session, and what the run's provenance says, by how they ended. Raises: DiskError."""
        sessions = (*self.manifest.sessions[:-1], session)
        self._replace_manifest(replace(self.manifest, sessions=sessions, provenance=provenance))

    def _replace_manifest(self, manifest: Manifest) -> None:
        self.manifest = manifest
        with disk_errors(self.directory):
            write_manifest(self.directory, manifest)

    # Reading

    @cached_property
    def plan(self) -> tuple[PlannedCell, ...]:
        """The repetitions, in the order in which they are to run. Raises: StoreError when it cannot be read."""
        inside = self.manifest.plan_inside
        return read_plan(self.directory) if inside is None else inside

    def results(self) -> dict[str, CellResult]:
        """What is known of every repetition that was run, by key, in the order of the plan. Raises: StoreError."""
        found = {}
        for planned in self.plan:
            path = self.directory / "cells" / planned.key / RESULT
            if path.exists():
                found[planned.key] = read_result(path)
        return found

    def missing(self) -> list[PlannedCell]:
        """What still has to run, in the order of the plan: repetitions without a result, and those that failed."""
        results = self.results()
        return [
            planned for planned in self.plan if planned.key not in results or results[planned.key].failure is not None
        ]


def _tidied(directory: Path, manifest: Manifest) -> Manifest:
    """Removes what a dead session left half-written, and moves a plan inside the manifest to its own file."""
    for part in (directory / "cells").glob("*.part"):
        shutil.rmtree(part)
    if manifest.plan_inside is None:
        return _with_its_plan(directory, manifest)
    write_plan(directory, manifest.plan_inside)
    write_manifest(directory, manifest.without_plan())
    return manifest.without_plan()


def _with_its_plan(directory: Path, manifest: Manifest) -> Manifest:
    """The manifest with the size of the plan, which a session that died while the plan grew has left behind it."""
    if manifest.precision is None or (planned := len(read_plan(directory))) == manifest.planned:
        return manifest
    manifest = replace(manifest, planned=planned)
    write_manifest(directory, manifest)
    return manifest


def check_place(directory: Path) -> None:
    """Whether a run could be made in a directory, by making one where it would be and removing it at once.

    Raises: StoreError when something else is there. DiskError when it cannot be written.
    """
    _refuse_taken(directory)
    with disk_errors(directory):
        there = next(place for place in (directory, *directory.absolute().parents) if place.exists())
        Path(tempfile.mkdtemp(prefix=".crosswind-", dir=there)).rmdir()


def _refuse_taken(directory: Path) -> None:
    """Raises: StoreError when a run cannot be made in a directory because of what is there."""
    with disk_errors(directory):
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"{directory} is not a directory", hint="choose another one with --output")
        if directory.exists() and any(directory.iterdir()) and not _is_killed_start(directory):
            raise _occupied(directory)


def _is_killed_start(directory: Path) -> bool:
    """Whether a directory holds nothing but what a session leaves that is killed before it has written its manifest."""
    lock, cells = directory / LOCK, directory / "cells"
    others = {entry.name for entry in directory.iterdir()} - {*_FILES_OF_A_START, "cells"}
    is_ours = lock.is_file() and lock.stat().st_size == 0
    return is_ours and not others and not (cells.exists() and any(cells.iterdir()))


def _occupied(directory: Path) -> StoreError:
    if (directory / MANIFEST).exists():
        return StoreError(
            f"{directory} already holds a run",
            hint=f"`crosswind run --resume {directory}` goes on with it; or choose another --output",
        )
    return StoreError(f"{directory} is not empty and not a run", hint="choose another directory with --output")
