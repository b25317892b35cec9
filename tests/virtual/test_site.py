"""The commands of the documentation's tutorial and how-to pages print what the pages show.

A page is a script: its commands run in one directory, from top to bottom. `…` on a line of its own stands for any
lines, within a line for any text.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT
from e2e_cli import Cli
from virtual.conftest import requires_kernel
from virtual.shared_runs import LOSSES_OF_UPLOADS, SharedRuns

NARROW_SPACE = "\u202f"
PAGES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def scenes(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields each command of a page with the lines that the page shows of its output."""
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for scene in re.split(r"^\$ ", block.replace(" \\\n", " "), flags=re.MULTILINE)[1:]:
            command, *shown = scene.splitlines()
            yield command, shown


def pattern(shown: list[str]) -> str:
    """What matches the lines that a page shows."""
    lines = (r"(?:.*\n)*?" if line == "…" else re.escape(line.rstrip()).replace("…", ".*") + r" *\n" for line in shown)
    return "".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    shared_runs: SharedRuns,
) -> None:
    requires_kernel()
    monkeypatch.setenv("COLUMNS", "100")
    crosswind = Cli(tmp_path, capfd)
    for command, shown in scenes(page):
        asked, *status = command.split("; echo $?")
        program, *words = shlex.split(asked)
        if program == "python3":
            subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
            continue
        assert program == "crosswind", command
        if tuple(words[:-1]) == (*LOSSES_OF_UPLOADS, "--output"):
            ended = shared_runs(crosswind, *LOSSES_OF_UPLOADS, output=words[-1])
        else:
            ended = crosswind(*(word.replace("python3", sys.executable) for word in words))
        printed = (ended.out + ended.err).replace(NARROW_SPACE, " ") + (f"{ended.status}\n" if status else "")
        assert status or ended.status == 0, ended.err
        assert re.fullmatch(pattern(shown), printed), f"$ {command}\n{printed}"
