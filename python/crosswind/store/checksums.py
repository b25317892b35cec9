"""Checksums of what a run keeps: a file that changed after it was written is never read as if it had not.

    manifest.json    has its own checksum, and that of the plan
    result.json      has its own checksum, and that of every file beside it

A file is checked before it is parsed: no parser of tables is made for what a disk can do to them.
"""

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from crosswind.errors import StoreError
from crosswind.regular_files import open_regular, read_regular
from crosswind.store.addresses import shown

CHANGED = "has changed since it was written"
MISSING = "is missing"

_SEAL = re.compile(rb',\n "checksum": "sha256:([0-9a-f]{64})"\n}\n')
_SEAL_BYTES = len(b',\n "checksum": "sha256:"\n}\n') + 64


@dataclass(frozen=True)
class Checksum:
    """What a file held when it was written. Attributes: size_bytes: how much. sha256: in hexadecimal digits."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """That of a file as it is now. Raises: OSError."""
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(os.fstat(file.fileno()).st_size, digest)

    @classmethod
    def of_bytes(cls, content: bytes) -> Self:
        """That of a file with these contents."""
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {"bytes": self.size_bytes, "sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The checksum that was stored. Raises: KeyError, TypeError, ValueError when it is none."""
        return cls(int(data["bytes"]), str(data["sha256"]))


class DamagedFileError(StoreError):
    """A file of a run is not what was written. Attributes: path: which. reason: why, as it follows its name."""

    def __init__(self, path: Path, reason: str, *, hint: str) -> None:
        super().__init__(f"{shown(path)} {reason}", hint=hint)
        self.path = path
        self.reason = reason


def checked_bytes(path: Path, checksum: Checksum) -> bytes:
    """What a file of a repetition holds. Raises: DamagedFileError."""
    with open_checked(path, checksum) as file:
        return file.read()


def open_checked(path: Path, checksum: Checksum) -> IO[bytes]:
    """A file of a repetition, from its beginning; one of a usual size is read once. Raises: DamagedFileError."""
    if checksum.size_bytes > _LARGE_BYTES:
        check_file(path, checksum)
        with _errors_of(path):
            return open_regular(path)
    with _errors_of(path):
        if path.stat().st_size != checksum.size_bytes:
            raise damaged_file(path, CHANGED)
        content = read_regular(path)
    if Checksum.of_bytes(content) != checksum:
        raise damaged_file(path, CHANGED)
    return io.BytesIO(content)


def check_file(path: Path, checksum: Checksum) -> None:
    """Reads a file of a repetition in pieces, of which it keeps none. Raises: DamagedFileError."""
    with _errors_of(path):
        if path.stat().st_size != checksum.size_bytes or Checksum.of(path) != checksum:
            raise damaged_file(path, CHANGED)


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Raises: DamagedFileError where the system cannot read a file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise damaged_file(path, MISSING) from None
    except OSError as error:
        raise damaged_file(path, f"cannot be read: {error.strerror or error}") from None


_LARGE_BYTES = 64 << 20
"""A larger file, as a capture, is read in pieces."""


def sealed(data: Mapping[str, Any]) -> bytes:
    """An object as JSON, indented for people, with the checksum of all before it as its last key."""
    body = json_bytes(data, indent=1).removesuffix(b"\n}")
    return body + f',\n "checksum": "sha256:{hashlib.sha256(body).hexdigest()}"\n}}\n'.encode()


def json_bytes(data: Mapping[str, Any], *, indent: int | None = None) -> bytes:
    """An object as JSON, compact or indented. Bytes of a path that are no UTF-8 are written as escapes."""
    separators = None if indent else (",", ":")
    return json.dumps(data, indent=indent, separators=separators, ensure_ascii=False).encode(errors="backslashreplace")


def unsealed(content: bytes) -> Any:
    """The object that `sealed` wrote, with its checksum. Raises: ValueError where it has changed since."""
    seal = _SEAL.fullmatch(content, max(0, len(content) - _SEAL_BYTES))
    if seal is None or hashlib.sha256(content[: seal.start()]).hexdigest().encode() != seal[1]:
        raise ValueError(CHANGED)
    return json.loads(content)


def earlier_schema(content: bytes) -> object:
    """The schema of an object that was written without a checksum; None of everything else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data.get("schema") if isinstance(data, dict) and "checksum" not in data else None


def damaged_file(path: Path, reason: str) -> DamagedFileError:
    """The error of a file of a repetition that is not what was written."""
    return DamagedFileError(
        path, reason, hint=f"`crosswind run --resume {shown(path.parents[2])}` runs that repetition again"
    )
