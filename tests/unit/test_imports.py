"""What commands import: nothing that takes long and that they do not need. Wall time is not measured; modules are."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import GOOD_END, ROOT

DRAWING = {"altair", "matplotlib", "vl_convert", "crosswind.report.charts", "crosswind.report.html"}
STATISTICS = {"numpy", "scipy", "crosswind.analysis", "crosswind.stats"}
TABLES = {"polars", "pyarrow"}
CHECKING = {"pydantic"}

COMMAND = """
import sys
from crosswind.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert end.code == 0, end.code
"""

FIRST_CELL = """
import crosswind, crosswind.cli.progress, crosswind.cli.run
class FirstCell(crosswind.Observer):
    def cell_started(self, planned):
        show_modules()
crosswind.run(crosswind.load_study("quickstart").quick(), jobs=1, progress=FirstCell())
"""


def modules_of(program: str, *arguments: str, cwd: Path) -> set[str]:
    """The modules that are loaded when a program calls `show_modules` for the first time, which is at its end if not
    before.
    """
    shown = cwd / "modules.json"
    head = f"""
import atexit, json, os, sys
def show_modules():
    if not os.path.exists({str(shown)!r}):
        with open({str(shown)!r}, "w") as file: json.dump(list(sys.modules), file)
atexit.register(show_modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run(
        [sys.executable, "-c", head + program, *arguments], cwd=cwd, env=environment, check=True, capture_output=True
    )
    return set(json.loads(shown.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("--help",), DRAWING | STATISTICS | TABLES | CHECKING | {"rich"}),
        (("--version",), DRAWING | STATISTICS | TABLES | CHECKING | {"rich"}),
        (("runs",), DRAWING | STATISTICS | TABLES | CHECKING),
        (("clean",), DRAWING | STATISTICS | TABLES | CHECKING),
        (("studies",), DRAWING | STATISTICS | TABLES),
        (("show", "quickstart"), DRAWING | STATISTICS | TABLES),
        (("run", "--help"), DRAWING | STATISTICS | TABLES),
        (("plan", "quickstart"), DRAWING | STATISTICS | TABLES),
        (("verify", "--help"), DRAWING | STATISTICS | TABLES | CHECKING),
        (("report", "--help"), DRAWING | STATISTICS | TABLES | CHECKING),
        (("fit", "--help"), DRAWING | STATISTICS | TABLES | CHECKING),
        (("predict", "--help"), DRAWING | STATISTICS | TABLES | CHECKING | {"rich"}),
        (("predict", "--rtt", "30ms"), DRAWING | TABLES | CHECKING | {"rich", "scipy", "crosswind.analysis"}),
        (("live", "--help"), DRAWING | STATISTICS | TABLES | CHECKING | {"rich"}),
        (("schema", "study"), DRAWING | STATISTICS | TABLES),
    ],
    # A set has an order of its own in each process, and names of tests have to be the same in all of them.
    ids=lambda parameter: " ".join(parameter) if isinstance(parameter, tuple) else "",
)
def test_a_command_imports_nothing_that_takes_long_and_that_it_does_not_need(
    tmp_path: Path,
    fake_cell: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    unwanted: set[str],
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(GOOD_END)))
    assert modules_of(COMMAND, *arguments, cwd=tmp_path) & unwanted == set()


def test_before_the_first_cell_runs_neither_statistics_nor_drawing_are_imported(
    tmp_path: Path, fake_cell: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(GOOD_END + "start(); finish()")))
    modules = modules_of(FIRST_CELL, cwd=tmp_path)
    assert modules & (DRAWING | STATISTICS) == set()
    # Cells that run would have to wait for a processor while this is imported, so it has to be there before them.
    assert "polars" in modules


def test_importing_crosswind_imports_nothing_else_of_it(tmp_path: Path) -> None:
    modules = modules_of("import crosswind", cwd=tmp_path)
    assert modules & (DRAWING | STATISTICS | TABLES | CHECKING | {"click", "rich"}) == set()
    assert {name for name in modules if name.startswith("crosswind")} == {
        "crosswind",
        "crosswind.text",
        "crosswind.text.version",
    }
