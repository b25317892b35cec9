"""The notebook of the documentation: its code cells run in their order, and show what its text says.

They run in one process without Jupyter, whose display is left out: a cell shows the value of its last line.
"""

import ast
import json
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from conftest import ROOT
from virtual.conftest import requires_kernel

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.fixture(autouse=True)
def kernel() -> None:
    requires_kernel()


def code_cells() -> list[str]:
    """The sources of the notebook's code cells."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def shown_by(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell. Returns: the value of its last line, as a notebook shows it; None where that is a statement."""
    parsed = ast.parse(source)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run, head, lost, medians, compared, _, *charts, (page, complete) = (
        shown_by(source, names) for source in code_cells()
    )
    assert (run.valid, run.directory) == (True, Path("notebook-run"))
    assert (head.height, names["samples"].height) == (5, (1 + 24) * 2 * 60)
    # UDP repairs nothing and TCP everything; without loss neither loses any.
    rows = {tuple(row[:2]): row[3] for row in lost.iter_rows()}
    assert rows["0%", "tcp"] == rows["0%", "udp"] == rows["5%", "tcp"] == 0 < rows["5%", "udp"]
    assert medians.height == 4
    assert medians["value"].min() >= 20_000_000
    assert set(compared["factor"]) == {"path.loss", "workload.transport"}
    assert capsys.readouterr().out.startswith("Yes: mean round-trip time with loss 5% less that with 0% is ")
    assert len(charts) == 3
    for chart in charts:
        assert isinstance(chart, alt.VConcatChart)
        assert chart.to_dict()["vconcat"]
    assert (page, complete) == ("report.html", True)


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
