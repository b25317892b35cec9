"""The virtual-time kernel: its places and properties (kernel/README.md).

A kernel is a directory with `linux`, the program, and `kernel.json`, its sources. `make kernel` puts its builds into
the user's directory, with a link to the newest; the optional package crosswind-kernel brings its own.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from crosswind.errors import EngineError
from crosswind.files.cache import cache_directory, read_cached, say_damaged
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN

PACKAGE = "crosswind-kernel"
"""The package with the kernel (`make kernel-wheel`)."""
WHEEL = "crosswind_kernel-*.whl"
"""Its file (packaging/kernel/wheel.py)."""

_ANEW = "`make kernel` or `crosswind kernel install` makes it anew"
_OTHER_NAMES = {"HSTCP": "highspeed"}


@dataclass(frozen=True)
class Kernel:
    """One built kernel.

    Attributes: series: Linux's, 6.12. release: its own name. source: its package and version. digest: over all
        inputs. origin: its directory or package. congestion_controls: None if unknown. sha256: its program's, if known.
    """

    program: Path
    series: str
    release: str
    source: str
    digest: str
    origin: str
    congestion_controls: frozenset[str] | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The name for reproducing a result: series and digest."""
        return f"{self.series}-{self.digest}"


def kernels_directory() -> Path:
    """Where `make kernel` puts them: $CROSSWIND_KERNELS, else the user's cache."""
    asked = os.environ.get("CROSSWIND_KERNELS")
    if asked:
        return Path(asked)
    return cache_directory() / "kernels"


def installed_kernel() -> Kernel | None:
    """The user's newest build, else a package's, if any."""
    for place, origin in _places():
        kernel = _read(place, origin)
        if kernel is not None and _is_as_built(kernel, place):
            return kernel
    return None


def find_kernel() -> Kernel:
    """The installed kernel. Raises: EngineError, with a remedy, without one."""
    kernel = installed_kernel()
    if kernel is None:
        raise EngineError(f"there is no kernel of virtual time in {kernels_directory()}", hint=build_hint())
    return kernel


def build_hint() -> str:
    """The remedy for a missing kernel."""
    return (
        f"`crosswind kernel install {WHEEL}` brings it: `make kernel-wheel` in Crosswind's sources makes that wheel, "
        "for any x86-64 machine; `make kernel` builds the kernel here; CROSSWIND_KERNELS names a directory that has it"
    )


def _places() -> Iterator[tuple[Path, str]]:
    """Where there may be a kernel, and the name of its origin."""
    in_cache = kernels_directory()
    # The link names the newest build; older ones stand beside it. Without a link the newest is taken.
    places = sorted(_entries(in_cache), key=lambda place: (place.is_symlink(), _built_at(place)), reverse=True)
    yield from ((place, str(in_cache)) for place in (in_cache, *places))
    package = find_spec(PACKAGE.replace("-", "_"))
    for location in (package.submodule_search_locations or ()) if package else ():
        yield from ((place, f"the package {PACKAGE}") for place in _entries(Path(location) / "kernels"))


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _built_at(place: Path) -> float:
    try:
        return (place / "kernel.json").stat().st_mtime
    except OSError:
        return 0.0


def _read(place: Path, origin: str) -> Kernel | None:
    program = place.resolve() / "linux"
    try:
        facts = json.loads(read_cached(place / "kernel.json"))
        named = {name: facts[name] for name in ("series", "release", "source", "digest")}
        built = facts.get("sha256")
        if not all(isinstance(value, str) for value in named.values()) or not isinstance(built, str | None):
            raise ValueError
        controls = _congestion_controls(place / ".config")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, *NOT_WHAT_WAS_WRITTEN):
        say_damaged(place.resolve(), "what describes the kernel is damaged", _ANEW)
        return None
    kernel = Kernel(program, **named, origin=origin, congestion_controls=controls, sha256=built)
    return kernel if os.access(program, os.X_OK) else None


def _is_as_built(kernel: Kernel, place: Path) -> bool:
    """Whether its program still has its described digest."""
    if kernel.sha256 is None:
        return True
    try:
        found = kernel.program.stat()
        is_same = _digest(kernel.program, found.st_mtime_ns, found.st_size) == kernel.sha256
    except OSError:
        is_same = False
    if not is_same:
        say_damaged(place.resolve(), "the kernel has changed since it was built", _ANEW)
    return is_same


@cache
def _digest(program: Path, _changed_ns: int, _size_bytes: int) -> str:
    """Raises: OSError."""
    return hashlib.sha256(read_cached(program)).hexdigest()


def _congestion_controls(configuration: Path) -> frozenset[str] | None:
    """A kernel's built-in congestion controls; None without its configuration."""
    try:
        text = read_cached(configuration).decode()
    except OSError:
        return None
    options = re.findall(r"^CONFIG_TCP_CONG_([A-Z]+)=y$", text, re.MULTILINE)
    # Reno is part of TCP itself. Names equal the options', but for one.
    names = {"reno", *(_OTHER_NAMES.get(option, option.lower()) for option in options)}
    return frozenset(names - {"advanced"})
