"""The browser's profile: a temporary directory that does not outlive its use, whatever ends this process."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from crosswind.temporary import temporary_directory

_PREFERENCES = {"net": {"network_prediction_options": 2}}
"""Never connect to a server before a page asks for it (chrome/browser/preloading/preloading_prefs.h)."""
_LONGEST_BASE = 39
"""Chromium makes a socket three levels below, whose path has 107 bytes at most (unix(7))."""


@contextlib.contextmanager
def profile() -> Iterator[Path]:
    """A new directory, removed at the end. What earlier processes left behind when they were killed is removed too."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _LONGEST_BASE:
        base = "/tmp"
    with temporary_directory(Path(base)) as path:
        (path / "Default").mkdir()
        (path / "Default" / "Preferences").write_text(json.dumps(_PREFERENCES), encoding="ascii")
        yield path
