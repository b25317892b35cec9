"""The two trees that are compared: this one, and an earlier commit in a worktree of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEADLINE_S = 900.0
"""Of a command, in seconds."""


@dataclass(frozen=True)
class Side:
    """A tree. Attributes: name: base or now. root: its directory. home: where it writes everything."""

    name: str
    root: Path
    home: Path

    @property
    def cell(self) -> Path:
        """Its crosswind-cell."""
        return self.root / "target" / "release" / "crosswind-cell"

    def crosswind(self, words: Sequence[str], at: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end. Args: at: the working directory, created if missing."""
        at.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            [sys.executable, "-P", "-m", "crosswind", *words],
            cwd=at,
            env={**self._environment(), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=DEADLINE_S,
        )

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CROSSWIND_", "PYTHON"))}
        return {
            **kept,
            "PYTHONPATH": str(self.root / "python"),
            "CROSSWIND_CELL": str(self.cell),
            # What earlier cells took on this machine would change forecasts.
            "CROSSWIND_DURATIONS": str(self.home / "durations.json"),
            # With a kernel of other sources a cell emulates in a process, which is some nanoseconds later.
            **({"CROSSWIND_KERNELS": str(kernels)} if (kernels := self.root / "target" / "kernels").is_dir() else {}),
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TZ": "UTC",
        }


def this_tree(home: Path, *, is_built: bool) -> Side:
    """The tree of this file. Args: is_built: whether its crosswind-cell is current."""
    side = Side("now", ROOT, home / "now")
    if not is_built:
        _build(side)
    return side


def earlier_tree(commit: str, home: Path) -> Side:
    """A commit in a worktree of its own, which is kept: it is built once."""
    full = _git("rev-parse", "--verify", f"{commit}^{{commit}}").strip()
    root = home / "trees" / full
    if not root.exists():
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(root), full)
    side = Side("base", root, home / "base")
    if not side.cell.exists():
        _build(side)
    return side


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _build(side: Side) -> None:
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "crosswind-cell"]
    subprocess.run(command, cwd=side.root, check=True)
