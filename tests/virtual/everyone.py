"""Crosswind in a place that every user can read, and programs that run there with less than the tests may."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT, requires, requires_binary
from crosswind.cell.kernels import Kernel
from virtual import confine

NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--no-new-privs",
    "--bounding-set=-all",
    "--inh-caps=-all",
]


@dataclass(frozen=True)
class Everyone:
    """Crosswind in a place that every user can read. Attributes: home: a directory that everybody can write."""

    place: Path
    python: str
    home: Path
    kernels: Path
    cell: Path

    def run(self, confined: Sequence[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Runs Python under the restrictions that a command makes."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "NO_COLOR": "1",
            "CROSSWIND_KERNELS": str(self.kernels),
            "CROSSWIND_CELL": str(self.cell),
            "PYTHONPATH": f"{self.place / 'python'}:{_packages()}",
        }
        return subprocess.run(
            [*confined, self.python, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
        )

    def under(self, filtered: str) -> list[str]:
        """A command that runs another one under a seccomp filter."""
        return [self.python, str(self.place / "confine.py"), filtered]


@contextmanager
def for_everyone(kernel: Kernel) -> Iterator[Everyone]:
    """Crosswind for every user. Needs root, to become someone else."""
    binary = requires_binary()
    if os.geteuid() != 0:
        pytest.skip("needs root, to become someone else")
    requires("setpriv")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        shutil.copytree(kernel.program.parent, place / "kernels" / kernel.name)
        (place / "kernels" / kernel.series).symlink_to(kernel.name)
        shutil.copy(binary, place / "crosswind-cell")
        shutil.copy(confine.__file__, place)
        shutil.copytree(ROOT / "python", place / "python", ignore=shutil.ignore_patterns("__pycache__"))
        python = _python_for_everyone()
        # Who may not write there would compile it anew each time.
        subprocess.run([python, "-m", "compileall", "-q", str(place / "python")], check=True)
        subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
        yield Everyone(place, python, place / "tmp", place / "kernels", place / "crosswind-cell")


@contextmanager
def at_home(shared: Everyone) -> Iterator[Everyone]:
    """The same with a home of its own, empty."""
    with tempfile.TemporaryDirectory(dir=shared.place) as name:
        Path(name).chmod(0o777)
        yield replace(shared, home=Path(name))


def _packages() -> str:
    return str(Path(pl.__file__).parents[1])


def _python_for_everyone() -> str:
    """A Python of this version that every user can execute."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        places = [Path(found), *Path(found).resolve().parents]
        if Path(found).exists() and all(place.stat().st_mode & 0o005 for place in places):
            return found
    pytest.skip(f"there is no {version} that every user can execute")
