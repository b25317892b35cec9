"""What runs there are, what of them can go, and its removal. `store.py` is about one run, this about many.

A listing opens no more than it must: of a manifest the plan, nine tenths of it, is only counted; what is finished is
told by the names in `cells/`; sizes come from some of the cells. Nothing here waits for a lock, and none is kept but
while something is being removed.

The invariant of a removal: at every moment there is a whole run, or a directory that nobody takes for one. It is
renamed to `.<name>.removed` and loses its manifest before anything else; who finds such a directory may end the work.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosswind.errors import DiskError, StoreError
from crosswind.store.directory import MANIFEST, RUN_SCHEMA, sync_path

MARKER = "manifest.json.removed"
"""What the manifest is called while its run is being removed."""

SAMPLED_CELLS = 64
"""Of how many cells the size is read; that of the others is estimated from them."""

_FAMILY = "crosswind.run/"
_LEFTOVER = re.compile(r"\..+\.removed(-\d+)?")
_ATTEMPT = re.compile(r"(?P<key>[^.]+)\.(missed|failed)-\d+")
_NOT_A_RUN = "runs are the directories that `crosswind run` makes, in crosswind-runs/ without --output"


@dataclass(frozen=True)
class Details:
    """What only the results themselves tell: how many finished cells are valid or not, and how many have failed."""

    valid: int
    invalid: int
    failed: int


@dataclass(frozen=True)
class Run:
    """One run as a listing has it.

    Attributes:
        status: running, interrupted, stopped, done; died: it says running, and nobody holds its lock.
        started: of the first session; active: the last sign of life that the manifest has; both UTC.
        done: repetitions with a result. planned: repetitions. attempts: earlier ones that do not count.
        size_bytes: on the disk; exact: whether it was read, or estimated from some cells.
        details: when they were asked for. problem: a result that cannot be read, None without one.
    """

    directory: Path
    study: str
    title: str
    status: str
    started: datetime
    active: datetime
    done: int
    planned: int
    attempts: int
    parts: int
    size_bytes: int
    exact: bool
    details: Details | None = None
    problem: str | None = None

    @property
    def unfinished(self) -> bool:
        """Whether it ended before its end."""
        return self.status in ("died", "interrupted", "stopped")


@dataclass(frozen=True)
class Unreadable:
    """A directory among the runs that cannot be read as one, and why. `leftover`: a removal that did not end."""

    directory: Path
    problem: str
    leftover: bool = False


# Reading


def list_runs(root: Path, *, details: bool = False) -> list[Run | Unreadable]:
    """Every directory under `root`, or `root` itself when it is a run: what can be read latest first, then the others.

    Raises: StoreError when `root` cannot be read at all.
    """
    if (root / MANIFEST).exists():
        return [examine(root, details=details)]
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except OSError as error:
        raise StoreError(f"cannot read {root}: {error.strerror}", hint=_NOT_A_RUN) from None
    found = [examine(root / name, details=details) for name in names]
    runs = sorted((one for one in found if isinstance(one, Run)), key=lambda run: run.started, reverse=True)
    return [*runs, *(one for one in found if isinstance(one, Unreadable))]


def examine(directory: Path, *, details: bool = False) -> Run | Unreadable:
    """What a directory is. Never raises for what is in it."""
    try:
        if is_leftover(directory):
            return Unreadable(directory, "its removal did not end", leftover=True)
        return _examined(directory, details)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return Unreadable(directory, _reason(error))


def is_leftover(directory: Path) -> bool:
    """Whether a directory is what is left of a run whose removal was interrupted."""
    if not _LEFTOVER.fullmatch(directory.name) or directory.is_symlink():
        return False
    return is_run(directory) or _is_manifest(directory / MARKER) or not any(directory.iterdir())


def is_run(directory: Path) -> bool:
    """Whether a directory, not a link to one, has the manifest of a run, of whatever version."""
    return not directory.is_symlink() and _is_manifest(directory / MANIFEST)


def in_use(directory: Path) -> bool:
    """Whether a session holds the run's lock. Asks with a shared lock, and gives it back at once."""
    try:
        with _lock(directory, fcntl.LOCK_SH):
            return False
    except BlockingIOError:
        return True


def parts_of(directory: Path) -> list[Path]:
    """What a session that died left half-written: `cells/*.part`, and `.json.part` beside the manifest."""
    cells = [directory / "cells" / name for name in _names(directory / "cells") if name.endswith(".part")]
    return cells + [directory / name for name in _names(directory) if name.endswith(".json.part")]


def attempts_of(directory: Path) -> list[Path]:
    """Attempts that do not count: `cells/<key>.missed-<n>` and `.failed-<n>` of keys that have a later one."""
    names = _names(directory / "cells")
    whole = set(names)
    matches = filter(None, map(_ATTEMPT.fullmatch, names))
    return [directory / "cells" / match[0] for match in matches if match["key"] in whole]


def size_of(path: Path) -> int:
    """Bytes of a file or of everything below a directory. Links count as themselves."""
    try:
        if path.is_symlink() or not path.is_dir():
            return path.lstat().st_size
        with os.scandir(path) as entries:
            return sum(size_of(Path(e)) if e.is_dir(follow_symlinks=False) else _lstat_size(e) for e in entries)
    except FileNotFoundError:
        return 0  # A session at work renames and removes.


# Removing


def remove_run(directory: Path) -> None:
    """Removes a run, or goes on with a removal that did not end.

    Raises: StoreError when it is no run or is in use. DiskError when the disk refuses; what is left reads as no run.
    """
    leftover = is_leftover(directory)
    if not (leftover or is_run(directory)):
        raise not_a_run(directory)
    with _disk_errors(directory), _held(directory):
        place = directory.resolve()
        if not leftover:
            place = place.rename(_free_name(place))
            sync_path(place.parent)
        if (place / MANIFEST).exists():
            (place / MANIFEST).rename(place / MARKER)
        # The marker goes last: as long as anything is there, it says what that was.
        for entry in sorted(place.iterdir(), key=lambda path: path.name == MARKER):
            _remove(entry)
        place.rmdir()


def remove_entries(directory: Path, entries: Sequence[Path]) -> None:
    """Removes some of a run's own entries.

    Raises: StoreError when the run is in use. DiskError when the disk refuses.
    """
    with _disk_errors(directory), _held(directory):
        for entry in entries:
            _remove(entry)


def not_a_run(directory: Path) -> StoreError:
    """Why a directory is not touched."""
    if directory.is_symlink():
        return StoreError(f"{directory} is a link", hint="name the run itself: links are not followed")
    if not directory.exists():
        return StoreError(f"there is no {directory}", hint="`crosswind runs` lists the runs")
    return StoreError(f"{directory} is not a run: it has no {MANIFEST} of one", hint=_NOT_A_RUN)


def used_by_another(directory: Path) -> StoreError:
    """Why a run is left alone."""
    return StoreError(f"{directory} is in use by another crosswind", hint="wait for it to end, or stop it with Ctrl-C")


def _remove(path: Path) -> None:
    # rmtree does not follow links, neither below nor at the top.
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def _free_name(directory: Path) -> Path:
    place, number = directory.with_name(f".{directory.name}.removed"), 1
    while os.path.lexists(place):
        number += 1
        place = directory.with_name(f".{directory.name}.removed-{number}")
    return place


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    try:
        with _lock(directory, fcntl.LOCK_EX):
            yield
    except BlockingIOError:
        raise used_by_another(directory) from None


@contextmanager
def _lock(directory: Path, kind: int) -> Iterator[None]:
    """The run's lock inside, without waiting. A run without a lock file has no session. Raises: BlockingIOError."""
    try:
        descriptor = os.open(directory / "lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        raise DiskError(
            f"cannot remove {where}: {error.strerror or error}", hint="what is left is listed by `crosswind clean`"
        ) from error


# One run


def _examined(directory: Path, details: bool) -> Run:
    manifest, planned = _read_manifest(directory / MANIFEST)
    schema = manifest.get("schema")
    if schema != RUN_SCHEMA:
        raise ValueError(f"its schema is {schema!r}, not {RUN_SCHEMA!r}, the one this version reads")
    status = str(manifest["status"])
    if status == "running" and not in_use(directory):
        status = "died"
    inside = directory.resolve()  # A link to a run is listed like the run; only what removes stops at links.
    cells = _names(inside / "cells")
    whole = [name for name in cells if "." not in name]
    aside = [name for name in cells if "." in name]
    size_bytes, exact = _size(inside, cells, everything=details)
    found, problem = _details(inside / "cells", whole) if details else (None, None)
    started = _time(manifest["provenance"]["started"])
    times = [session.get(key) for session in manifest["sessions"] for key in ("started", "ended")]
    return Run(
        directory=directory,
        study=str(manifest["name"]),
        title=str(manifest["presentation"]["title"]),
        status=status,
        started=started,
        active=max([started, *(_time(text) for text in times if text)]),
        done=len(whole),
        planned=planned,
        attempts=sum(_ATTEMPT.fullmatch(name) is not None for name in aside),
        parts=sum(name.endswith(".part") for name in aside),
        size_bytes=size_bytes,
        exact=exact,
        details=found,
        problem=problem,
    )


def _read_manifest(path: Path) -> tuple[dict[str, Any], int]:
    """A manifest without its plan, and how many repetitions that has.

    `store.write_json` indents by one space a level, and JSON breaks no line inside a string: the plan ends at the first
    line after its beginning that closes a list of that level. A file laid out otherwise is read as a whole.
    """
    text = path.read_bytes()
    begin = text.find(b'\n "plan": [\n')
    end = text.find(b"\n ],\n", max(0, begin))
    if 0 <= begin < end:
        data = json.loads(text[:begin] + b'\n "plan": []' + text[end + len(b"\n ]") :])
        return data, text.count(b"\n  {\n", begin, end + 1)
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data["plan"], list):
        raise TypeError(f"{path.name} is no manifest of a run")
    return data, len(data["plan"])


def _is_manifest(path: Path) -> bool:
    try:
        return str(_read_manifest(path)[0].get("schema")).startswith(_FAMILY)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _details(cells: Path, whole: Sequence[str]) -> tuple[Details, str | None]:
    valid = invalid = failed = 0
    problem = None
    for name in whole:
        try:
            result = json.loads((cells / name / "result.json").read_bytes())
            if result["finished"] is None:
                failed += 1
            elif result["finished"]["valid"]:
                valid += 1
            else:
                invalid += 1
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = "it is missing" if isinstance(error, FileNotFoundError) else _reason(error)
            problem = problem or f"cells/{name}/result.json: {reason}"
    return Details(valid, invalid, failed), problem


def _size(directory: Path, cells: Sequence[str], *, everything: bool) -> tuple[int, bool]:
    """Bytes on the disk, and whether all were looked at: else every n-th cell by name stands for those beside it."""
    own = sum(size_of(directory / name) for name in _names(directory) if name != "cells")
    exact = everything or len(cells) <= SAMPLED_CELLS
    step = 1.0 if exact else len(cells) / SAMPLED_CELLS
    some = [cells[int((number + 0.5) * step)] for number in range(int(len(cells) / step + 0.5))]
    return own + round(sum(size_of(directory / "cells" / name) for name in some) * step), exact


def _names(directory: Path) -> list[str]:
    """What is in a directory, sorted; nothing in one that is not there, or is a link to somewhere else."""
    if directory.is_symlink():
        return []
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 (thousands of names, and no need of a Path for each)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lstat_size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"it has no {MANIFEST}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return f"it is not whole JSON: {error}"
    return str(error)
