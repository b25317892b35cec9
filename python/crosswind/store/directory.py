"""A run on disk: one directory, append-only, resumable (docs/store.md).

    manifest.json                  study, options, provenance, sessions, status
    plan.jsonl                     every repetition that is to run, in order
    cells/<key>/result.json        what one repetition was and how it ended
    cells/<key>/*.parquet, ...     its tables

One process at a time has a run open for writing; anyone may read. How cells are written is in `cells.py`.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self

from crosswind.damage import Damage
from crosswind.errors import StoreError
from crosswind.store.checksums import Checksum, DamagedFileError, open_checked
from crosswind.store.files import ATTEMPT, disk_errors, set_aside
from crosswind.store.lock import LOCK, lock_run
from crosswind.store.manifest import MANIFEST, Manifest, Session, Status, read_manifest, write_manifest
from crosswind.store.plan import PLAN, PlannedCell, drop_unlisted, read_plan, write_plan
from crosswind.store.result import RESULT, RepetitionResult, read_result
from crosswind.visible import no_utf8_in

_FILES_OF_A_START = (LOCK, PLAN, f"{PLAN}.part", f"{MANIFEST}.part")


@dataclass(frozen=True)
class Checked:
    """A run after all its files were checked. Attributes: results: by key. files: how many there are."""

    results: Mapping[str, RepetitionResult]
    damaged: Sequence[Damage]
    files: int


class Store:
    """One run directory. `create` and `resume` open it for writing and hold its lock until `close`; `read` does not."""

    def __init__(self, directory: Path, manifest: Manifest, lock: IO[bytes] | None) -> None:
        self.directory = directory
        self.manifest = manifest
        self._lock = lock
        self.damaged: Sequence[Damage] = ()
        """What `resume` found damaged, and set aside."""

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
                manifest = replace(manifest, plan=write_plan(directory, plan))
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

        A repetition of which a file is damaged is set aside as `cells/<key>.damaged-<n>`, so that it is run again.

        Args: digest: of the study that is to go on; None takes the run's own.
        Raises: StoreError when it is not a run, is in use, or holds another study.
        """
        _refuse_odd(directory)
        manifest = read_manifest(directory)
        if digest is not None and digest != manifest.study_digest:
            raise StoreError(
                f"{directory} holds another study: {manifest.study_digest[:19]}, not {digest[:19]}",
                hint="resume with the same study and settings, or leave both out: `crosswind run --resume DIR`",
            )
        with disk_errors(directory):
            lock = lock_run(directory)
            store = cls(directory, manifest, lock)
            try:
                store._tidy()
            except BaseException:
                lock.close()
                raise
        return store

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
            checksum = write_plan(self.directory, plan)
        self.plan = plan
        self._replace_manifest(replace(self.manifest, planned=len(plan), plan=checksum))

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

    def _tidy(self) -> None:
        """Removes what a dead session left half-written, and sets damaged repetitions aside."""
        for part in (self.directory / "cells").glob("*.part"):
            shutil.rmtree(part)
        if self.manifest.precision is not None:
            drop_unlisted(self.directory, self._plan_checksum)
        self.damaged = self.check().damaged
        for key in {damage.key for damage in self.damaged}:
            set_aside(self.directory / "cells" / key, "damaged")

    # Reading

    @cached_property
    def plan(self) -> tuple[PlannedCell, ...]:
        """The repetitions, in the order in which they are to run. Raises: StoreError when it cannot be read."""
        grows = self.manifest.precision is not None and self.manifest.status is not Status.DONE
        return read_plan(self.directory, self._plan_checksum, may_be_longer=grows)

    @property
    def _plan_checksum(self) -> Checksum:
        assert self.manifest.plan is not None  # It was written before the manifest.
        return self.manifest.plan

    def results(self) -> dict[str, RepetitionResult]:
        """What is known of every repetition that was run and has an undamaged result, by key, in the order of the plan.

        Raises: StoreError when the plan cannot be read, or a result is of another schema.
        """
        return self.checked_results()[0]

    def checked_results(self) -> tuple[dict[str, RepetitionResult], list[Damage]]:
        """The same, and which results are damaged. The files beside a result are checked when they are read."""
        found, damaged = {}, []
        done = self.manifest.status is Status.DONE
        for planned in self.plan:
            place = self.directory / "cells" / planned.key
            if not (done or place.exists()):
                continue
            try:
                found[planned.key] = read_result(place / RESULT, key=planned.key, run=self.manifest.id)
            except DamagedFileError as error:
                damaged.append(self.damage(planned, error))
        return found, damaged

    def check(self) -> Checked:
        """Checks every file of every repetition against its checksum.

        Raises: StoreError when the plan cannot be read, or a result is of another schema.
        """
        results, damaged = self.checked_results()
        files = len(results)
        for result in results.values():
            place = self.directory / "cells" / result.key
            files += len(result.files)
            damaged += [self.damage(result.planned, error) for error in _damaged_files(place, result)]
        return Checked(results, damaged, files)

    def check_attempts(self) -> Checked:
        """The same of the attempts that do not count: `results` has them by the names of their directories."""
        results, damaged, files = {}, [], 0
        planned = {planned.key: planned for planned in self.plan}
        for place in sorted((self.directory / "cells").iterdir()):
            match = ATTEMPT.fullmatch(place.name)
            if match is None or match["why"] == "damaged" or match["key"] not in planned:
                continue
            try:
                result = read_result(place / RESULT, key=match["key"], run=self.manifest.id)
            except DamagedFileError as error:
                damaged.append(self.damage(planned[match["key"]], error))
                continue
            results[place.name] = result
            files += 1 + len(result.files)
            damaged += [self.damage(result.planned, error) for error in _damaged_files(place, result)]
        return Checked(results, damaged, files)

    def damage(self, planned: PlannedCell, error: DamagedFileError) -> Damage:
        """What a damaged file means for its repetition."""
        file = error.path.relative_to(self.directory).as_posix()
        return Damage(planned.key, planned.cell, planned.repetition, file, error.reason)

    def missing(self) -> list[PlannedCell]:
        """What still has to run, in the order of the plan: repetitions without a result, and those that failed."""
        results = self.results()
        return [
            planned for planned in self.plan if planned.key not in results or results[planned.key].failure is not None
        ]


def _damaged_files(place: Path, result: RepetitionResult) -> Iterator[DamagedFileError]:
    for name, checksum in result.files.items():
        try:
            open_checked(place / name, checksum).close()
        except DamagedFileError as error:
            yield error


def check_place(directory: Path) -> None:
    """Whether a run could be made in a directory, by making one where it would be and removing it at once.

    Raises: StoreError when something else is there. DiskError when it cannot be written.
    """
    _refuse_taken(directory)
    with disk_errors(directory):
        there = next(place for place in (directory, *directory.absolute().parents) if place.exists())
        Path(tempfile.mkdtemp(prefix=".crosswind-", dir=there)).rmdir()


def _refuse_odd(directory: Path) -> None:
    """Raises: StoreError when crosswind-cell, which takes JSON, could not be told of a directory."""
    if no_utf8_in(str(directory.absolute())):
        raise StoreError(
            f"{directory.absolute()} is not UTF-8", hint="choose a directory whose whole path is, with --output"
        )


def _refuse_taken(directory: Path) -> None:
    """Raises: StoreError when a run cannot be made in a directory because of what is there."""
    _refuse_odd(directory)
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
            hint=f"`crosswind run --resume {directory}` continues it; or choose another --output",
        )
    return StoreError(f"{directory} is not empty and not a run", hint="choose another directory with --output")
