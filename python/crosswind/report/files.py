"""Files that are whole or absent."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosswind.errors import DiskError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write a file: beside its place under a `.part` name, moved there when the block ends well.

    Raises: DiskError when the file cannot be written; nothing is left behind then, and what was there stays.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.replace(path)
    except OSError as error:
        raise DiskError(
            f"cannot write {path}: {error.strerror or error}", hint="make room or choose another place for the report"
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole. Raises: DiskError."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")
