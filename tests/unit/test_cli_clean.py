"""`crosswind runs` and `crosswind clean` in this process: what is listed, what goes, and what is left alone."""

from io import StringIO
from pathlib import Path

import pytest

from crosswind.store.directory import Store
from crosswind.store.manifest import Session, Status
from fixture_types import Crosswind
from runs import new_run


@pytest.fixture
def four_runs(crosswind: Crosswind) -> Path:
    """A finished, an interrupted and a died run, and one that is half removed."""
    root = Path("crosswind-runs")
    for day, (name, status) in enumerate([("done", "done"), ("cut", "interrupted"), ("dead", "running")], start=1):
        with new_run(root / name, started=f"2026-01-{day:02d}T12:00:00.000+00:00") as store:
            store.set_status(Status(status))
        (root / name / "cells" / "c000-r00").mkdir()
        (root / name / "cells" / "c000-r00.failed-1").mkdir()
    (root / "dead" / "cells" / "c001-r00.4711.part").mkdir()
    (root / ".old.removed").mkdir()
    return root


def names(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_clean_asks_first_and_refuses_where_nobody_can_answer(
    crosswind: Crosswind, four_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    status, _, err = crosswind("clean", "--unfinished")
    assert (status, err.splitlines()[-1]) == (2, "hint: --yes removes it without asking")
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    status, out, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "crosswind-runs/cut" in out
    assert err.endswith("nothing was removed\n")
    assert len(names(four_runs)) == 4
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    status, _, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "removed 3 runs" in err
    assert names(four_runs) == {"done"}


def test_clean_leaves_a_run_in_use_alone(crosswind: Crosswind, four_runs: Path) -> None:
    with Store.resume(four_runs / "dead"):
        assert "crosswind-runs/dead is in use" in crosswind("clean")[1]
        status, _, err = crosswind("clean", "--older-than", "0h", "--yes")
        assert status == 0
        assert "crosswind-runs/dead is in use: left alone" in err
        status, _, err = crosswind("clean", "dead", "--yes")
        assert status == 2
        assert err.startswith("error: crosswind-runs/dead is in use by another crosswind\nhint: ")
        assert [line.split()[4] for line in crosswind("runs")[1].splitlines()[1:2]] == ["running"]
    assert names(four_runs) == {"dead", ".old.removed"}


def test_clean_leaves_a_run_alone_that_went_on_while_it_asked(
    crosswind: Crosswind, four_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object, **__: object) -> bool:
        with Store.resume(four_runs / "cut") as store:
            store.begin_session(Session(started="2026-03-01T12:00:00.000+00:00"))
            store.set_status(Status.DONE)
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", answer)
    status, _, err = crosswind("clean", "--unfinished")
    assert status == 0
    assert "crosswind-runs/cut has changed meanwhile: left alone" in err
    assert names(four_runs) == {"cut", "done"}
