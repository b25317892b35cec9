"""Atomic file replacement, and disk errors in words."""

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crosswind.errors import DiskError
from crosswind.files.inside import create_inside
from crosswind.store.checksums import sealed

ATTEMPT = re.compile(r"(?P<key>[^.]+)\.(?P<why>missed|failed|damaged|repeated)-\d+")
"""The name of a superseded attempt."""

_DISK_HINT = "free space or choose another --output; finished repetitions are kept, `--resume` continues the run"
_PLACE_HINT = "choose a directory that can be written, with --output DIR"
_PLACE_ERRORS = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Writes an object with its own checksum. Raises: OSError; the old file then stays."""
    write_whole(path, [sealed(data)])


def write_whole(path: Path, content: Iterable[bytes]) -> None:
    """Writes a file under another name, syncs it, and renames it. Raises: OSError; the old file then stays."""
    part = path.with_name(path.name + ".part")
    try:
        with os.fdopen(create_inside(part.parent, part.name), "wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def sync_path(path: Path) -> None:
    """Flushes a file or directory to the disk. Raises: OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(directory: Path) -> None:
    """`sync_path` for a directory and every file directly in it. Raises: OSError."""
    for path in directory.iterdir():
        sync_path(path)
    sync_path(directory)


def set_aside(place: Path, why: str) -> Path | None:
    """Renames an earlier attempt, if there is one, to match ATTEMPT.

    Returns: its new place; None without one. Raises: OSError.
    """
    if not os.path.lexists(place):
        return None
    number = 1
    while os.path.lexists(place.with_name(f"{place.name}.{why}-{number}")):
        number += 1
    return place.rename(place.with_name(f"{place.name}.{why}-{number}"))


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turns an OSError into a DiskError with a reason and a hint."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot write {where}: {error.strerror or error}", hint=_disk_hint(error.errno)) from error


def _disk_hint(number: int | None) -> str:
    if number in (errno.ELOOP, errno.EINVAL):
        return "a run has regular files alone, and links in it are not followed: remove what stands there"
    if number in _PLACE_ERRORS:
        return _PLACE_HINT
    return _DISK_HINT
