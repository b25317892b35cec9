"""What a guest takes of its host: no privilege, but ptrace, /proc and memory; and what is said where one is missing."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT, requires, requires_binary
from virtual import confine
from virtual.conftest import requires_kernel

CELLS = """
import crosswind, os, sys
for transport in ("tcp", "quic"):
    workload = {"kind": "echo", "transport": transport, "messages": 30}
    cell = crosswind.virtual({"delay": "10ms", "loss": "5%"}, workload=workload)
    assert cell.result.valid and len(cell.packets) > 60, cell.result
    print(transport, cell.result.elapsed_ns, cell.samples.hash_rows().sum(), cell.packets.hash_rows().sum())
cell = crosswind.virtual({}, ["sh", "-c", "id -u; touch /crosswind-was-here; unshare -n true && echo unshared"])
print(cell.output["client"], cell.errors["client"])
"""

NOBODY = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--no-new-privs",
    "--bounding-set=-all",
    "--inh-caps=-all",
]
WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", 'umount --lazy /proc && exec "$@"', "sh"]
SMALL = "mount -t tmpfs -o size=1M none /dev/shm && mount -t tmpfs -o size=1M,mode=1777 none $TMPDIR"
WITHOUT_MEMORY = ["unshare", "--mount", "sh", "-c", f'{SMALL} && exec "$@"', "sh"]
ECHO = ["echo", "--messages", "3", "--delay", "10ms"]


@dataclass(frozen=True)
class Everyone:
    """Crosswind in a place that every user can read."""

    place: Path
    python: str

    def run(self, confined: Sequence[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Runs Python under the restrictions that a command makes."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "NO_COLOR": "1",
            "CROSSWIND_KERNELS": str(self.place / "kernels"),
            "CROSSWIND_CELL": str(self.place / "crosswind-cell"),
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

    @property
    def home(self) -> Path:
        """A directory that everybody can write."""
        return self.place / "tmp"


@pytest.fixture
def everyone() -> Iterator[Everyone]:
    """Crosswind for every user. Needs root, to become someone else."""
    kernel, binary = requires_kernel(), requires_binary()
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
        (place / "tmp").mkdir()
        subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
        (place / "tmp").chmod(0o777)
        yield Everyone(place, _python_for_everyone())


def _packages() -> str:
    import polars

    return str(Path(polars.__file__).parents[1])


def _python_for_everyone() -> str:
    """A Python of this version that every user can execute."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for found in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        places = [Path(found), *Path(found).resolve().parents]
        if Path(found).exists() and all(place.stat().st_mode & 0o005 for place in places):
            return found
    pytest.skip(f"there is no {version} that every user can execute")


def test_nobody_in_a_container_gets_the_same_as_root(everyone: Everyone) -> None:
    # No user, no capability, none to be gained; nothing that namespaces or devices would take.
    container = [*NOBODY, *everyone.under("container")]
    outputs = []
    for confined in ([], NOBODY, everyone.under("container"), container):
        ran = everyone.run(confined, "-c", CELLS)
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout)
    assert len(set(outputs)) == 1
    assert "Read-only file system" in outputs[0]
    # The filter is the host's. What a program may do in a guest is up to the guest's kernel.
    assert "unshared" in outputs[0]
    # Nothing is left: no process, no file in memory, no directory.
    assert not list(everyone.home.iterdir())


MISSING = {
    "ptrace": ("virtual time takes ptrace, which does not work here", "allow ptrace: in a container"),
    "/proc": ("virtual time takes /proc, and there is none here", "mount -t proc proc /proc"),
    "memory": ("there is no place for the memory of the kernel of virtual time: /dev/shm has 1 MB free, ", "make room"),
}


def without(what: str, everyone: Everyone) -> list[str]:
    """A command that takes something away, and every privilege."""
    taken = {
        "ptrace": everyone.under("no-ptrace"),
        "/proc": WITHOUT_PROC,
        "memory": WITHOUT_MEMORY,
    }
    return [*taken[what], *NOBODY, *everyone.under("container")]


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_named_with_what_to_do(everyone: Everyone, what: str) -> None:
    problem, remedy = MISSING[what]
    confined = without(what, everyone)
    ran = everyone.run(confined, "-m", "crosswind.cli", "run", *ECHO, "--clock", "virtual", "--output", "run")
    assert ran.returncode == 1, ran.stderr
    error, hint = (
        next(line for line in ran.stderr.splitlines() if line.startswith(f"{kind}: ")) for kind in ("error", "hint")
    )
    assert problem in error
    assert remedy in hint
    assert "Traceback" not in ran.stderr
    diagnosed = everyone.run(confined, "-m", "crosswind.cli", "doctor", "--json")
    assert diagnosed.returncode == 1, diagnosed.stderr
    (check,) = [check for check in json.loads(diagnosed.stdout)["checks"] if check["name"] == "virtual time"]
    assert problem in check["detail"]
    assert remedy in check["hint"]


def test_in_a_container_auto_is_virtual_time_and_doctor_says_that_cells_can_run(everyone: Everyone) -> None:
    # Root may do no more than nobody there.
    container = everyone.under("container")
    ran = everyone.run(container, "-m", "crosswind.cli", "run", *ECHO, "--output", "as-root")
    assert ran.returncode == 0, ran.stderr
    assert "virtual" in ran.stdout
    container = [*NOBODY, *container]
    diagnosed = everyone.run(container, "-m", "crosswind.cli", "doctor")
    assert diagnosed.returncode == 0, diagnosed.stderr
    assert "cells can run here in virtual time, and not on the machine's clock" in diagnosed.stdout
    ran = everyone.run(container, "-m", "crosswind.cli", "run", *ECHO, "--output", "run")
    assert ran.returncode == 0, ran.stderr
    assert "virtual" in ran.stdout


def test_without_a_kernel_both_clocks_are_named(everyone: Everyone) -> None:
    shutil.rmtree(everyone.place / "kernels")
    container = [*NOBODY, *everyone.under("container")]
    ran = everyone.run(container, "-m", "crosswind.cli", "run", *ECHO, "--output", "run")
    assert ran.returncode == 1
    assert "error: cells can run neither on the machine's clock (cannot make a user namespace: " in ran.stderr
    assert "nor in virtual time (there is no kernel of virtual time in " in ran.stderr
    assert "hint: for the machine's clock: run with sudo" in ran.stderr
    assert "For virtual time: `make kernel`" in ran.stderr
