"""Adding a kind of finding is a folder and a line: shown on a copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, requires_cell
from e2e_cli import ANY_FIDELITY

STUDY = """
study.repetitions = 1
path.delay = ["5ms", "1ms"]
host.clock = "real"
workload = { kind = "echo", transport = "udp", messages = 5 }
[[toy]]
metric = "rtt"
"""
LINE = '    "fit",\n'
"""The last line of FINDING_KINDS. The test adds the toy below it."""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A directory with a copy of the package that has the toy."""
    shutil.copytree(ROOT / "python" / "crosswind", tmp_path / "crosswind", ignore=shutil.ignore_patterns("*.pyc"))
    findings = tmp_path / "crosswind" / "findings"
    shutil.copytree(Path(__file__).parent / "toy_finding", findings / "toy", ignore=shutil.ignore_patterns("*.pyc"))
    kinds = tmp_path / "crosswind" / "catalog" / "finding_kinds.py"
    listed = kinds.read_text(encoding="utf-8")
    assert listed.count(LINE) == 1
    kinds.write_text(listed.replace(LINE, f'{LINE}    "toy",\n'), encoding="utf-8")
    return tmp_path


def test_a_toy_is_declared_run_judged_and_shown(package: Path) -> None:
    (package / "toys.toml").write_text(STUDY, encoding="utf-8")

    def crosswind(*words: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(package), "CROSSWIND_CELL": str(requires_cell())}
        command = [sys.executable, "-m", "crosswind", *words]
        ended = subprocess.run(
            command, cwd=package, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert "toy" in json.loads(crosswind("schema"))["properties"]
    assert "toys" in json.loads(crosswind("schema", "result"))["properties"]
    assert "toy          which cell has the smallest rtt" in crosswind("show", "toys.toml")
    result = json.loads(crosswind("run", "toys.toml", "--output", "out", *ANY_FIDELITY, "--json"))
    assert result["toys"] == [{"cell": 1, "sentence": "The fastest cell is 1ms."}]
    assert "The fastest cell is 1ms." in crosswind("report", "out")
    page = (package / "out" / "report.html").read_text(encoding="utf-8")
    assert "<li>The fastest cell is 1ms.</li>" in page
    assert "<h2>Toys</h2>" in page


def test_what_is_touched_is_listed() -> None:
    listed = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "`python/crosswind/findings/<kind>/`" in listed
    assert "`python/crosswind/catalog/finding_kinds.py`" in listed
