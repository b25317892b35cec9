"""A run on disk: one directory, append-only, resumable (docs/store.md).

    manifest.json                  study, plan, provenance, sessions, status
    cells/<key>/result.json        what one repetition was and how it ended
    cells/<key>/*.parquet, ...     its tables

The invariant: a directory `cells/<key>` is whole. It is written under another name, synced, and renamed; whatever dies
half-way leaves a `.part` that nobody reads and the next session removes. One process at a time has a run open for
writing (flock); anyone may read.
"""

import errno
import fcntl
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import polars as pl

from crosswind.errors import DiskError, EngineError, StoreError
from crosswind.record import (
    OBJECT_SCHEMA,
    SAMPLE_SCHEMA,
    CellRun,
    RunRecord,
    empty_objects,
    empty_samples,
    whole_table,
)

RUN_SCHEMA = "crosswind.run/1"
CELL_SCHEMA = "crosswind.cell-run/1"
DEFAULT_ROOT = Path("crosswind-runs")

MANIFEST = "manifest.json"
_MISSED = re.compile(r"(?P<key>[^.]+)\.missed-\d+")
_SAMPLES = "samples.parquet"
_OBJECTS = "objects.parquet"
_MOST_OUTPUT_BYTES = 1 << 20
_KEPT_ERRORS_BYTES = 2000
_DISK_HINT = "free some space or choose another place with --output; what is whole stays, `--resume` goes on from there"


@dataclass(frozen=True)
class Manifest:
    """What a run is meant to be: `data` is manifest.json, checked.

    Attributes: study: canonical mapping. digest: of that. plan: one mapping a repetition, in order:
        {key, order, cell, repetition, block, seed, expected_ns, levels, parameters}; the last is the cell itself.
    """

    data: dict[str, Any]

    @property
    def study(self) -> dict[str, Any]:
        """The study in its canonical form."""
        return dict(self.data["study"])

    @property
    def digest(self) -> str:
        """What tells this study from any other: "sha256:<hex>"."""
        return str(self.data["study_digest"])

    @property
    def plan(self) -> list[dict[str, Any]]:
        """The repetitions, in the order they are to run."""
        return list(self.data["plan"])

    @property
    def options(self) -> dict[str, Any]:
        """What was asked of every cell beside the study: {"packets": bool, "capture": bool, ...}."""
        return dict(self.data["options"])

    @property
    def status(self) -> str:
        """`running`, `interrupted`, `stopped` (by an error) or `done`."""
        return str(self.data["status"])


class Store:
    """One run directory. `create` and `resume` open it for writing and hold its lock until `close`; `read` does not."""

    def __init__(self, directory: Path, manifest: Manifest, lock: IO[bytes] | None) -> None:
        self.directory = directory
        self.manifest = manifest
        self._lock = lock

    # Opening

    @classmethod
    def create(cls, directory: Path, data: Mapping[str, Any]) -> Self:
        """Starts a run in `directory`, which must be absent or empty.

        Args: data: the manifest without `schema` and `status`.
        Raises: StoreError when something else is there. DiskError when the disk refuses.
        """
        if directory.exists() and not directory.is_dir():
            raise StoreError(f"{directory} is not a directory", hint="choose another one with --output")
        with disk_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
            if any(directory.iterdir()):
                raise _occupied(directory)
            lock = _locked(directory)
            manifest = Manifest({"schema": RUN_SCHEMA, **data, "status": "running"})
            try:
                (directory / "cells").mkdir()
                write_json(directory / MANIFEST, manifest.data)
            except OSError:
                shutil.rmtree(directory / "cells", ignore_errors=True)
                (directory / "lock").unlink(missing_ok=True)
                raise
        return cls(directory, manifest, lock)

    @classmethod
    def resume(cls, directory: Path, *, digest: str | None = None) -> Self:
        """Opens a run to go on with it, and removes what a dead session left half-written.

        Args: digest: of the study that is to go on; None takes the run's own.
        Raises: StoreError when it is not a run, is in use, or holds another study.
        """
        manifest = _read_manifest(directory)
        if digest is not None and digest != manifest.digest:
            raise StoreError(
                f"{directory} holds another study: {manifest.digest[:19]}, not {digest[:19]}",
                hint="resume with the same study and settings, or leave both out: `crosswind run --resume DIR`",
            )
        with disk_errors(directory):
            lock = _locked(directory)
            for part in (directory / "cells").glob("*.part"):
                shutil.rmtree(part)
        return cls(directory, manifest, lock)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Opens a run for reading, whether or not one is writing it.

        Raises: StoreError when it is not a run or of another schema.
        """
        return cls(directory, _read_manifest(directory), None)

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

    def begin_cell(self, key: str) -> Path:
        """An empty directory for the cell process to write into. Nobody reads it until `commit_cell`."""
        # The number keeps an orphan of a killed session from writing into the directory of its successor.
        part = self.directory / "cells" / f"{key}.{os.getpid()}.part"
        with disk_errors(part):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
        return part

    def commit_cell(self, part: Path, result: Mapping[str, Any], *, name: str | None = None) -> None:
        """Makes what `begin_cell` gave a whole cell: tables to Parquet, result.json, sync, rename.

        An earlier, failed attempt of the same key is kept as `cells/<key>.failed-<n>`.
        Raises: DiskError when the disk refuses; nothing is left that reads as whole.
        """
        place = part.parent / (name or str(result["key"]))
        try:
            with disk_errors(part):
                for arrow in sorted(part.glob("*.arrow")):
                    to_parquet(arrow)
                for leftover in part.glob("*.part"):
                    leftover.unlink()
                write_json(part / "result.json", {"schema": CELL_SCHEMA, **result})
                _sync_tree(part)
                _set_aside(place)
                part.rename(place)
                sync_path(place.parent)
        except DiskError:
            shutil.rmtree(part, ignore_errors=True)
            raise

    def commit_missed(self, part: Path, result: Mapping[str, Any]) -> None:
        """As `commit_cell`, for an attempt that does not count because another follows: `cells/<key>.missed-<n>`."""
        missed = self.missed(str(result["key"])) + 1
        self.commit_cell(part, result, name=f"{result['key']}.missed-{missed}")

    def missed(self, key: str) -> int:
        """How many attempts at `key` do not count because they missed their fidelity budget."""
        return self.all_missed()[key]

    def all_missed(self) -> Counter[str]:
        """`missed` of every key, by one look at the directory, which holds thousands of names."""
        with os.scandir(self.directory / "cells") as entries:
            matches = (_MISSED.fullmatch(entry.name) for entry in entries)
            return Counter(match["key"] for match in matches if match)

    def commit_failed(self, part: Path, result: Mapping[str, Any]) -> None:
        """As `commit_cell`, without the tables, which cannot be read."""
        for table in (*part.glob("*.arrow"), *part.glob("*.parquet")):
            table.unlink()
        self.commit_cell(part, result)

    def discard_cell(self, part: Path) -> None:
        """Forgets a cell that was begun and will not be committed."""
        shutil.rmtree(part, ignore_errors=True)

    def update(self, **changes: Any) -> None:
        """Rewrites manifest.json with `changes`, atomically."""
        self.manifest = Manifest({**self.manifest.data, **changes})
        with disk_errors(self.directory):
            write_json(self.directory / MANIFEST, self.manifest.data)

    # Reading

    def results(self) -> dict[str, dict[str, Any]]:
        """result.json of every cell that has one, by key, in the order of the plan."""
        found = {}
        for item in self.manifest.plan:
            path = self.directory / "cells" / item["key"] / "result.json"
            if path.exists():
                found[item["key"]] = _checked_result(path)
        return found

    def missing(self) -> list[str]:
        """Keys that still have to run, in the order of the plan: those without a result, and those that failed."""
        results = self.results()
        return [
            item["key"]
            for item in self.manifest.plan
            if item["key"] not in results or results[item["key"]]["failure"] is not None
        ]

    def record(self) -> RunRecord:
        """The run as analysis sees it: every repetition that has a result, failed ones too."""
        data = self.manifest.data
        presentation = data["presentation"]
        return RunRecord(
            study=self.manifest.study,
            title=presentation["title"],
            name=presentation["name"],
            published=presentation["published"],
            models=presentation["models"],
            notes=presentation["notes"],
            cells=[self._cell_run(result) for result in self.results().values()],
            planned=len(self.manifest.plan),
            provenance=dict(data["provenance"]),
            figures=presentation.get("figures", []),
            fits=presentation.get("fits", []),
            equivalences=presentation.get("equivalences", []),
        )

    def _cell_run(self, result: Mapping[str, Any]) -> CellRun:
        place = self.directory / "cells" / result["key"]
        # A cell that failed may have left tables; they stay for whoever looks into it, but are no measurement.
        whole = result["failure"] is None
        return CellRun(
            key=result["key"],
            cell=result["cell"],
            repetition=result["repetition"],
            block=result["block"],
            levels=result["levels"],
            parameters=result["parameters"],
            finished=result["finished"],
            failure=result["failure"],
            attempts=result.get("attempt", 1),
            beside=result.get("beside"),
            samples=_table(place / _SAMPLES, SAMPLE_SCHEMA) if whole else empty_samples(),
            objects=_table(place / _OBJECTS, OBJECT_SCHEMA) if whole else empty_objects(),
            client_out=_whole_text(place / "client.out") if whole else "",
            client_err=_end_of_text(place / "client.err"),
        )


def _table(path: Path, schema: Mapping[str, type[pl.DataType]]) -> pl.DataFrame:
    return whole_table(pl.read_parquet(path), schema) if path.exists() else pl.DataFrame(schema=schema)


def _whole_text(path: Path) -> str:
    """What a program printed; nothing where it is too much to be a report of itself."""
    if not path.exists() or path.stat().st_size > _MOST_OUTPUT_BYTES:
        return ""
    return path.read_text(encoding="utf-8", errors="replace")


def _end_of_text(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _KEPT_ERRORS_BYTES))
        return file.read().decode(errors="replace")


def fresh_directory(name: str, stamp: str, *, root: Path = DEFAULT_ROOT) -> Path:
    """`<root>/<name>-<stamp>`, with -2, -3, ... where that is taken already."""
    first = root / f"{name}-{stamp}"
    place, number = first, 1
    while place.exists():
        number += 1
        place = first.with_name(f"{first.name}-{number}")
    return place


def latest_run(root: Path = DEFAULT_ROOT, *, name: str | None = None) -> Path:
    """The run under `root` (of the study `name`, when given) that was started last.

    Raises: StoreError when there is none.
    """
    # A name with a dot before it is a run that is being removed.
    runs = [path.parent for path in root.glob(f"[!.]*/{MANIFEST}")]
    found = [(started, run) for run in runs if (started := _started(run, name)) is not None]
    if not found:
        what = f"run of {name}" if name else "run"
        raise StoreError(
            f"there is no {what} in {root}/", hint="name its directory, or start one: crosswind run quickstart"
        )
    return max(found)[1]


def _started(directory: Path, name: str | None) -> str | None:
    """When the run was started; None when it is unreadable or another study's."""
    try:
        data = _read_manifest(directory).data
    except StoreError:
        return None
    return str(data["provenance"]["started"]) if name in (None, data["name"]) else None


def to_parquet(arrow: Path) -> None:
    """Turns `x.arrow` (Arrow IPC file) into `x.parquet` (zstd) beside it, streaming, and removes the first.

    Raises: EngineError when the cell wrote something else than a table. OSError when the disk refuses.
    """
    if arrow.stat().st_size == 0:
        raise _not_a_table(arrow, "it is empty")
    try:
        pl.scan_ipc(arrow).sink_parquet(arrow.with_suffix(".parquet"), compression="zstd")
    except (pl.exceptions.PolarsError, OSError) as error:
        # Polars hands on what the system refused with the number in its text only.
        refused = re.search(r"os error (\d+)", str(error))
        number = int(refused[1]) if refused else errno.EINVAL
        if number != errno.EINVAL:
            raise OSError(number, os.strerror(number)) from error
        raise _not_a_table(arrow, str(error)) from error
    arrow.unlink()


def _not_a_table(arrow: Path, why: str) -> EngineError:
    return EngineError(f"{arrow.name} is not a whole Arrow file: {why}", hint="`--resume` runs the cell again")


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes `data` so that `path` is the old file or the new one, whole, whatever happens."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turns what the disk refuses into a DiskError that says why and what to do."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot write {where}: {error.strerror or error}", hint=_disk_hint(error.errno)) from error


def _disk_hint(number: int | None) -> str:
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "choose a directory that can be written, with --output DIR"
    return _DISK_HINT


def _read_manifest(directory: Path) -> Manifest:
    path = directory / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(
            f"{directory} is not a run: it has no {MANIFEST}",
            hint="runs are the directories that `crosswind run` makes, in crosswind-runs/ without --output",
        ) from None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"cannot read {path}: {error}", hint="restore the file from a copy, or run the study anew"
        ) from None
    _check_schema(path, data, RUN_SCHEMA)
    return Manifest(data)


def _checked_result(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(
            f"cannot read {path}: {error}", hint=f"remove the directory {path.parent}; `--resume` runs that cell again"
        ) from None
    _check_schema(path, data, CELL_SCHEMA)
    return dict(data)


def _check_schema(path: Path, data: object, known: str) -> None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == known:
        return
    family, _, version = str(schema).partition("/")
    if family == known.partition("/")[0] and version.isdecimal() and int(version) > int(known.partition("/")[2]):
        raise StoreError(
            f"{path} is of schema {schema}, newer than {known}, the one this version reads",
            hint="update crosswind, or read the Parquet files directly",
        )
    raise StoreError(
        f"{path} is of schema {schema!r}, not {known!r}", hint="this version cannot read it; run the study anew"
    )


def _occupied(directory: Path) -> StoreError:
    if (directory / MANIFEST).exists():
        return StoreError(
            f"{directory} already holds a run",
            hint=f"`crosswind run --resume {directory}` goes on with it; or choose another --output",
        )
    return StoreError(f"{directory} is not empty and not a run", hint="choose another directory with --output")


def _locked(directory: Path) -> IO[bytes]:
    lock = (directory / "lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StoreError(
            f"{directory} is in use by another crosswind", hint="wait for it to end, or choose another --output"
        ) from None
    return lock


def _set_aside(place: Path) -> None:
    if not place.exists():
        return
    number = 1
    while place.with_name(f"{place.name}.failed-{number}").exists():
        number += 1
    place.rename(place.with_name(f"{place.name}.failed-{number}"))


def _sync_tree(directory: Path) -> None:
    for path in directory.iterdir():
        sync_path(path)
    sync_path(directory)


def sync_path(path: Path) -> None:
    """Has the disk keep what a file or directory holds now. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
