"""Files that are the old one or the new one, whole, whatever happens; and what a disk refuses, in words."""

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from crosswind.errors import DiskError

_DISK_HINT = "free some space or choose another place with --output; what is whole stays, `--resume` goes on from there"
_PLACE_HINT = "choose a directory that can be written, with --output DIR"
_NOT_A_PLACE = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Writes an object, indented for people. Raises: OSError; the old file then stays."""

    def write(file: IO[str]) -> None:
        json.dump(data, file, indent=1, ensure_ascii=False)
        file.write("\n")

    _replace(path, write)


def write_json_lines(path: Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Writes objects, one a line. Raises: OSError; the old file then stays."""

    def write(file: IO[str]) -> None:
        for data in objects:
            json.dump(data, file, separators=(",", ":"), ensure_ascii=False)
            file.write("\n")

    _replace(path, write)


def sync_path(path: Path) -> None:
    """Has the disk keep what a file or directory holds now. Raises: OSError."""
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


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Turns what the disk refuses into a DiskError that says why and what to do."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"cannot write {where}: {error.strerror or error}", hint=_disk_hint(error.errno)) from error


def _disk_hint(number: int | None) -> str:
    if number in _NOT_A_PLACE:
        return _PLACE_HINT
    return _DISK_HINT


def _replace(path: Path, write: Callable[[IO[str]], None]) -> None:
    """Writes a file under another name, syncs it, and gives it its own name."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
