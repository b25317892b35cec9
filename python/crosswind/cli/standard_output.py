"""Standard output and standard error that somebody closed, that nobody reads any more, or that have no room.

A command goes on to its end without them: what it does and its exit status are those it would have with a reader.
"""

import codecs
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NOWHERE_TO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Stream(io.FileIO):
    """A standard stream. What nobody reads any more, or no longer has room, goes nowhere.

    Raises: OSError once, when standard output has no room: half of a result is no result.
    """

    is_lost = False

    def write(self, data: "ReadableBuffer", /) -> int:
        size_bytes = memoryview(data).nbytes
        # click writes nothing to see what a stream takes, and a full one refuses even that.
        if size_bytes and not self.is_lost:
            try:
                return super().write(data)
            except OSError as error:
                self.is_lost = True
                if self.fileno() == 1 and not isinstance(error, BrokenPipeError):
                    raise
        return size_bytes


def open_standard_files() -> None:
    """Makes sure that there are standard files, and that they take every character, whoever reads them.

    For each that is closed the null device is opened: the next file opened would take its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _opened(1, sys.stdout), _opened(2, sys.stderr)


def _opened(number: int, stream: TextIO | None) -> TextIO:
    """A standard stream in the place of Python's, which is None where Python found it closed."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # ASCII is what Python takes for a locale that says nothing. What an encoding does not have, as bytes of a path
    # that are no UTF-8, is written as an escape.
    raw = _Stream(number, "wb", closefd=False)
    is_unbuffered = getattr(stream, "write_through", False)
    return io.TextIOWrapper(
        raw if is_unbuffered else io.BufferedWriter(raw),
        encoding="utf-8" if codecs.lookup(encoding).name == "ascii" else encoding,
        errors="backslashreplace",
        line_buffering=number == 2 or os.isatty(number),
        write_through=is_unbuffered,
    )


def is_read(stream: TextIO) -> bool:
    """Whether all that was written to a standard stream so far has found a reader, or room."""
    buffer = getattr(stream, "buffer", None)
    return not getattr(getattr(buffer, "raw", buffer), "is_lost", False)


def why_output_fails(error: Exception) -> str | None:
    """Why standard output cannot be written, where that is what an error says; None for every other error."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _NOWHERE_TO_WRITE:
        return error.strerror
    return None
