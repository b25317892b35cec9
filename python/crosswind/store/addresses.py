"""A run's place: a directory, or an address on an object store, as `s3://bucket/studies/latency`.

A run on an object store has a copy in the user's cache. Readers and writers get the copy's path and derive the address
from it.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from crosswind.errors import UsageError
from crosswind.files.cache import cache_directory

_SCHEME = re.compile(r"s3:/{1,2}", re.IGNORECASE)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_PART = re.compile(r"[A-Za-z0-9_=+~-][A-Za-z0-9._=+~-]{0,199}")
_COPY = ".run"
"""A copy's directory, below one for each part of its address: no part begins with a dot."""


@dataclass(frozen=True)
class Address:
    """A place on an object store. Attributes: prefix: of all its objects, without slashes at its ends."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    @property
    def copy(self) -> Path:
        """The copy's directory on this machine; it may not exist."""
        return copies().joinpath(self.bucket, *filter(None, self.prefix.split("/")), _COPY)


def copies() -> Path:
    """Where copies are."""
    return cache_directory() / "objects"


def place_of(text: str | Path) -> Path:
    """The directory named by a user, or the copy for an address. Raises: UsageError for a malformed one."""
    words = str(text)
    scheme = _SCHEME.match(words)
    if scheme is None:
        return Path(text)
    bucket, _, prefix = words[scheme.end() :].partition("/")
    # A possible secret, as user:password@host, is not repeated.
    if not _BUCKET.fullmatch(bucket):
        raise UsageError("s3:// is not followed by the name of a bucket", hint="as s3://bucket/studies/latency")
    parts = prefix.strip("/").split("/") if prefix.strip("/") else []
    for part in parts:
        if not _PART.fullmatch(part):
            raise UsageError(
                f"s3://{bucket}/...: the part {part[:40]!r} cannot be used",
                hint="letters, digits and . _ = + ~ - are possible, and no dot at the beginning",
            )
    return Address(bucket, "/".join(parts)).copy


def address_of(place: Path) -> Address | None:
    """The address copied to a directory; None for any other directory."""
    if place.name != _COPY or not place.is_relative_to(copies()):
        return None
    bucket, *parts = place.relative_to(copies()).parts[:-1]
    return Address(bucket, "/".join(parts))


def shown(place: Path) -> str:
    """A directory, or a file of a run, as its user knows it: by its address where it has one."""
    for above in (place, *place.parents):
        if above.name == _COPY and (address := address_of(above)) is not None:
            return "/".join([str(address), *place.relative_to(above).parts])
    return str(place)
