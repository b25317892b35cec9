"""Runs in virtual time that cannot be: one sentence says why, one says what to do, and nothing is left behind."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import ROOT, requires, requires_binary
from virtual.conftest import requires_kernel
from virtual.everyone import NOBODY, Everyone

CROSSWIND = ["-m", "crosswind"]
ECHO = [*CROSSWIND, "run", "echo", "--messages", "3", "--repetitions", "1", "--delay", "10ms", "--clock", "virtual"]


def run(*arguments: str, within: tuple[str, ...] = (), **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs Crosswind as a user does."""
    requires_kernel()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NO_COLOR": "1", **variables}
    return subprocess.run(
        [*within, sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def assert_refused(ran: "subprocess.CompletedProcess[str]", status: int, error: str, hint: str) -> None:
    assert ran.returncode == status, ran.stderr
    said = {kind: text for kind, _, text in (line.partition(": ") for line in ran.stderr.splitlines())}
    assert error in said["error"]
    assert hint in said["hint"]
    assert "Traceback" not in ran.stderr


def test_no_kernel_at_all(tmp_path: Path) -> None:
    ran = run(*ECHO, "--output", str(tmp_path / "run"), CROSSWIND_KERNELS=str(tmp_path))
    assert_refused(ran, 1, f"there is no kernel of virtual time in {tmp_path}", "`make kernel`")
    assert not (tmp_path / "run").exists()


def test_a_disk_without_space(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    script = f'mount -t tmpfs -o size=300k none {tmp_path} && exec "$@"'
    small = (requires("unshare"), "--mount", "sh", "-c", script, "sh")
    many = [*CROSSWIND, "run", "echo", "--messages", "5000", "--repetitions", "1", "--clock", "virtual", "--packets"]
    ran = run(*many, "--output", str(tmp_path / "run"), within=small)
    assert_refused(ran, 1, "No space left on device", "free some space")


def test_a_directory_that_nobody_may_write(everyone: Everyone) -> None:
    ran = everyone.run(NOBODY, *ECHO, "--output", "/usr/crosswind-run")
    assert_refused(ran, 1, "cannot write /usr/crosswind-run: Permission denied", "--output DIR")


def test_a_crosswind_cell_that_the_user_may_not_read(everyone: Everyone) -> None:
    cell = Path(shutil.copy(everyone.cell, everyone.home))
    cell.chmod(0o711)
    ran = replace(everyone, cell=cell).run(NOBODY, *ECHO, "--output", "run")
    assert_refused(ran, 1, "crosswind-cell cannot be read", "chmod a+r ")


def test_a_crosswind_cell_in_a_directory_that_a_guest_has_of_its_own() -> None:
    place = Path("/dev/shm") / f"crosswind-{os.getpid()}"
    place.mkdir()
    try:
        shutil.copy(requires_binary(), place)
        said = run(*CROSSWIND, "doctor", "--json", CROSSWIND_CELL=str(place / "crosswind-cell"))
        (check,) = [check for check in json.loads(said.stdout)["checks"] if check["name"] == "virtual time"]
        assert check["ok"], check
        ran = run(*ECHO, "--output", str(place / "run"), CROSSWIND_CELL=str(place / "crosswind-cell"))
        assert ran.returncode == 0, ran.stderr
    finally:
        shutil.rmtree(place)


PROGRAM = """
import crosswind, sys
from crosswind.errors import CrosswindError
try:
    crosswind.virtual({}, sys.argv[1:])
except CrosswindError as error:
    sys.exit(f"error: {error.message}\\nhint: {error.hint}")
"""


def test_a_program_that_is_there_and_not_in_a_guest() -> None:
    with_program = Path("/dev/shm") / f"crosswind-{os.getpid()}-program"
    with_program.symlink_to("/bin/true")
    try:
        ran = run("-c", PROGRAM, str(with_program))
    finally:
        with_program.unlink()
    assert_refused(ran, 1, f"cannot start {with_program}", "outside of /dev, /proc, /run and /sys")
