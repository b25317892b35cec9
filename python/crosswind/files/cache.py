"""The user's cache, for files Crosswind can make again.

A cache is not trusted. Its files have their content's digest, or are checked when read. An unreadable or changed one is
made anew, with a note.
"""

import errno
import hashlib
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from crosswind.files.inside import create_inside
from crosswind.files.regular_files import open_regular
from crosswind.text.visible import visible

_MOST_BYTES = 64 << 20


def cache_directory() -> Path:
    """`crosswind` in $XDG_CACHE_HOME, else in ~/.cache. It may not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "crosswind"


def read_kept(path: Path) -> bytes | None:
    """Content written by `keep`; None when missing, or changed, with a note."""
    try:
        digest, _, content = read_cached(path).partition(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        say_damaged(path, error.strerror or str(error))
        return None
    if digest == _digest(content):
        return content
    say_damaged(path, "it has changed since it was written")
    return None


def read_cached(path: Path) -> bytes:
    """Reads a file in the cache. Raises: OSError, also for a very large file, or no regular one."""
    with open_regular(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def keep(path: Path, content: bytes) -> None:
    """Stores content for `read_kept`; ignores write errors."""
    with suppress(OSError):
        replace_file(path, _digest(content) + b"\n" + content)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file whole, replacing any old one. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(create_inside(part.parent, part.name), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


@cache
def say_damaged(path: Path, why: str, then: str = "it is made anew") -> None:
    """Reports a useless cache file once, in a line on standard error. Args: then: the consequence."""
    with suppress(OSError, ValueError):  # Nobody may read it.
        print(f"note: {visible(str(path))}: {why}; {then}", file=sys.stderr, flush=True)


def _digest(content: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(content).hexdigest().encode()
