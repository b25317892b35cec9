"""What cells took is kept and forecasts what they will take; nothing fails for want of a file."""

import json
import os
import stat
from pathlib import Path

import pytest

from cell_events import finished
from cells import adhoc, checked, only_cell
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.forecast import AROUND_S
from crosswind.cell.process import CellEnd
from crosswind.execution.durations import (
    SCHEMA,
    Durations,
    cell_key,
    durations_file,
    expected_s,
    learn,
    read_durations,
)
from crosswind.execution.planning import plan_costs
from crosswind.study.plan import Plan
from fixture_types import Crosswind
from runs import planned_cell, taken
from study_texts import ECHO, study

A, B = ({"workload": {"kind": "echo", "size_bytes": size}} for size in (1, 2))
TWO_CELLS = ECHO + '[path]\ndelay = ["10ms", "20ms"]\n[host]\nclock = "real"\n[study]\nrepetitions = 3\n'


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where durations are kept for one test."""
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "kept" / "durations.json"))
    return tmp_path / "kept" / "durations.json"


def ended(seconds: float, *, well: bool = True) -> CellEnd:
    failure = None if well else Failure(ErrorKind.HOST, "it failed", None)
    return CellEnd(finished() if well else None, failure, round(seconds * 1e9))


def test_repetitions_share_a_sessions_time_as_they_took_theirs(place: Path) -> None:
    first, again, other, failed = (
        planned_cell(number, parameters=parameters) for number, parameters in enumerate((A, A, B, {}))
    )
    session = [(first, ended(2.0)), (again, ended(4.0)), (other, ended(3.0)), (failed, ended(1.0, well=False))]
    learn(taken(*session), wall_s=5.0)  # Two side by side.
    known = read_durations()
    assert (known.of(A), known.of(B), known.of({})) == ((3.0, 1.5), (3.0, 1.5), None)
    assert known.runs == 1
    assert expected_s(first, known) == 3.0
    assert expected_s(planned_cell(9, parameters={}, expected_ns=7 * 10**9), known) == 7.0


def test_the_shortest_of_the_last_sessions_counts(place: Path) -> None:
    for seconds in (1.0, 9.0, 4.0, 6.0):
        learn(taken((planned_cell(0, parameters=A), ended(seconds))), seconds)
    assert read_durations().of(A) == (4.0, 4.0)


def test_the_oldest_cells_are_forgotten_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.execution.durations.MOST_CELLS", 2)
    for parameters in (A, B, A, {}):
        learn(taken((planned_cell(0, parameters=parameters), ended(1.0))), 1.0)
    assert set(read_durations().cells) == {cell_key(A), cell_key({})}


def test_a_cell_is_known_again_whatever_its_run(tmp_path: Path) -> None:
    parameters = {"workload": {"kind": "echo"}, "path": {"mtu_bytes": 1500}}
    run = {"id": "c000-r01", "seed": 7, "output": {"directory": str(tmp_path)}, "deadline_ns": 5, "schema": "x"}
    assert cell_key(parameters) == cell_key({**parameters, **run})
    assert cell_key(parameters) != cell_key({**parameters, "path": {"mtu_bytes": 1400}})
    cell = only_cell("echo", size=7)
    assert cell_key(cell.parameters) == cell_key(cell.for_run(next(iter(Plan.of(adhoc("echo", size=7))))))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": "crosswind.durations/9"}', f'{{"schema": "{SCHEMA}"}}',
     f'{{"schema": "{SCHEMA}", "runs": "x", "cells": {{}}}}',
     f'{{"schema": "{SCHEMA}", "runs": 1, "cells": {{"a": [[1]]}}}}',
     '{"schema": "crosswind.durations/4", "runs": 1, "cells": {"a": [[1.0, 3.0]]}}'],
)  # fmt: skip
def test_a_damaged_file_in_the_cache_is_as_none_and_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.delenv("CROSSWIND_DURATIONS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "crosswind").mkdir()
    (tmp_path / "crosswind" / "durations.json").write_text(text, encoding="utf-8")
    assert read_durations() == Durations()
    learn(taken((planned_cell(0, parameters=A), ended(3.0))), 3.0)
    assert read_durations().runs == 1


@pytest.mark.parametrize("content", [b"my notes\n", b"{", b"[]", b"\xff", b'{"schema": "other/1"}', None])
def test_what_the_user_names_and_holds_no_durations_is_never_replaced(
    place: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    place.parent.mkdir()
    if content is None:
        os.mkfifo(place)
    else:
        place.write_bytes(content)
    learn(taken((planned_cell(0, parameters=A), ended(3.0))), 3.0)
    assert read_durations() == Durations()
    assert stat.S_ISFIFO(place.lstat().st_mode) if content is None else place.read_bytes() == content
    assert [path.name for path in place.parent.iterdir()] == [place.name]
    assert capsys.readouterr().err.endswith("it holds no durations; nothing is learned\n")


def test_a_link_that_the_user_names_stays_one(place: Path, tmp_path: Path) -> None:
    place.parent.mkdir()
    place.symlink_to(tmp_path / "elsewhere.json")
    learn(taken((planned_cell(0, parameters=A), ended(3.0))), 3.0)
    assert place.is_symlink()
    assert read_durations().runs == 1


def test_a_place_that_cannot_be_written_stops_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "file" / "durations.json"))
    learn(taken((planned_cell(0, parameters=A), ended(3.0))), 3.0)
    assert read_durations() == Durations()


def test_learning_can_be_switched_off_and_is_in_the_cache_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert durations_file() is None
    monkeypatch.delenv("CROSSWIND_DURATIONS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert durations_file() == tmp_path / "crosswind" / "durations.json"


def test_a_plan_takes_what_was_measured_and_computes_the_rest(place: Path) -> None:
    made = study(TWO_CELLS)
    plan, cells = Plan.of(made), checked(made)
    first, second = (cell.forecast.duration_ns for cell in cells)
    computed = plan_costs(plan, cells)
    # All six run side by side on two processors, so long as the longest takes.
    assert (computed.measured_runs, computed.runs, computed.serial_ns) == (0, 6, 3 * (first + second))
    learn(taken((planned_cell(0, parameters=cells[0].parameters), ended(4.0))), 2.5)
    learned = plan_costs(plan, cells)
    assert (learned.learned_from, learned.measured_runs, learned.runs) == (1, 3, 6)
    assert learned.serial_ns == 3 * 4 * 10**9 + 3 * second
    assert learned.wall_ns == pytest.approx(learned.parallel_ns + AROUND_S * 1e9)
    assert learned.parallel_ns >= 3 * 2.5e9 + second
    assert learned.packets == computed.packets


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_plan_says_how_much_of_it_was_measured(crosswind: Crosswind, place: Path) -> None:
    arguments = ("plan", "echo", "--delay", "10ms", "--clock", "real", "--repetitions", "1")
    assert "forecast computed: none of these cells ran on this machine" in words(crosswind(*arguments)[1])
    (cell,) = checked(adhoc("echo", path__delay="10ms", host__clock="real"))
    learn(taken((planned_cell(0, parameters=cell.parameters), ended(30.0))), 30.0)
    status, out, _ = crosswind(*arguments)
    assert status == 0
    assert "forecast learned from 1 run on this machine; 1 of 1 runs are of cells that were measured" in words(out)
    assert "one by one about 30 s" in words(out)
    assert "in all about 33 s, with start and report" in words(out)
    total = json.loads(crosswind(*arguments, "--json")[1])["total"]
    assert (total["learned_from"], total["measured_runs"], total["serial_ns"]) == (1, 1, 30 * 10**9)
    assert total["wall_ns"] == 33 * 10**9
