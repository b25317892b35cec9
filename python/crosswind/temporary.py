"""Temporary directories that do not outlive the process that makes them, whatever ends it.

A process holds a lock in each directory of its own, which the kernel gives back however that process dies. Who makes
or removes a directory removes those of the same user that nobody holds any more.
"""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOCK = ".crosswind-lock"
"""The file in such a directory that is locked. A directory without one is not removed unless it is empty."""

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
        os.close(held)
        # Of a cell that was killed in the meantime.
        _remove_left_behind(base)


def _new(base: Path) -> tuple[Path, int]:
    """A new directory, and the descriptor that holds its lock."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        # Another process may take it for one that was left behind, as long as it is not locked.
        with contextlib.suppress(FileNotFoundError):
            held = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with contextlib.suppress(OSError):  # Where there are no locks, nobody removes anything.
                fcntl.flock(held, fcntl.LOCK_EX)
            if os.fstat(held).st_nlink > 0:
                return path, held
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
    """Raises: OSError where another process holds it, or there is something in it and no lock."""
    try:
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        path.rmdir()
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    # Processes that were killed may have been about to make another file.
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
