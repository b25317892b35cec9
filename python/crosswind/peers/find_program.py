"""System programs needed by peers, under all their names."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from crosswind.errors import EngineError

CHROMIUM = "CROSSWIND_CHROMIUM"
"""The environment variable for the program Chromium."""

# The programs themselves come first, before shell scripts adding a user's flags.
_CHROMIUM_PLACES = (
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
)
_NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "chromium": ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
        "node": ("node", "nodejs"),
    }
)


def find_program(name: str) -> str | None:
    """A program's path, by its own or another name; None when missing.

    Raises: EngineError when the environment names a missing one.
    """
    named = os.environ.get(CHROMIUM) if name == "chromium" else None
    if named:
        if executable := shutil.which(named):
            return executable
        raise EngineError(f"{CHROMIUM} names {named}, which is not a program", hint="unset it, or correct it")
    places = _CHROMIUM_PLACES if name == "chromium" else ()
    return next(filter(None, map(shutil.which, (*places, *_NAMES.get(name, (name,))))), None)


def program_version(program: str) -> str | None:
    """A program's answer to `--version`, as 156.0.1.2; None without one."""
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    version = re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr)
    return version[0] if version else None


def is_older(version: str | None, oldest: int) -> bool:
    """Whether a version has an earlier major number. An unknown one is not judged."""
    return version is not None and int(version.partition(".")[0]) < oldest
