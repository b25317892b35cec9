"""Checksums for a run's files: a changed file is never read as if unchanged.

    manifest.json    has its own checksum, and the plan's
    result.json      has its own checksum, and one for every file beside it

A file is checked before it is parsed: parsers for tables do not withstand disk errors.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from typing import Any, Self

from crosswind.errors import StoreError
from crosswind.store.addresses import shown
from crosswind.store.run_file import RunFile

CHANGED = "has changed since it was written"
MISSING = "is missing"

_SEAL = re.compile(rb',\n "checksum": "sha256:([0-9a-f]{64})"\n}\n')
_SEAL_BYTES = len(b',\n "checksum": "sha256:"\n}\n') + 64


@dataclass(frozen=True)
class Checksum:
    """A file's content when written. Attributes: size_bytes. sha256: in hexadecimal digits."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, file: RunFile) -> Self:
        """A file's current checksum. Raises: OSError."""
        with file.open() as opened:
            return cls.of_open(opened)

    @classmethod
    def of_open(cls, opened: BufferedReader) -> Self:
        """An open file's checksum, read from its beginning. Raises: OSError."""
        opened.seek(0)
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return cls(os.fstat(opened.fileno()).st_size, digest)

    @classmethod
    def of_bytes(cls, content: bytes) -> Self:
        """The checksum for these contents."""
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {"bytes": self.size_bytes, "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError, TypeError, ValueError when malformed."""
        return cls(int(data["bytes"]), str(data["sha256"]))


class DamagedFileError(StoreError):
    """A run's file has changed. Attributes: file. reason: why, as it follows the file's name."""

    def __init__(self, file: RunFile, reason: str, *, hint: str) -> None:
        super().__init__(f"{file} {reason}", hint=hint)
        self.file = file
        self.reason = reason


def checked_bytes(file: RunFile, checksum: Checksum) -> bytes:
    """A repetition's file. Raises: DamagedFileError."""
    with _errors_of(file), file.open() as opened:
        if os.fstat(opened.fileno()).st_size == checksum.size_bytes:
            content = opened.read()
            if Checksum.of_bytes(content) == checksum:
                return content
    raise damaged_file(file, CHANGED)


@contextmanager
def open_checked(file: RunFile, checksum: Checksum) -> Iterator[BufferedReader]:
    """A repetition's file, checked in pieces, at its beginning. Raises: DamagedFileError."""
    with _errors_of(file), file.open() as opened:
        if os.fstat(opened.fileno()).st_size != checksum.size_bytes or Checksum.of_open(opened) != checksum:
            raise damaged_file(file, CHANGED)
        opened.seek(0)
        yield opened


def check_file(file: RunFile, checksum: Checksum) -> None:
    """Checks a repetition's file in constant memory. Raises: DamagedFileError."""
    with open_checked(file, checksum):
        pass


@contextmanager
def _errors_of(file: RunFile) -> Iterator[None]:
    """Raises: DamagedFileError where the system cannot read a file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise damaged_file(file, MISSING) from None
    except OSError as error:
        raise damaged_file(file, f"cannot be read: {error.strerror or error}") from None


def sealed(data: Mapping[str, Any]) -> bytes:
    """An object as JSON, indented for people, with the checksum of all before it as its last key."""
    body = json_bytes(data, indent=1).removesuffix(b"\n}")
    return body + f',\n "checksum": "sha256:{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def json_bytes(data: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """An object as JSON, compact or indented. Path bytes outside UTF-8 become escapes."""
    separators = None if indent else (",", ":")
    return json.dumps(data, indent=indent, separators=separators, ensure_ascii=False).encode(errors="backslashreplace")


def unsealed(content: bytes) -> Any:
    """Reverses `sealed`. Raises: ValueError where the content has changed."""
    seal = _SEAL.fullmatch(content, max(0, len(content) - _SEAL_BYTES))
    if seal is None or hashlib.sha256(content[: seal.start()]).hexdigest().encode() != seal[1]:
        raise ValueError(CHANGED)
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def unsealed_schema(content: bytes) -> object:
    """The schema in an object without a checksum; None for everything else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data.get("schema") if isinstance(data, dict) and "checksum" not in data else None


def damaged_file(file: RunFile, reason: str) -> DamagedFileError:
    """The error for a repetition's changed file."""
    return DamagedFileError(file, reason, hint=f"`crosswind run --resume {shown(file.run)}` runs that repetition again")
