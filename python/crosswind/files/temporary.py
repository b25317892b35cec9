"""Temporary directories never outliving their process, whatever ends it.

A process locks each of its directories; the kernel releases the lock however the process dies. Making or removing a
directory also removes the same user's unlocked ones.
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
"""The second locked file in such a directory: crosswind-cell locks only this one."""

_PREFIX = "crosswind-tmp-"
_NAME = re.compile(re.escape(_PREFIX) + "[a-z0-9_]{8}")
"""As tempfile.mkdtemp makes them."""
_ATTEMPTS = 100


@contextlib.contextmanager
def temporary_directory(base: Path | None = None) -> Iterator[Path]:
    """A new directory, removed at the end. Killed processes' directories are removed before and after.

    Args: base: its parent; None for the system's. Raises: OSError when it cannot be made.
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
        # From a cell killed in the meantime.
        _remove_left_behind(base)


def _new(base: Path) -> tuple[Path, tuple[int, int]]:
    """A new directory, and the descriptors with its locks."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        # While unlocked, another process may think it abandoned.
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
            # A process killed during the removal may have removed this file already.
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(place, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
                opened.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)


def open_own_file(base: Path, name: str, suffix: str) -> int:
    """A descriptor for this user's file in a world-writable directory, or beside it, `<name>-2`, if somebody else made
    it before: all the user's processes find the same one.

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
    # Killed processes may have been about to make another file.
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
