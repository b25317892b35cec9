"""The real command line in a process of its own, with the real crosswind-cell."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conftest import ROOT

# A crowded machine makes cells invalid, rightly. These tests ask other things, and so take any fidelity.
ANY_FIDELITY = (
    "--set",
    "budget.delay_error_p99=10s",
    "--set",
    "budget.starvation=100%",
    "--set",
    "budget.probe_starvation=100%",
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
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """The environment they run in."""
        return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NO_COLOR": "1"}

    def command(self, *arguments: str) -> list[str]:
        """A whole command line."""
        return [sys.executable, "-m", "crosswind.cli", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts one and does not wait."""
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

    def __call__(self, *arguments: str) -> Ended:
        """Runs one to its end."""
        return self.end(self.start(*arguments))

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


def cell_of(process: subprocess.Popen[str]) -> int:
    """The crosswind-cell that a running command line runs its cell in, once there is one."""
    found: list[int] = []

    def look() -> bool:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        for child in children:
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            # --version and --check run before the first cell.
            if len(words) == 1 and words[0].endswith(b"crosswind-cell"):
                found.append(int(child))
        return bool(found)

    wait_until(look)
    return found[0]
