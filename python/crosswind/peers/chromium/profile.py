"""The browser's profile: a temporary directory that does not outlive its use, whatever ends this process."""

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "crosswind-chromium-"
_PREFERENCES = {"net": {"network_prediction_options": 2}}
"""Never connect to a server before a page asks for it (chrome/browser/preloading/preloading_prefs.h)."""
_LONGEST_BASE = 34
"""Chromium makes a socket three levels below, whose path has 107 bytes at most (unix(7))."""
_MIN_AGE_S = 60.0
"""A younger directory may belong to a process that has yet to lock it."""


@contextlib.contextmanager
def profile() -> Iterator[Path]:
    """A new directory, removed at the end. What earlier processes left behind when they were killed is removed too."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _LONGEST_BASE:
        base = "/tmp"
    _remove_left_behind(Path(base))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    (path / "Default").mkdir()
    (path / "Default" / "Preferences").write_text(json.dumps(_PREFERENCES), encoding="ascii")
    try:
        yield path
    finally:
        _remove(path)
        os.close(held)


def _remove_left_behind(directory: Path) -> None:
    for path in directory.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < _MIN_AGE_S:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                # Whoever uses it holds the lock.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(descriptor)


def _remove(path: Path) -> None:
    # Processes of the browser that were killed may have been about to make another file.
    for _ in range(3):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
