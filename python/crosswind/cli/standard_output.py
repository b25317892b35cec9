"""Standard streams without a reader: closed, abandoned or full.

A command goes on to its end without them, with the same effects and exit status.
"""

import codecs
import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Stream(io.FileIO):
    """A standard stream. It drops output without a reader or room.

    Raises: OSError once, for a full standard output: half a result is no result.
    """

    is_lost = False

    def write(self, data: "ReadableBuffer", /) -> int:
        size_bytes = memoryview(data).nbytes
        # click probes a stream with an empty write, and a full one refuses even that.
        if size_bytes and not self.is_lost:
            try:
                return super().write(data)
            except OSError as error:
                self.is_lost = True
                if self.fileno() == 1 and not isinstance(error, BrokenPipeError):
                    raise
        return size_bytes


def open_standard_files() -> None:
    """Opens missing standard files, and makes them accept every character.

    A closed one becomes the null device: otherwise the next opened file would take its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _opened(1, sys.stdout), _opened(2, sys.stderr)


def _opened(number: int, stream: TextIO | None) -> TextIO:
    """A standard stream instead of Python's, or of None for a closed one."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # Python uses ASCII for an empty locale. Characters outside the encoding, as path bytes outside UTF-8, become
    # escapes.
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
    """Whether all output so far found a reader, or room."""
    buffer = getattr(stream, "buffer", None)
    return not getattr(getattr(buffer, "raw", buffer), "is_lost", False)


def why_output_fails(error: Exception) -> str | None:
    """The reason for unwritable standard output; None for every other error."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _UNWRITABLE:
        return error.strerror
    return None
