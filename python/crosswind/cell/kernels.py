"""The kernels of virtual time: where they are, and what each is (kernel/README.md).

A kernel is a directory with `linux`, the program, and `kernel.json`, which says what it was built from.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from crosswind.errors import EngineError

BUILD_HINT = "`make kernel` in Crosswind's sources builds it; CROSSWIND_KERNELS names another directory"


@dataclass(frozen=True)
class Kernel:
    """One built kernel.

    Attributes: series: as a study names it, 6.12. release: as it calls itself. source: package and version it was built
        from. digest: of all that went into it.
    """

    program: Path
    series: str
    release: str
    source: str
    digest: str

    @property
    def name(self) -> str:
        """What a result is reproduced with: series and digest."""
        return f"{self.series}-{self.digest}"


def kernels_directory() -> Path:
    """Where `make kernel` puts them: $CROSSWIND_KERNELS, else the user's cache."""
    asked = os.environ.get("CROSSWIND_KERNELS")
    if asked:
        return Path(asked)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "crosswind" / "kernels"


def installed_kernels() -> list[Kernel]:
    """The newest build of each series, the newest series first."""
    directory = kernels_directory()
    try:
        places = [place for place in directory.iterdir() if place.is_symlink()]
    except OSError:
        return []
    kernels = [kernel for place in places if (kernel := _read(place)) is not None]
    return sorted(kernels, key=lambda kernel: _numbers(kernel.series), reverse=True)


def find_kernel(series: str | None = None) -> Kernel:
    """A kernel of one series, or the newest. Raises: EngineError, with what to do, when there is none."""
    kernels = installed_kernels()
    for kernel in kernels:
        if series in (None, kernel.series):
            return kernel
    wanted = "kernel of virtual time" if series is None else f"kernel {series} of virtual time"
    there = f", which has {', '.join(kernel.series for kernel in kernels)}" if kernels else ""
    hint = BUILD_HINT if series is None else BUILD_HINT.replace("make kernel", f"make kernel KERNEL={series}")
    raise EngineError(f"there is no {wanted} in {kernels_directory()}{there}", hint=hint)


def _read(place: Path) -> Kernel | None:
    program = place.resolve() / "linux"
    try:
        facts = json.loads((place / "kernel.json").read_text(encoding="utf-8"))
        kernel = Kernel(program, facts["series"], facts["release"], facts["source"], facts["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kernel if os.access(program, os.X_OK) else None


def _numbers(series: str) -> tuple[int, ...]:
    return tuple(int(part) for part in series.split(".") if part.isdigit())
