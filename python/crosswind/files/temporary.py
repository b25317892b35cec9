"""Temporary directories that do not outlive the process that makes them, whatever ends it.

A process holds a lock on each directory of its own, which the kernel gives back however that process dies. Who makes
or removes a directory removes those of the same user that nobody holds any more.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOCK = ".crosswind-lock"
"""The file in such a directory that is locked too: by crosswind-cell it alone."""

_PREFIX = "crosswind-tmp-"
_NAME = re.compile(re.escape(_PREFIX) + "[a-z0-9_]{8}")
"""As tempfile.mkdtemp makes them."""
_ATTEMPTS = 100


@contextlib.contextmanager
def temporary_directory(base: Path | None = None) -> Iterator[Path]:
    """A new directory, removed at the end. Those that killed processes have left are removed before and after.

    Args: base: where to make it; None for the place of temporary files. Raises: OSError when it cannot be made.
    """
    base = base or Path(tempfile.gettempdir())
    _remove_left_behind(base)
    path, held = _new(base)
    try:
        yield path
    finally:
        _remove(path)
        for descriptor in held:
            os.close(descriptor)
        # Of a cell that was killed in the meantime.
        _remove_left_behind(base)


def _new(base: Path) -> tuple[Path, tuple[int, int]]:
    """A new directory, and the descriptors that hold its locks."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        # Another process may take it for one that was left behind, as long as it is not locked.
        with contextlib.suppress(FileNotFoundError):
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                with contextlib.suppress(OSError):  # Where there are no locks, nobody removes anything.
                    fcntl.flock(directory, fcntl.LOCK_EX)
                held = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=directory)
            except OSError:
                os.close(directory)
                raise
            with contextlib.suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX)
            if os.fstat(held).st_nlink > 0:
                return path, (directory, held)
            os.close(directory)
            os.close(held)
    raise FileExistsError(f"each new directory in {base} is removed by another process")


def _remove_left_behind(base: Path) -> None:
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        directories = [Path(entry.path) for entry in entries if _NAME.fullmatch(entry.name)]
        for path in filter(_is_own, directories):
            # Whoever uses it holds the lock.
            with contextlib.suppress(OSError):
                _remove_unless_held(path)


def _is_own(path: Path) -> bool:
    """Whether it is a directory of this user, and no link to one."""
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


def _remove_unless_held(path: Path) -> None:
    """Raises: OSError where another process holds it."""
    with contextlib.ExitStack() as opened:
        for place, flags in ((path, os.O_RDONLY | os.O_DIRECTORY), (path / LOCK, os.O_RDWR | os.O_NONBLOCK)):
            # A process that was killed while it removed the directory may have removed this file already.
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(place, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
                opened.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)


def open_own_file(base: Path, name: str, suffix: str) -> int:
    """A descriptor of a file of this user where everybody may write. Another one is found beside it, `<name>-2`, where
    somebody else has made it before: all processes of a user come to the same.

    Raises: OSError where nothing can be made.
    """
    for number in range(1, _ATTEMPTS):
        path = base / f"{name}{'' if number == 1 else f'-{number}'}{suffix}"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except OSError as error:
            if not os.path.lexists(path):
                raise
            refused = error
            continue
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
        refused = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    raise refused


def _remove(path: Path) -> None:
    # Processes that were killed may have been about to make another file.
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
