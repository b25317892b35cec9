"""Files inside a foreign directory, as a run: no link in it is followed."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path, PurePath

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_inside(directory: Path, name: str, flags: int = os.O_RDONLY) -> int:
    """A regular file's descriptor.

    Args: directory: may be reached by links. name: the file's path within it. flags: as for os.open.
    Raises: OSError, also for a link between the directory and the file, or anything else there. ValueError for a path
        out of the directory.
    """
    *folders, last = PurePath(plain(name)).parts
    at = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = _opened(folder, _FOLDER, at)
            os.close(at)
            at = inner
        # Without O_NONBLOCK, opening a pipe waits for somebody at its other end.
        descriptor = _opened(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", name)
    return descriptor


def reader_inside(directory: Path, name: str) -> BufferedReader:
    """A file, opened for reading. Raises: OSError as `open_inside` does."""
    return os.fdopen(open_inside(directory, name), "rb")


def read_inside(directory: Path, name: str) -> bytes:
    """Reads a file. Raises: OSError as `open_inside` does."""
    with reader_inside(directory, name) as file:
        return file.read()


def create_inside(directory: Path, name: str) -> int:
    """A descriptor for writing a new file, replacing any file or link there.

    Args: name: without a folder. Raises: OSError.
    """
    with suppress(FileNotFoundError):
        (directory / name).unlink()
    return open_inside(directory, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def files_inside(directory: Path) -> Iterator[str]:
    """Paths of all regular files below a directory, within it, in order. Links are left out."""
    for path in sorted(directory.rglob("*")):
        with suppress(FileNotFoundError):  # It was packed meanwhile.
            if stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(directory).as_posix()


def remove_path(path: Path) -> None:
    """Removes a file, a link or a directory with everything in it, and follows no link. Raises: OSError."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def plain(name: str) -> str:
    """A file's path within a directory. Raises: ValueError for any other path."""
    path = PurePath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError(f"{name[:80]!r} is no path within it")
    return name


def _opened(name: str, flags: int, at: int) -> int:
    try:
        return os.open(name, flags, 0o666, dir_fd=at)
    except OSError as error:
        # For a link to a directory the kernel reports no directory.
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, at):
            raise OSError(errno.ELOOP, f"{name} is a link, which is not followed", name) from None
        raise


def _is_link(name: str, at: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        return False
