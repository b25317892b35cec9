"""Files written whole or not at all, and their substitutes: standard output, a pipe, a device."""

import errno
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from crosswind.errors import DiskError
from crosswind.files.inside import create_inside

STANDARD_OUTPUT = Path("-")
_OPEN_FILES = re.compile(r"/dev|/proc/\d+(/task/\d+)?/fd")
"""The names of a process's open files; they may be links to regular files with content."""
_MOST_LINKS = 40


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name for writing a file; it becomes the file's own when the block ends well.

    A symbolic link is followed. `-` is standard output; the file is copied there, and into an existing non-regular file
    (a pipe, a device), when the block ends well. In a run's directory, possibly foreign, the file replaces such a link
    or pipe.

    Raises: DiskError when the file cannot be written; nothing is left behind then, and an old file stays.
    """
    try:
        with _copied_to(path) if is_stream(path) else _moved_to(_place_of(path)) as part:
            yield part
    except BrokenPipeError:
        raise _refused(path, "its reader has closed it") from None
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error


def write_text(path: Path, text: str) -> None:
    """Write a text file whole. Raises: DiskError as `whole_file` does."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def _moved_to(place: Path) -> Iterator[Path]:
    part = place.with_name(f"{place.name}.part")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        os.close(create_inside(part.parent, part.name))
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.replace(place)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def _copied_to(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="crosswind-") as directory:
        part = Path(directory) / "part"
        yield part
        with part.open("rb") as written:
            if path == STANDARD_OUTPUT:
                sys.stdout.flush()
                _copy(written, sys.stdout.buffer)
            else:
                # Appending, since /dev/stdout may be a regular file with content.
                with path.open("ab") as stream:
                    _copy(written, stream)


def _is_in_run(path: Path) -> bool:
    """Whether a file is in the directory of a run, at any depth. Raises: OSError where a link is on the way to it."""
    folders = path.absolute().parents
    run = next((at for at in folders if (at / "manifest.json").is_file() and (at / "plan.jsonl").is_file()), None)
    if run is None:
        return False
    for folder in folders[: list(folders).index(run)]:
        if folder.is_symlink():
            raise OSError(errno.ELOOP, f"{folder.name} is a link in a run, which is not followed", str(path))
    return True


def _copy(written: BinaryIO, stream: BinaryIO) -> None:
    shutil.copyfileobj(written, stream)
    stream.flush()


def _place_of(path: Path) -> Path:
    """Where a path leads, over all links but one in a run. Raises: OSError where they lead nowhere."""
    if _is_in_run(path):
        return path
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def is_stream(path: Path) -> bool:
    """Whether a path is written in place: it is no regular file, or leads to one of this process's open files."""
    if path != STANDARD_OUTPUT and _is_in_run(path):
        return False
    if path == STANDARD_OUTPUT or any(_OPEN_FILES.fullmatch(os.path.realpath(place.parent)) for place in _chain(path)):
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _chain(path: Path) -> Iterator[Path]:
    """A path, and each link's target from there. A circle of links ends at the kernel's limit."""
    for _ in range(_MOST_LINKS):
        yield path
        try:
            path = path.parent / path.readlink()
        except OSError:
            return


def _refused(path: Path, why: str) -> DiskError:
    name = "standard output" if path == STANDARD_OUTPUT else path
    return DiskError(f"cannot write {name}: {why}", hint="make room or choose another place for the report")
