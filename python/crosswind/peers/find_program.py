"""Programs of the system that peers need, by every name under which systems have them."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from crosswind.errors import EngineError

CHROMIUM = "CROSSWIND_CHROMIUM"
"""The environment variable that names the program Chromium."""

# The programs themselves come first, without the shell scripts that start them with a user's flags.
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
    """The path of a program, by its own name or by another that it has; None when it is not there.

    Raises: EngineError when the environment names one that is not there.
    """
    named = os.environ.get(CHROMIUM) if name == "chromium" else None
    if named:
        if executable := shutil.which(named):
            return executable
        raise EngineError(f"{CHROMIUM} names {named}, which is not a program", hint="unset it, or correct it")
    places = _CHROMIUM_PLACES if name == "chromium" else ()
    return next(filter(None, map(shutil.which, (*places, *_NAMES.get(name, (name,))))), None)


def program_version(program: str) -> str | None:
    """What a program says to `--version`, as 156.0.1.2; None where it says none."""
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    version = re.search(r"\d+(\.\d+)+", answer.stdout + answer.stderr)
    return version[0] if version else None


def is_older(version: str | None, oldest: int) -> bool:
    """Whether a version is of an earlier major one. One that is not known is not judged."""
    return version is not None and int(version.partition(".")[0]) < oldest
