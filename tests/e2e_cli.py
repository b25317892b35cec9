"""The command line with the real crosswind-cell: in this process, or in one of its own for tests about processes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from crosswind.cli import main

# A busy machine makes cells invalid, rightly. These tests check other things and accept any fidelity.
ANY_FIDELITY = (
    "--set",
    "budget.delay_error_p99=10s",
    "--set",
    "budget.starvation=100%",
    "--set",
    "budget.probe_starvation=100%",
    "--set",
    "budget.exchange_delay=10s",
)


@dataclass
class Ended:
    """A command line that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as one JSON object."""
        return dict(json.loads(self.out))


@dataclass
class Cli:
    """Runs command lines in an empty directory."""

    cwd: Path
    capture: pytest.CaptureFixture[str]
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(self, *arguments: str) -> Ended:
        """Runs one to its end, in this process: what is imported once need not be imported again."""
        self.capture.readouterr()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as exited:
            patch.chdir(self.cwd)
            for name, value in self.env.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["crosswind", *arguments])
            main(arguments)
        out, err = self.capture.readouterr()
        assert isinstance(exited.value.code, int)
        return Ended(exited.value.code, out, err)

    @property
    def env(self) -> dict[str, str]:
        """The environment that they run in; programs in their cells find Crosswind by it."""
        return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NO_COLOR": "1"}

    def command(self, *arguments: str) -> list[str]:
        """The argument list of one that has a process of its own."""
        return [sys.executable, "-m", "crosswind", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts one in a process of its own and does not wait."""
        process = subprocess.Popen(
            self.command(*arguments),
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Waits for one to end."""
        out, err = process.communicate()
        return Ended(process.returncode, out, err)

    def stop(self) -> None:
        """Ends whatever still runs."""
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def cells(self, run: str) -> Path:
        """Where a run keeps its cells."""
        return self.cwd / run / "cells"

    def finished(self, run: str) -> set[str]:
        """Keys of the cells of a run that are whole."""
        return {path.parent.name for path in self.cells(run).glob("c???-r??/result.json")}

    def attempts(self, run: str) -> list[str]:
        """Names of everything in `cells/`."""
        return sorted(path.name for path in self.cells(run).iterdir())


def wait_until(condition: Callable[[], object]) -> None:
    """For what another process does in its own time; the test's timeout bounds it."""
    while not condition():
        time.sleep(0.005)


def running_cells(process: subprocess.Popen[str]) -> list[int]:
    """The processes in which a running command line runs its cells at this moment."""
    found = []
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []
    for child in children:
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # It has no option, unlike --version and --check, which run before the first cell. A script is its last word.
        if words[-1] == os.fsencode(os.environ["CROSSWIND_CELL"]):
            found.append(int(child))
    return found


def cell_of(process: subprocess.Popen[str]) -> int:
    """The process in which a running command line runs its cell, once there is one."""
    wait_until(lambda: running_cells(process) or process.poll() is not None)
    return running_cells(process)[0]


def hosts_file(name: str) -> str:
    """A command that says what its host is called, and counts who has been at the same places of the machine.

    Args: name: for its files in /run and /var/lib.
    """
    return (
        'sh -c \'hostname; getent hosts "$(hostname)"; mkdir -p /run/{name} /var/lib/{name}; '
        'for place in /run /var/run /var/lib; do hostname > "$place/{name}/$(hostname)"; done; '
        'echo "$(ls /run/{name} | grep -c .) of $(ls /var/lib/{name} | grep -c .)" | sed "s/1/one/g"; '
        "test -d /var/lib/dpkg && echo found; hostname > $(hostname).here'"
    ).replace("{name}", name)
