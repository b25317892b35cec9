"""Installs the virtual-time kernel from the wheel crosswind-kernel, without the package."""

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import urllib.request
import zipfile
from pathlib import Path

from crosswind.cell.kernels import WHEEL, kernels_directory
from crosswind.errors import DiskError, UsageError
from crosswind.files.cache import read_cached, say_damaged
from crosswind.files.inside import remove_path
from crosswind.files.temporary import temporary_directory

WHEELS = "CROSSWIND_WHEELS"
"""The environment variable with the directory of wheels."""

_MEMBER = re.compile(r"crosswind_kernel/kernels/(?P<series>\d+\.\d+)/(?P<file>linux|kernel\.json|\.config)")
_DIGEST = re.compile(r"[0-9a-f]{12}")
_MOST_BYTES = 200 << 20
_DOWNLOAD_TIMEOUT_S = 60


def install_kernel(source: str) -> Path:
    """Unpacks a wheel's kernel. Args: source: the wheel, its directory, or its address.

    Returns: its place. Raises: UsageError without such a wheel, or for a changed one. DiskError.
    """
    with temporary_directory() as scratch:
        wheel = _fetched(source, scratch) if source.startswith("https://") else _found(Path(source))
        try:
            with zipfile.ZipFile(wheel) as archive:
                return _put(*_kernel(archive, wheel))
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise UsageError(f"{wheel.name} is damaged: {error}", hint="copy or download it again") from None
        except OSError as error:
            raise DiskError(
                f"cannot install a kernel from {wheel}: {error.strerror or error}", hint="is there room for 50 MB?"
            ) from None


def _found(place: Path) -> Path:
    wheels = sorted(place.glob(WHEEL)) if place.is_dir() else [place] if place.is_file() else []
    if not wheels:
        what = f"there is no {WHEEL} in {place}" if place.is_dir() else f"there is no file {place}"
        raise UsageError(what, hint="`make kernel-wheel` in Crosswind's sources makes that wheel, in dist/kernel/")
    return wheels[-1]


def _fetched(address: str, scratch: Path) -> Path:
    wheel = scratch / address.rpartition("/")[2]
    if not wheel.match(WHEEL):
        raise UsageError(f"{address} is not the address of a {WHEEL}", hint="give that of the file itself")
    try:
        with urllib.request.urlopen(address, timeout=_DOWNLOAD_TIMEOUT_S) as answer:
            wheel.write_bytes(_at_most(answer.read(_MOST_BYTES + 1)))
    except OSError as error:
        raise UsageError(f"cannot fetch {address}: {error}", hint="download it, and give the file") from None
    return wheel


def _kernel(archive: zipfile.ZipFile, wheel: Path) -> tuple[str, dict[str, bytes]]:
    """The kernel's series and files, checked against the wheel's list."""
    listed = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
    sums = {name: digest for name, digest, _ in csv.reader(io.StringIO(archive.read(listed).decode()))}
    series = ""
    files: dict[str, bytes] = {}
    for name in archive.namelist():
        if match := _MEMBER.fullmatch(name):
            with archive.open(name) as member:
                content = _at_most(member.read(_MOST_BYTES + 1))
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            if sums.get(name) != f"sha256={digest}":
                raise ValueError(f"{name} is not what its list of files says")
            series, files[match["file"]] = match["series"], content
    if not files:
        raise UsageError(f"{wheel.name} has no kernel", hint=f"it should be {WHEEL}")
    return series, files


def _put(series: str, files: dict[str, bytes]) -> Path:
    """A kernel in its own directory, whole or not at all, and the link to it."""
    digest = str(json.loads(files["kernel.json"])["digest"])
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"a kernel's digest is {digest[:20]!r}")
    kernels = kernels_directory()
    kernels.mkdir(parents=True, exist_ok=True)
    place, part = kernels / f"{series}-{digest}", kernels / f".{series}-{digest}.{os.getpid()}.part"
    if os.path.lexists(place) and not all(_has(place / name, content) for name, content in files.items()):
        say_damaged(place, "it is not what was installed")
        remove_path(place)
    if not place.exists():
        try:
            part.mkdir()
            for name, content in files.items():
                (part / name).write_bytes(content)
            (part / "linux").chmod(0o755)
            part.rename(place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    link = kernels / f".{series}.{os.getpid()}.part"
    link.symlink_to(place.name)
    link.rename(kernels / series)
    return place


def _has(path: Path, content: bytes) -> bool:
    """Whether a file holds something."""
    try:
        return read_cached(path) == content
    except OSError:
        return False


def _at_most(content: bytes) -> bytes:
    if len(content) > _MOST_BYTES:
        raise ValueError(f"a file has more than {_MOST_BYTES >> 20} MB")
    return content
