"""Virtual time's needs, and errors without them: ptrace, /proc and memory.

It takes no privilege, so it works in most containers.
"""

import os
import re
import tempfile
from pathlib import Path

from crosswind.errors import EngineError

NEEDS = "it takes x86-64, ptrace, /proc and memory; `crosswind doctor` tries it"

BOOTED_BYTES = 48 << 20
"""A booted kernel with the cell's program as a file takes 27 MB, or 42 with a program not optimised; and some more."""

PROGRAM_BOOTED_BYTES = 96 << 20
"""The same for a kernel with memory for programs."""

_SHARED_MEMORY = "/dev/shm"
_PTRACE_HINT = (
    "allow ptrace: in a container by its seccomp profile; elsewhere by `sysctl kernel.yama.ptrace_scope=1`, "
    "where that is 2 or 3"
)


def check_proc() -> None:
    """Raises: EngineError without /proc, the map for a kernel's copy."""
    if not Path("/proc/self/maps").exists():
        raise EngineError("virtual time takes /proc, and there is none here", hint="mount -t proc proc /proc")


def check_readable(binary: Path) -> None:
    """Raises: EngineError when a guest, with this user's rights, cannot read its first program."""
    if not os.access(binary, os.R_OK):
        raise EngineError(f"{binary} cannot be read, as it has to in virtual time", hint=f"chmod a+r {binary}")


def memory_directory(needed_bytes: int = BOOTED_BYTES) -> str:
    """A directory for a kernel's memory file, in memory if possible.

    Args: needed_bytes: a booted kernel's. Raises: EngineError without a place.
    """
    problems = {place: _problem(place, needed_bytes) for place in (_SHARED_MEMORY, *_temporary_directories())}
    for place, problem in problems.items():
        if problem is None:
            return place
    listed = ", ".join(f"{place} {problem}" for place, problem in problems.items())
    raise EngineError(
        f"there is no place for the memory of the kernel of virtual time: {listed}",
        hint=f"make room for {needed_bytes >> 20} MB, or name a directory in TMPDIR where programs may be executed",
    )


def not_running(output_tail: str) -> EngineError:
    """The error for a kernel's end during its boot, by its last words."""
    if re.search("ptrace|sysemu", output_tail):
        return EngineError(f"virtual time takes ptrace, which does not work here ({output_tail})", hint=_PTRACE_HINT)
    return EngineError(f"the kernel of virtual time does not run: {output_tail}", hint=NEEDS)


def _temporary_directories() -> list[str]:
    try:
        return [tempfile.gettempdir()]
    except OSError:
        return []


def _problem(place: str, needed_bytes: int) -> str | None:
    """Why a kernel's memory cannot be a file there, if so."""
    if not os.access(place, os.W_OK | os.X_OK):
        return "cannot be written"
    about = os.statvfs(place)
    if about.f_flag & os.ST_NOEXEC:
        return "is mounted noexec"
    free = about.f_bavail * about.f_frsize
    return None if free >= needed_bytes else f"has {free >> 20} MB free"
