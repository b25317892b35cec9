"""Standard output that somebody closed, that nobody reads any more, or that has no room."""

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NOWHERE_TO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def open_standard_files() -> None:
    """Makes sure that there are standard files, and that they take every character.

    For each that is closed the null device is opened: the next file opened would take its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python has none where it found one closed.
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # ASCII is what Python takes for a locale that says nothing. What an encoding does not have, as bytes of a
            # path that are no UTF-8, is written as an escape.
            is_ascii = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding="utf-8" if is_ascii else None, errors="backslashreplace")


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Goes on when nobody reads standard output any more; what would still be printed is not."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        # rich raises SystemExit for a broken pipe.
        discard_output()


def discard_output() -> None:
    """Has what is still printed go nowhere. Python would complain at its exit of what it could not write."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def why_output_fails(error: Exception) -> str | None:
    """Why standard output cannot be written, where that is what an error says; None for every other error."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _NOWHERE_TO_WRITE:
        return error.strerror
    return None
