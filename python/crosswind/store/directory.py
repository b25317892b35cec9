"""A run on disk: one directory, append-only, resumable (docs/store.md).

    manifest.json                  study, options, provenance, sessions, status
    plan.jsonl                     every repetition, in order
    cells/<key>/result.json        a repetition's settings and end
    cells/<key>/*.parquet, ...     its tables
    partitions/<number>/           a thousand repetitions, packed

One process at a time has a run open for writing; anyone may read. `cells.py` writes cells, `partitions.py` packs them.
Modules for tables are imported at their first use.
"""

import shutil
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from crosswind.catalog.tables import Table
from crosswind.errors import StoreError
from crosswind.files.damage import Damage, Repeated
from crosswind.files.inside import remove_path
from crosswind.store.addresses import address_of, shown
from crosswind.store.checksums import Checksum, DamagedFileError, check_file
from crosswind.store.files import ATTEMPT, disk_errors, set_aside, write_sealed
from crosswind.store.kept import Sums
from crosswind.store.lock import LOCK, lock_run
from crosswind.store.manifest import MANIFEST, Manifest, Session, Status, read_manifest, write_manifest
from crosswind.store.partition_index import INDEX, PARTITIONS, file_of, names_in, partition_names
from crosswind.store.plan import PLAN, PlannedCell, StoredPlan, drop_unlisted, extend_plan, read_plan, write_plan
from crosswind.store.result import RESULT, RepetitionResult, read_result
from crosswind.store.run_file import RunFile
from crosswind.text.visible import no_utf8_in

if TYPE_CHECKING:
    import polars as pl

    from crosswind.store.partitions import Partition
    from crosswind.store.uploads import Uploads

_FILES_OF_A_START = (LOCK, PLAN, f"{PLAN}.part", f"{MANIFEST}.part")


@dataclass(frozen=True)
class Checked:
    """A run after all its files were checked. Attributes: results: by key, without those in partitions. files: how many
    there are.
    """

    results: Mapping[str, RepetitionResult]
    damaged: Sequence[Damage]
    files: int


class Store:
    """One run directory. `create` and `resume` open it for writing and hold its lock until `close`; `read` does not."""

    def __init__(
        self, directory: Path, manifest: Manifest, lock: IO[bytes] | None, uploads: "Uploads | None" = None
    ) -> None:
        self.directory = directory
        self.manifest = manifest
        self.uploads = uploads
        """Sends a run open for writing to its object store; None for a plain directory."""
        self._lock = lock
        self.damaged: Sequence[Damage] = ()
        """Damaged repetitions, set aside by `resume`."""
        self._partitions: dict[str, Partition] = {}

    # Opening

    @classmethod
    def create(cls, directory: Path, manifest: Manifest, plan: Sequence[PlannedCell]) -> Self:
        """Starts a run in `directory`: absent, empty, or left by a killed start.

        Raises: StoreError when it holds anything else. DiskError when the disk refuses.
        """
        on_objects = address_of(directory) is not None
        (_refuse_non_utf8 if on_objects else _refuse_taken)(directory)
        with disk_errors(directory):
            if on_objects:
                from crosswind.store.uploads import Uploads

                store = cls(directory, manifest, None, Uploads.begin(directory))
            else:
                directory.mkdir(parents=True, exist_ok=True)
                store = cls(directory, manifest, lock_run(directory))
            try:
                (directory / "cells").mkdir(exist_ok=True)
                store.manifest = replace(manifest, plan=write_plan(directory, plan))
                write_manifest(directory, store.manifest)
                if store.uploads is not None:
                    store.uploads.put_file(PLAN)
                    store.uploads.put_file(MANIFEST)
            except BaseException as error:
                if isinstance(error, OSError):
                    for name in _FILES_OF_A_START:
                        (directory / name).unlink(missing_ok=True)
                    shutil.rmtree(directory / "cells", ignore_errors=True)
                store.close()
                raise
        return store

    @classmethod
    def resume(cls, directory: Path, *, digest: str | None = None) -> Self:
        """Opens a run to continue it, and removes a dead session's half-written files.

        A repetition with a damaged file is set aside as `cells/<key>.damaged-<n>`, and runs again.

        Args: digest: the study's; None takes the run's own.
        Raises: StoreError when it is not a run, is in use, or holds another study.
        """
        _refuse_non_utf8(directory)
        with disk_errors(directory):
            store = cls._open(directory, digest)
            try:
                store._tidy()
                if store.uploads is not None:
                    store.uploads.put_all()
            except BaseException:
                store.close()
                raise
        return store

    @classmethod
    def _open(cls, directory: Path, digest: str | None) -> Self:
        """Locks a run of a study. Raises: StoreError."""
        if address_of(directory) is None:
            manifest = read_manifest(directory)
            _refuse_links(directory)
            _refuse_another_study(directory, manifest, digest)
            return cls(directory, manifest, lock_run(directory))
        from crosswind.store.uploads import Uploads

        uploads = Uploads.resume(directory)
        try:
            manifest = read_manifest(directory)
            _refuse_another_study(directory, manifest, digest)
        except BaseException:
            uploads.close()
            raise
        return cls(directory, manifest, None, uploads)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Opens a run for reading, whether or not a session is writing it.

        Raises: StoreError when it is not a run or of another schema.
        """
        if address_of(directory) is not None:
            from crosswind.store.objects import RunObjects

            with disk_errors(directory):
                RunObjects(directory).pull()
        return cls(directory, read_manifest(directory), None)

    def close(self) -> None:
        """Gives the lock back."""
        if self.uploads is not None:
            self.uploads.close()
            self.uploads = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing

    def set_status(self, status: Status) -> None:
        """Writes the status to the manifest; DONE waits for the object store. Raises: DiskError."""
        if status is Status.DONE and self.uploads is not None:
            self.uploads.wait()
        self._replace_manifest(replace(self.manifest, status=status))

    def extend_plan(self, added: Sequence[PlannedCell]) -> None:
        """Adds repetitions to the plan. Raises: DiskError."""
        with disk_errors(self.directory):
            checksum = extend_plan(self.directory, self.plan, added)
            if self.uploads is not None:
                self.uploads.put_file(PLAN)
        self.__dict__.pop("plan")
        planned = self.manifest.planned + len(added)
        self._replace_manifest(replace(self.manifest, planned=planned, plan=checksum))

    def add_same(self, added: Sequence[tuple[PlannedCell, RepetitionResult]]) -> None:
        """Adds repetitions with the results of others, which lose the same packets.

        Args: added: each with the other's result. Raises: DiskError, DamagedFileError.
        """
        from crosswind.store.partitions import batches, pack_copies

        results = [result.for_same(planned) for planned, result in added]
        of_key = {result.key: result for _, result in added}
        for batch in batches(results, whole=False):
            with disk_errors(self.directory):
                partition = pack_copies(self.directory, self.manifest.id, batch, of_key, self.table)
            if self.uploads is not None:
                self.uploads.put(partition.relative_to(self.directory).as_posix())

    def begin_session(self, session: Session) -> None:
        """Adds a session to the manifest. Raises: DiskError."""
        sessions = (*self.manifest.sessions, session)
        self._replace_manifest(replace(self.manifest, status=Status.RUNNING, sessions=sessions))

    def end_session(self, session: Session, *, provenance: Mapping[str, Any]) -> None:
        """Replaces the last session, and the run's provenance. Raises: DiskError."""
        sessions = (*self.manifest.sessions[:-1], session)
        self._replace_manifest(replace(self.manifest, sessions=sessions, provenance=provenance))

    def _replace_manifest(self, manifest: Manifest) -> None:
        self.manifest = manifest
        with disk_errors(self.directory):
            write_manifest(self.directory, manifest)
        if self.uploads is not None:
            self.uploads.put_file(MANIFEST)

    def _tidy(self) -> None:
        """Removes half-written files, sets damaged repetitions aside, and packs the rest if they are many."""
        for folder in ("cells", PARTITIONS):
            for name in names_in(self.directory / folder):
                if name.endswith(".part"):
                    remove_path(self.directory / folder / name)
        drop_unlisted(self.directory, self._plan_checksum)
        from crosswind.store.partitions import batches, is_packable, pack, pack_again

        checked = self.check()
        self.damaged = checked.damaged
        for place in {self._place_of(damage) for damage in self.damaged if not isinstance(damage, Repeated)}:
            set_aside(place, "damaged")
        self._partitions.clear()
        for partition in self._read_partitions()[0]:
            if partition.counted is not None:
                if partition.keys:
                    pack_again(partition, self.plan, self.manifest.id)
                set_aside(self.directory / PARTITIONS / partition.name, "repeated")
        self._partitions.clear()
        cells = self.directory / "cells"
        for key in names_in(cells) & self.packed().keys():
            # A session died after packing, before removing the original.
            remove_path(cells / key)
        damaged = {damage.key for damage in self.damaged}
        whole = (result for key, result in checked.results.items() if key not in damaged and is_packable(result))
        for batch in batches(whole):
            pack(self.directory, self.manifest.id, batch)

    def _place_of(self, damage: Damage) -> Path:
        """The repetition's or partition's directory with a damaged file."""
        return self.directory.joinpath(*Path(damage.file).parts[:2])

    # Reading

    @cached_property
    def plan(self) -> StoredPlan:
        """The repetitions, in planned order. Raises: StoreError when the plan is unreadable."""
        grows = self.manifest.status is not Status.DONE
        return read_plan(self.directory, self._plan_checksum, may_be_longer=grows)

    @property
    def _plan_checksum(self) -> Checksum:
        assert self.manifest.plan is not None  # It was written before the manifest.
        return self.manifest.plan

    def partitions(self) -> "list[Partition]":
        """The partitions with a whole index. The first one counts for a repetition in several.

        Raises: UnreadableFileError for another schema.
        """
        return [partition for partition in self._read_partitions()[0] if partition.keys]

    def _read_partitions(self) -> "tuple[list[Partition], list[DamagedFileError]]":
        """As `partitions`, including those without a repetition left; and the errors from unreadable ones."""
        errors: list[DamagedFileError] = []
        if names := partition_names(self.directory):
            from crosswind.store.partitions import read_partition

        for name in names:
            if name not in self._partitions:
                try:
                    self._partitions[name] = read_partition(self.directory, name, self.manifest.id)
                except DamagedFileError as error:
                    errors.append(error)
        partitions, taken = [], set[str]()
        for name in sorted(self._partitions):
            partition = self._partitions[name]
            partitions.append(partition if taken.isdisjoint(partition.keys) else partition.without(taken))
            taken.update(partition.keys)
        return partitions, errors

    def damaged_partitions(self) -> list[Damage]:
        """Unreadable partitions, and those with repetitions from an earlier one."""
        partitions, errors = self._read_partitions()
        return [Damage("", -1, -1, error.file.name, error.reason) for error in errors] + [
            Repeated("", -1, -1, partition.file(INDEX).name, self._twice(partition, partitions))
            for partition in partitions
            if partition.counted is not None
        ]

    def _twice(self, partition: "Partition", partitions: "Sequence[Partition]") -> str:
        stored = set(self._partitions[partition.name].keys)
        before = (other for other in partitions if other.name < partition.name)
        where = " and ".join(f"{PARTITIONS}/{other.name}" for other in before if not stored.isdisjoint(other.keys))
        count = len(stored) - len(partition.keys)
        what = "a repetition" if count == 1 else f"{count:,} repetitions"
        return f"has {what} of {where} once more, which {'counts' if count == 1 else 'count'} once"

    def packed(self) -> "dict[str, Partition]":
        """Each packed repetition's partition, by key."""
        return {key: partition for partition in self.partitions() for key in partition.keys}

    def results(self) -> dict[str, RepetitionResult]:
        """Undamaged results by key, in planned order. Raises: StoreError for an unreadable plan or another schema."""
        return self.checked_results()[0]

    def checked_results(self, cells: Container[int] | None = None) -> tuple[dict[str, RepetitionResult], list[Damage]]:
        """The same, and the damaged results. The files beside a result are checked when read.

        Args: cells: only these cells' results; None: all.
        """
        of_repetition, damaged = self.results_in_directories(cells)
        packed: dict[str, RepetitionResult] = {}
        for partition in self.partitions():
            try:
                packed |= {result.key: result for result in partition.results(self.plan, cells)}
            except DamagedFileError as error:
                damaged += self.damage_of(partition, error)
        if not packed:
            return of_repetition, damaged
        of_repetition |= packed
        return {key: of_repetition[key] for key in self.plan.keys if key in of_repetition}, damaged

    def iter_results(self) -> Iterator[RepetitionResult]:
        """The undamaged results one by one, unordered: all may not fit into memory. Raises: StoreError."""
        for partition in self.partitions():
            try:
                yield from partition.results(self.plan)
            except DamagedFileError:
                continue
        yield from self.results_in_directories()[0].values()

    def sums(self) -> Sums:
        """Totals for the undamaged repetitions. Raises: StoreError."""
        parts = [Sums.of(self.results_in_directories()[0].values())]
        for partition in self.partitions():
            with suppress(DamagedFileError):
                parts.append(partition.sums(self.plan))
        return Sums.total(parts)

    def results_in_directories(
        self, cells: Container[int] | None = None
    ) -> tuple[dict[str, RepetitionResult], list[Damage]]:
        """As `checked_results`, without packed repetitions."""
        results, damaged = {}, []
        done = self.manifest.status is Status.DONE
        folder = self.directory / "cells"
        there = names_in(folder)
        partitions, errors = self._read_partitions()
        packed = {key: partition.name for partition in partitions for key in partition.keys}
        for at, key in enumerate(self.plan.keys):
            if key in packed or not (done or key in there) or (cells is not None and self.plan.cells[at] not in cells):
                continue
            if key not in there and errors:
                # Its partition is unknown.
                damaged.append(self.damage(self.plan[at], errors[0]))
                continue
            try:
                results[key] = self._result(key, key)
            except DamagedFileError as error:
                if done or (folder / key).exists():  # It may have been packed meanwhile.
                    damaged.append(self.damage(self.plan[at], error))
        if done:
            # A session at work, or a dead one, may not have removed the packed originals.
            damaged += [
                Repeated("", -1, -1, f"cells/{key}", f"is in {PARTITIONS}/{packed[key]} too, and counts once")
                for key in sorted(there & packed.keys())
            ]
        # A done run's unreadable repetitions are known, and were named above.
        damaged += [odd for odd in self.damaged_partitions() if isinstance(odd, Repeated) or not done]
        return results, damaged

    def _result(self, folder: str, key: str) -> RepetitionResult:
        """A repetition's result in a folder under `cells`. Raises: as `read_result`."""
        return read_result(RunFile(self.directory, f"cells/{folder}/{RESULT}"), key=key, run=self.manifest.id)

    def check(self) -> Checked:
        """Checks every repetition's files against their checksums.

        Raises: StoreError for an unreadable plan or another schema.
        """
        results, damaged = self.results_in_directories()
        files = len(results)
        for result in results.values():
            files += len(result.files)
            damaged += self._damaged_files(result, result.key)
        for partition in self._read_partitions()[0]:
            files += 1 + len(partition.files)
            for error in partition.damaged_files():
                damaged += self.damage_of(partition, error)
        return Checked(results, damaged, files)

    def damage_of(self, partition: "Partition", error: DamagedFileError) -> list[Damage]:
        """The repetitions lost with a damaged partition."""
        return [self.damage(self.plan.with_key(key), error) for key in partition.keys]

    def _damaged_files(self, result: RepetitionResult, folder: str) -> Iterator[Damage]:
        """Args: folder: the repetition's, under `cells`."""
        for name, checksum in result.files.items():
            try:
                check_file(RunFile(self.directory, f"cells/{folder}/{name}"), checksum)
            except DamagedFileError as error:
                yield self.damage(result.planned, error)

    def check_attempts(self) -> Checked:
        """The same for attempts that do not count; `results` has their directories' names as keys."""
        results, damaged, files = {}, [], 0
        planned = {planned.key: planned for planned in self.plan}
        for name in sorted(names_in(self.directory / "cells")):
            match = ATTEMPT.fullmatch(name)
            if match is None or match["why"] == "damaged" or match["key"] not in planned:
                continue
            try:
                result = self._result(name, match["key"])
            except DamagedFileError as error:
                damaged.append(self.damage(planned[match["key"]], error))
                continue
            results[name] = result
            files += 1 + len(result.files)
            damaged += self._damaged_files(result, name)
        return Checked(results, damaged, files)

    def file(self, result: RepetitionResult, name: str) -> RunFile:
        """A repetition's file, or its partition's."""
        if result.partition is not None:
            return file_of(self.directory, result.partition, name)
        return RunFile(self.directory, f"cells/{result.key}/{name}")

    def table(self, result: RepetitionResult, table: Table) -> "pl.DataFrame":
        """A table of a repetition; one without rows where none was written. Raises: DamagedFileError."""
        if result.partition is not None:
            return self._partitions[result.partition].rows_of(result.planned, table)
        from crosswind.store.tables import read_table

        return read_table(self.file(result, table.file), table, result.files.get(table.file))

    def rows(
        self,
        result: RepetitionResult,
        table: Table,
        *,
        where: "pl.Expr",
        columns: "Sequence[str | pl.Expr]",
    ) -> "pl.DataFrame":
        """Some rows and columns from a repetition's table. Raises: DamagedFileError."""
        if result.partition is not None:
            return self.table(result, table).filter(where).select(columns)
        from crosswind.store.tables import read_rows

        file, checksum = self.file(result, table.file), result.files.get(table.file)
        return read_rows(file, table, checksum, where=where, columns=columns)

    def check_files(self, result: RepetitionResult, names: Iterable[str]) -> None:
        """Checks some of a repetition's files against their checksums, if it has them. Raises: DamagedFileError."""
        if result.partition is not None:
            for error in self._partitions[result.partition].damaged_files(names):
                raise error
            return
        for name in names:
            if name in result.files:
                check_file(self.file(result, name), result.files[name])

    def unpacked(self, result: RepetitionResult, scratch: Path) -> Path:
        """A repetition's directory; for a packed one, a copy in `scratch`. Raises: DamagedFileError."""
        if result.partition is None:
            return self.directory / "cells" / result.key
        import polars as pl

        place = Path(tempfile.mkdtemp(dir=scratch))
        for name in result.files:
            of_repetition = pl.col("cell") == result.planned.cell, pl.col("repetition") == result.planned.repetition
            packed = self._partitions[result.partition].table(name)
            assert packed is not None  # It is made from its repetitions'.
            packed.filter(of_repetition).drop("cell", "repetition").write_parquet(place / name)
        write_sealed(place / RESULT, {"run": self.manifest.id, **result.as_json()})
        return place

    def damage(self, planned: PlannedCell, error: DamagedFileError) -> Damage:
        """A damaged file's effect on its repetition."""
        return Damage(planned.key, planned.cell, planned.repetition, error.file.name, error.reason)

    def missing(self) -> list[PlannedCell]:
        """The repetitions left to run, in planned order: without a result, or failed."""
        done = {key for key, result in self.results_in_directories()[0].items() if result.failure is None}
        done.update(self.packed())
        return [self.plan[at] for at, key in enumerate(self.plan.keys) if key not in done]

    def has_results(self) -> bool:
        """Whether a repetition was run."""
        return bool(self.packed()) or bool(self.results_in_directories()[0])


def check_place(directory: Path) -> None:
    """Whether a run could be made in a directory, by making one where it would be and removing it at once.

    Raises: StoreError when something else is there. DiskError when it cannot be written.
    """
    if address_of(directory) is not None:
        from crosswind.store.objects import RunObjects

        with disk_errors(directory):
            RunObjects(directory).check_free()
        return
    _refuse_taken(directory)
    with disk_errors(directory):
        there = next(place for place in (directory, *directory.absolute().parents) if place.exists())
        Path(tempfile.mkdtemp(prefix=".crosswind-", dir=there)).rmdir()


def _refuse_non_utf8(directory: Path) -> None:
    """Raises: StoreError for a path outside UTF-8: crosswind-cell takes JSON."""
    if no_utf8_in(str(directory.absolute())):
        raise StoreError(
            f"{directory.absolute()} is not UTF-8", hint="choose a directory whose whole path is, with --output"
        )


def _refuse_another_study(directory: Path, manifest: Manifest, digest: str | None) -> None:
    """Raises: StoreError when a run is of another study than the one with a digest."""
    if digest is not None and digest != manifest.study_digest:
        raise StoreError(
            f"{shown(directory)} holds another study: {manifest.study_digest[:19]}, not {digest[:19]}",
            hint="resume with the same study and settings, or leave both out: `crosswind run --resume DIR`",
        )


def _refuse_links(directory: Path) -> None:
    """Raises: StoreError when a link would lead a session's files elsewhere."""
    for folder in (directory / "cells", directory / PARTITIONS):
        if folder.is_symlink():
            raise StoreError(
                f"{folder} is a link, and links in a run are not followed",
                hint="put the directory itself in the place of the link",
            )


def _refuse_taken(directory: Path) -> None:
    """Raises: StoreError when a directory's content rules out a new run."""
    _refuse_non_utf8(directory)
    with disk_errors(directory):
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"{directory} is not a directory", hint="choose another one with --output")
        if directory.exists() and any(directory.iterdir()) and not _is_killed_start(directory):
            raise _occupied(directory)


def _is_killed_start(directory: Path) -> bool:
    """Whether a directory holds only a killed start: no manifest yet."""
    lock, cells = directory / LOCK, directory / "cells"
    others = {entry.name for entry in directory.iterdir()} - {*_FILES_OF_A_START, "cells"}
    is_ours = not lock.is_symlink() and lock.is_file() and lock.stat().st_size == 0
    return is_ours and not others and not cells.is_symlink() and not names_in(cells)


def _occupied(directory: Path) -> StoreError:
    if (directory / MANIFEST).exists():
        return StoreError(
            f"{directory} already holds a run",
            hint=f"`crosswind run --resume {directory}` continues it; or choose another --output",
        )
    return StoreError(f"{directory} is not empty and not a run", hint="choose another directory with --output")
