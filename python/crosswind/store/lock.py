"""A run's lock (flock), held by the writing session; the kernel releases it however the session dies."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from crosswind.errors import StoreError
from crosswind.files.inside import open_inside
from crosswind.store.addresses import shown

LOCK = "lock"

_NOT_REGULAR = (errno.EINVAL, errno.EISDIR, errno.ENXIO)
"""How a directory, a pipe or a device refuses to be opened as the lock."""


def lock_run(directory: Path) -> IO[bytes]:
    """Takes a run's lock until the returned file is closed. Raises: StoreError when another session has it."""
    try:
        lock = os.fdopen(open_inside(directory, LOCK, os.O_WRONLY | os.O_CREAT), "wb")
    except OSError as error:
        if error.errno not in _NOT_REGULAR:
            raise
        raise StoreError(f"{shown(directory / LOCK)} is not a regular file", hint="remove it") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise used_by_another(shown(directory), instead="choose another --output") from None
    return lock


def in_use(directory: Path) -> bool:
    """Whether a session holds the run's lock. Asks with a shared lock, and gives it back at once."""
    try:
        with _locked(directory, fcntl.LOCK_SH):
            return False
    except BlockingIOError:
        return True


def holder(directory: Path) -> int | None:
    """The process with the run's lock; None without one, or where the kernel hides it."""
    try:
        number = str((directory / LOCK).lstat().st_ino)
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # 1: FLOCK  ADVISORY  WRITE 4242 fe:00:131090 0 EOF
    held = (words for line in lines if (words := line.split())[1] == "FLOCK" and words[3] == "WRITE")
    holders = [int(words[4]) for words in held if words[5].rpartition(":")[2] == number]
    return next((process for process in holders if _has_open(process, directory / LOCK)), None)


def _has_open(process: int, path: Path) -> bool:
    """Whether a process has a file open: another file system may have a file of the same number."""
    try:
        return any(_is_same(opened, path) for opened in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def _is_same(opened: Path, path: Path) -> bool:
    try:
        return opened.samefile(path)
    except OSError:
        return False  # Closed meanwhile.


@contextmanager
def without_sessions(directory: Path) -> Iterator[None]:
    """Keeps sessions away from a run while inside. Raises: StoreError when it is in use."""
    try:
        with _locked(directory, fcntl.LOCK_EX):
            yield
    except BlockingIOError:
        raise used_by_another(shown(directory)) from None


def used_by_another(run: str, *, host: str = "", instead: str = "stop it with Ctrl-C") -> StoreError:
    """The error for a run in use. Args: host: its user's machine. instead: the alternative to waiting."""
    on = f" on {host}" if host else ""
    return StoreError(f"{run} is in use by another crosswind{on}", hint=f"wait for it to end, or {instead}")


@contextmanager
def _locked(directory: Path, kind: int) -> Iterator[None]:
    """Holds the run's lock, without waiting. A lock other than a file means no session. Raises: BlockingIOError."""
    try:
        descriptor = open_inside(directory, LOCK)
    except PermissionError:
        raise
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
