"""`crosswind runs` and `crosswind clean` in this process: what is listed, what goes, and what is left alone."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from crosswind.cli.runs import print_runs
from crosswind.cli.text import size_text
from crosswind.store.directory import Store
from crosswind.store.listing import list_runs
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


def test_runs_are_listed_for_people_and_programs(crosswind: Crosswind, four_runs: Path) -> None:
    (four_runs / "empty").mkdir()
    status, out, err = crosswind("runs")
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["run", "study", "started", "(UTC)", "status", "repetitions", "size"]
    assert [line[:6] for line in lines[1:4]] == [
        ["dead", "a-study", "2026-01-03", "12:00", "died", "1/2"],
        ["cut", "a-study", "2026-01-02", "12:00", "interrupted", "1/2"],
        ["done", "a-study", "2026-01-01", "12:00", "done", "1/2"],
    ]
    assert " ".join(lines[4]) == ".old.removed: its removal did not end"
    assert " ".join(lines[5]) == "empty: it has no manifest.json"
    listing = json.loads(crosswind("runs", "--json", "--details")[1])
    assert listing["schema"] == "crosswind.runs/1"
    assert [run["status"] for run in listing["runs"]] == ["died", "interrupted", "done", "removed", None]
    assert listing["runs"][0]["problem"] == "cells/c000-r00/result.json is missing"
    assert listing["runs"][0] | {"size_bytes": 0, "problem": None} == {
        "directory": "crosswind-runs/dead",
        "study": "a-study",
        "title": "A study",
        "status": "died",
        "started": "2026-01-03T12:00:00.000+00:00",
        "active": "2026-01-03T12:00:00.000+00:00",
        "done": 1,
        "planned": 2,
        "attempts": 1,
        "parts": 1,
        "valid": 0,
        "invalid": 0,
        "failed": 0,
        "clocks": [],
        "outcomes": [],
        "size_bytes": 0,
        "size_is_exact": True,
        "problem": None,
    }


def test_a_place_without_runs_is_no_mistake(crosswind: Crosswind) -> None:
    assert crosswind("runs") == (0, "there are no runs in crosswind-runs/\n", "")
    assert crosswind("clean") == (0, "there is nothing to remove in crosswind-runs/\n", "")
    assert crosswind("clean", "--unfinished", "--yes") == (0, "nothing to remove\n", "")


def test_clean_shows_what_could_go_and_removes_nothing(crosswind: Crosswind, four_runs: Path) -> None:
    before = sorted(four_runs.rglob("*"))
    status, out, _ = crosswind("clean")
    assert status == 0
    assert sorted(four_runs.rglob("*")) == before
    shown, offered = out.split("\n\n")
    assert [line.split()[0] for line in shown.splitlines()] == [
        "run",
        "crosswind-runs/dead",
        "crosswind-runs/cut",
        "crosswind-runs/.old.removed",
    ]
    assert [line.partition(",")[0] for line in offered.splitlines()] == [
        "crosswind clean --unfinished  3 runs",
        "crosswind clean --leftovers   1 run and 4 entries of runs",
        "finished runs                 1 run",
    ]


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--unfinished",), {"done"}),
        (("--older-than", "0h"), {".old.removed"}),
        (("--older-than", "99999d"), {"done", "cut", "dead", ".old.removed"}),
        (("--unfinished", "--older-than", "1w"), {"done", ".old.removed"}),
        (("crosswind-runs/done",), {"cut", "dead", ".old.removed"}),
        (("done", "cut"), {"dead", ".old.removed"}),
        (("done", "cut", "--unfinished"), {"done", "dead", ".old.removed"}),
        (("crosswind-runs/.old.removed",), {"done", "cut", "dead"}),
        (("--leftovers",), {"done", "cut", "dead"}),
        (("--leftovers", "--older-than", "1w"), {"done", "cut", "dead", ".old.removed"}),
        (("done", "--leftovers"), {"done", "cut", "dead", ".old.removed"}),
    ],
)
def test_clean_removes_what_is_asked_for(
    crosswind: Crosswind, four_runs: Path, arguments: tuple[str, ...], left: set[str]
) -> None:
    assert crosswind("clean", "--yes", *arguments)[0] == 0
    assert names(four_runs) == left
    cells = names(four_runs / "dead" / "cells") if "dead" in left else set()
    gone = {"c001-r00.4711.part", "c000-r00.failed-1"} if arguments[0] == "--leftovers" else set()
    assert cells == ({"c000-r00", "c000-r00.failed-1", "c001-r00.4711.part"} - gone if cells else set())


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


def test_clean_removes_a_damaged_run_only_by_name(crosswind: Crosswind, four_runs: Path) -> None:
    path = four_runs / "cut" / "manifest.json"
    path.write_text('{"schema": "crosswind.run/2"}', encoding="utf-8")
    crosswind("clean", "--unfinished", "--yes")
    assert names(four_runs) == {"cut", "done"}
    crosswind("clean", "cut", "--leftovers", "--yes")
    assert names(four_runs) == {"cut", "done"}
    crosswind("clean", "cut", "--yes")
    assert names(four_runs) == {"done"}


def test_a_listing_fits_a_narrow_terminal(tmp_path: Path) -> None:
    name = "transfer-time-held-out-20261120T221328Z"
    new_run(tmp_path / name, name="transfer-time-held-out").close()
    console = Console(width=70, file=StringIO(), highlight=False, markup=False)
    print_runs(console, tmp_path, list_runs(tmp_path))
    assert isinstance(console.file, StringIO)
    head, row = console.file.getvalue().splitlines()
    # What the run's name says already is left out.
    assert head.split() == ["run", "status", "repetitions", "size"]
    assert row.split()[:3] == [name, "died", "0/2"]
    assert len(row) <= 70


def test_sizes_are_written_with_three_digits() -> None:
    texts = [size_text(size) for size in (0, 999, 1000, 1234, 99_949, 999_499, 999_500, 12_345_678, 5e12)]
    assert texts == ["0 B", "999 B", "1.00 kB", "1.23 kB", "99.9 kB", "999 kB", "1.00 MB", "12.3 MB", "5.00 TB"]
