"""What the machine's processes are seen to do, for tests of what is left behind."""

import contextlib
from pathlib import Path


def descendants_of(process: int) -> list[int]:
    """Every process below one, nearest first, as far as they can be seen."""
    found: list[int] = []
    waiting = [process]
    while waiting:
        new = _children(waiting.pop(0))
        found += new
        waiting += new
    return found


def is_running(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _children(parent: int) -> list[int]:
    """The children of a process; none of one that has ended meanwhile."""
    with contextlib.suppress(OSError, ValueError):
        files = Path(f"/proc/{parent}/task").glob("*/children")
        return [int(child) for file in files for child in file.read_text(encoding="ascii").split()]
    return []
