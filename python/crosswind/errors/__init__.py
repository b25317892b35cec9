"""All errors shown to users.

    CrosswindError            the failure and its object; `hint`: the remedy; `exit_code`: the process's
    ├── UsageError      (2)   the command line is wrong
    ├── StudyError      (2)   a study file is wrong: names the file, the key or line, the value
    ├── StoreError      (2)   a run directory is missing, foreign, locked or from another schema
    ├── EngineError     (1)   a cell process could not be started, or broke its protocol
    └── DiskError       (1)   the disk refused a write

Lost packets, timeouts and refused connections are data, never exceptions.
"""

import difflib
from collections.abc import Iterable


class CrosswindError(Exception):
    """A failure with one clear message and a hint. Args: message: the failure and its object. hint: the remedy."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CrosswindError):
    """The command line is wrong."""

    exit_code = 2


class StudyError(CrosswindError):
    """A study is wrong: the message names the file, the key or line, and the value."""

    exit_code = 2


class StoreError(CrosswindError):
    """A run directory is missing, foreign, locked or written by another schema."""

    exit_code = 2


class EngineError(CrosswindError):
    """A cell process could not be started, or did not keep to its protocol."""


class DiskError(CrosswindError):
    """The disk refused a write."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the closest known word, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(word.lower()[:60], names, n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else "known: " + ", ".join(names)
