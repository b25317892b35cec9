"""A large run has an overview of its cells; what is asked about is looked at in depth all the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from crosswind.analysis.result import CellResult
from crosswind.api import results
from crosswind.store import partitions
from crosswind.store.run import StoredRun, load
from fixture_types import Crosswind
from runs import change_sealed
from unit.test_partitions import CELLS, REPETITIONS, fill

SAME = (
    "cell",
    "levels",
    "clock",
    "kernel",
    "valid",
    "reason",
    "warnings",
    "repetitions",
    "attempts",
    "n",
    "lost",
    "outcomes",
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredRun:
    """A run whose repetitions are in two partitions, and two in directories."""
    monkeypatch.setattr(partitions, "PACKED_AT_ONCE", 4)
    return load(fill(tmp_path / "run"))


@pytest.fixture
def is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.store.run.MOST_CELLS", 1)


def facts(cell: CellResult) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in SAME}


def test_an_overview_has_the_numbers_of_the_whole_analysis_without_intervals(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = results.analysed(run).result
    monkeypatch.setattr("crosswind.store.run.MOST_CELLS", 1)
    made = results.analysed(run)
    large = made.result
    assert list(map(facts, large.cells)) == list(map(facts, whole.cells))
    assert (large.planned, large.executed, large.valid, large.complete) == (10, 10, True, True)
    assert large.conditions == whole.conditions
    for own, other in zip(large.cells, whole.cells, strict=True):
        estimates, beside = own.estimates["rtt"], other.estimates["rtt"]
        assert estimates.mean.value == pytest.approx(beside.mean.value, rel=1e-12)
        assert (estimates.smallest, estimates.largest) == (beside.smallest, beside.largest)
        assert (estimates.mean.n, estimates.mean.units) == (beside.mean.n, REPETITIONS)
        assert not estimates.mean.is_whole
    assert [warning.name for warning in large.warnings] == ["overview"]
    assert (
        made.overview is not None
        and made.overview.units.filter(metric="rtt", statistic="mean").height == CELLS * REPETITIONS
    )


def test_what_is_asked_is_answered_as_of_any_run(run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {
        "asks": "mean(rtt) < 1s",
        "metric": "rtt",
        "statistic": "mean",
        "scale": "value",
        "yes": "within",
        "high": 1e9,
    }
    presentation = {**run.manifest.presentation, "asked": {"threshold": [{**stored, "cells": [1], "where": {}}]}}
    change_sealed(run.directory / "manifest.json", presentation=presentation)
    whole = results.analysed(load(run.directory)).result
    monkeypatch.setattr("crosswind.store.run.MOST_CELLS", 1)
    large = results.analysed(load(run.directory)).result
    assert large.model_dump()["thresholds"] == whole.model_dump()["thresholds"]
    assert large.cells[1] == whole.cells[1] and large.cells[0] != whole.cells[0]


@pytest.mark.parametrize(
    "metrics", [({"metric": "rtt"}, {"metric": "rtt", "statistic": "p95"}, {"metric": "lost"}), ({"metric": "lost"},)]
)
def test_of_cells_that_are_many_samples_are_enough(
    run: StoredRun, monkeypatch: pytest.MonkeyPatch, metrics: tuple[dict[str, str], ...]
) -> None:
    factor = next(iter(run.record().cells[0].levels))
    question = {"asks": "?", "scale": "difference", "yes": "less", "high": 0.0, "is_open": True, "factor": factor,
                "cells": [0, 1], "where": {}}  # fmt: skip
    threshold = {"asks": "!", "scale": "value", "yes": "within", "high": 1e9, "cells": [0, 1], "where": {}}
    asked = {kind: [stored | metric for metric in metrics]
             for kind, stored in (("question", question), ("threshold", threshold))}  # fmt: skip
    change_sealed(run.directory / "manifest.json", presentation={**run.manifest.presentation, "asked": asked})
    whole = results.analysed(load(run.directory)).result.model_dump()
    monkeypatch.setattr("crosswind.store.run.MOST_CELLS", 1)
    monkeypatch.setattr("crosswind.findings.pipeline.MOST_IN_DEPTH", 1)
    made = results.analysed(load(run.directory))
    assert not made.data
    large = made.result.model_dump()
    assert [answer["cases"] for answer in whole["answers"]] != [[]] * len(metrics)
    assert (large["answers"], large["thresholds"]) == (whole["answers"], whole["thresholds"])


def test_a_damaged_partition_is_left_out_and_named(run: StoredRun, is_large: None) -> None:
    (run.directory / "partitions/00000/samples.parquet").write_bytes(b"?")
    large = results.analysed(run).result
    assert (large.executed, len(large.damaged), large.valid) == (10, 4, False)
    assert sum(cell.repetitions for cell in large.cells) == 6
    assert large.warnings[0].text.endswith("has changed since it was written: 4 repetitions are left out")


@pytest.mark.parametrize(("name", "address"), [("page", "page"), ("it's #1", "it%27s%20%231")])
def test_a_page_leads_to_the_page_of_its_cells(
    run: StoredRun, is_large: None, crosswind: Crosswind, tmp_path: Path, *, name: str, address: str
) -> None:
    page = tmp_path / f"{name}.html"
    status, _, err = crosswind("report", str(run.directory), "--html", str(page))
    assert status == 0, err
    text, cells = page.read_text(), (tmp_path / f"{name}-cells.html").read_text()
    assert f'<a href="{address}.html">report</a>' in cells
    assert f"'{address}-cells.html#' + datum.cell" in text and "overview of 2 cells" in text
    island = cells.partition('<script id="cells" type="application/json">')[2].partition("</script>")[0]
    data = json.loads(island)
    assert [cell[0] for cell in data["cells"]] == [0, 1]
    means = [len(cell[7][0][1]) for cell in data["cells"]]
    assert means == [REPETITIONS, REPETITIONS]
    status, out, err = crosswind("report", str(run.directory), "--cell", "1", "--json")
    (only,) = json.loads(out)["cells"]
    assert (status, only["cell"], only["estimates"]["rtt"]["mean"]["units"]) == (0, 1, REPETITIONS), err
    status, _, err = crosswind("report", str(run.directory), "--cell", "2")
    assert (status, "the run has no cell 2" in err) == (2, True)


def test_large_runs_are_compared_by_the_means_of_their_repetitions(
    run: StoredRun, is_large: None, crosswind: Crosswind, tmp_path: Path
) -> None:
    other = load(fill(tmp_path / "other"))
    status, out, err = crosswind("compare", str(run.directory), str(other.directory), "--json")
    assert status == 0, err
    made = json.loads(out)
    assert made["common"] == []
    assert made["overview"]["metrics"][0] | {"metric": ""} == {
        "metric": "", "cells": CELLS, "larger": 0, "smaller": 0, "least": 1, "middle": 1, "most": 1,
    }  # fmt: skip
