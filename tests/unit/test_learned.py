"""Forecasts learned from what runs took: exact numbers, and nothing that fails for want of a file."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cells import adhoc, checked
from conftest import ROOT
from crosswind.execution.durations import (
    Timekeeper,
    cell_time,
    cell_time_of,
    durations_file,
    learn,
    read_durations,
)
from crosswind.execution.observer import Observer
from crosswind.execution.planning import plan_costs
from crosswind.forecast.learned import FORGETTING, REMEMBERED, SCHEMA, CellTime, Durations, key_of, kind_of, plan_key
from crosswind.study.design import Study
from crosswind.study.plan import Plan
from runs import planned_cell
from study_texts import ECHO, study

A = CellTime("a", "virtual echo tcp clean", 1.0)
B = CellTime("b", "virtual echo tcp clean", 2.0)
LOSSY = CellTime("c", "virtual echo tcp loss", 1.0)
REAL = CellTime("d", "real echo tcp clean", 1.0)


def test_a_cell_that_was_run_takes_as_long_again() -> None:
    durations = Durations()
    durations.learn_cells([(A, 3.0), (A, 5.0)])
    assert durations.cell_s(A) == (4.0, True)
    assert durations.runs == 1


def test_another_cell_is_corrected_by_its_kind_and_else_by_its_clock() -> None:
    durations = Durations()
    durations.learn_cells([(A, 3.0), (LOSSY, 9.0)])
    assert durations.cell_s(B) == (6.0, False)
    assert durations.cell_s(CellTime("x", LOSSY.kind, 2.0)) == (18.0, False)
    # Both kinds together: 12 s of 2 s.
    assert durations.cell_s(CellTime("x", "virtual page http2 clean", 1.0)) == (6.0, False)
    assert durations.cell_s(REAL) == (1.0, False)
    assert Durations().cell_s(A) == (1.0, False)


def test_what_was_long_ago_counts_less() -> None:
    durations = Durations()
    durations.learn_cells([(A, 1.0)])
    durations.learn_cells([(A, 2.0)])
    assert durations.cell_s(B)[0] == pytest.approx(2.0 * (FORGETTING * 1.0 + 2.0) / (FORGETTING * 1.0 + 1.0))
    for _ in range(10 * REMEMBERED):
        durations.learn_cells([(A, 8.0)])
    assert durations.cell_s(A)[0] == pytest.approx(8.0, rel=1e-3)


def test_the_oldest_cells_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.forecast.learned.MOST_CELLS", 2)
    durations = Durations()
    durations.learn_cells([(A, 1.0), (B, 2.0)])
    durations.learn_cells([(A, 1.0), (LOSSY, 1.0)])
    assert set(durations.cells) == {"a", "c"}


def test_a_session_takes_its_start_and_a_share_more_than_its_cells() -> None:
    durations = Durations()
    assert durations.session_s("virtual", 7.0) == 7.0
    durations.learn_session("virtual", 1.0, 4.0)
    # The first session: all that is not cells is the start.
    assert durations.session_s("virtual", 1.0) == 4.0
    assert durations.session_s("virtual", 10.0) == 13.0
    durations.learn_session("virtual", 19.5, 42.0)
    # The start is 3 s; what is left is 1 s of 1 s and 39 s of 19.5 s.
    assert durations.session_s("virtual", 10.0) == 3.0 + 1.5 * 10.0
    # One session that something disturbed changes little.
    durations.learn_session("virtual", 1.0, 100.0)
    assert durations.session_s("virtual", 10.0) == 3.0 + 2 * 10.0
    assert durations.session_s("virtual", 0.0) == 0.0
    assert durations.session_s("real", 10.0) == 10.0


def test_a_plan_that_was_run_takes_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.forecast.learned.MOST_PLANS", 1)
    durations = Durations()
    durations.learn_plan(plan_key(["a", "b", "b"]), 20.0)
    durations.learn_plan(plan_key(["b", "a", "b"]), 30.0)
    assert durations.plan_s(plan_key(["b", "b", "a"])) == 25.0
    assert durations.plan_s(plan_key(["a", "b"])) is None
    durations.learn_plan("another", 1.0)
    assert durations.plan_s(plan_key(["a", "b", "b"])) is None


def test_a_command_takes_the_median_of_what_others_took_around_their_sessions() -> None:
    durations = Durations()
    assert durations.around_s("p") == 0.0
    for key, seconds in (("p", 2.0), ("q", 9.0), ("r", 3.0)):
        durations.learn_around(key, seconds)
    assert durations.around_s("another") == 3.0
    assert durations.around_s("q") == 9.0


def test_a_process_knows_its_age() -> None:
    script = "from crosswind.execution.durations import process_age_s; print(process_age_s())"
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout
    # It was made after the first reading and before the second; its start is known to a tick of 10 ms.
    assert 0 < float(printed) < time.monotonic() - began + 0.02


def test_a_cell_is_known_again_whatever_its_run(tmp_path: Path) -> None:
    parameters = {"workload": {"kind": "echo"}, "path": {"mtu_bytes": 1500}}
    run = {"id": "c000-r01", "seed": 7, "output": {"directory": str(tmp_path)}, "deadline_ns": 5, "schema": "x"}
    assert key_of(parameters) == key_of({**parameters, **run})
    assert key_of(parameters) != key_of({**parameters, "path": {"mtu_bytes": 1400}})
    assert kind_of(parameters) == "real echo - clean"
    virtual = {**parameters, "host": {"clock": "virtual"}, "path": {"reverse": {"loss": 0.1}}}
    assert kind_of(virtual) == "virtual echo - loss"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where durations are kept for one test."""
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "kept" / "durations.json"))
    return tmp_path / "kept" / "durations.json"


def test_what_is_learned_is_kept(place: Path) -> None:
    assert read_durations() == Durations()
    learn(lambda durations: durations.learn_cells([(A, 3.0)]))
    learn(lambda durations: durations.learn_session("virtual", 1.0, 4.0))
    assert read_durations().cell_s(A) == (3.0, True)
    assert read_durations().session_s("virtual", 1.0) == 4.0
    place.unlink()
    assert read_durations() == Durations()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": "crosswind.durations/9"}', f'{{"schema": "{SCHEMA}"}}',
     f'{{"schema": "{SCHEMA}", "runs": "x", "cells": {{}}, "kinds": {{}}, "sessions": {{}}, "plans": {{}}}}',
     f'{{"schema": "{SCHEMA}", "runs": 1, "cells": {{"a": [1]}}, "around": [], "plans": {{}}}}'],
)  # fmt: skip
def test_a_damaged_file_is_as_none_and_is_replaced(place: Path, text: str) -> None:
    place.parent.mkdir()
    place.write_text(text, encoding="utf-8")
    assert read_durations() == Durations()
    learn(lambda durations: durations.learn_cells([(A, 3.0)]))
    assert read_durations().runs == 1


def test_a_place_that_cannot_be_written_stops_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "file" / "durations.json"))
    learn(lambda durations: durations.learn_cells([(A, 3.0)]))
    assert read_durations() == Durations()


def test_learning_can_be_switched_off_and_is_in_the_cache_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert durations_file() is None
    monkeypatch.delenv("CROSSWIND_DURATIONS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert durations_file() == tmp_path / "crosswind" / "durations.json"


def test_a_plan_takes_what_was_measured() -> None:
    made = study(ECHO + '[path]\ndelay = ["10ms", "20ms"]\n[host]\nclock = "real"\n[study]\nrepetitions = 3\n')
    plan, cells = Plan.of(made), checked(made)
    computed = plan_costs(plan, cells, packets=False, capture=False)
    assert (computed.learned_from, computed.measured_runs, computed.runs) == (0, 0, 6)
    durations = Durations()
    first = cell_time_of(cells[0].parameters, cells[0].forecast)
    durations.learn_cells([(first, 2 * first.predicted_s)])
    learned = plan_costs(plan, cells, packets=False, capture=False, learned=durations)
    assert (learned.learned_from, learned.measured_runs, learned.runs) == (1, 3, 6)
    assert learned.serial_ns == pytest.approx(2 * computed.serial_ns, abs=6)
    assert learned.packets == computed.packets
    assert not learned.is_measured_plan
    keys = [cell_time_of(cell.parameters, cell.forecast).key for cell in cells]
    durations.learn_plan(plan_key(3 * keys), 44.0)
    again = plan_costs(plan, cells, packets=False, capture=False, learned=durations)
    assert again.is_measured_plan
    assert (again.parallel_ns, again.wall_ns) == (44 * 10**9, 44 * 10**9)


def test_the_cell_of_a_plan_is_that_of_its_run() -> None:
    (cell,) = checked(adhoc("echo", size=7))
    planned = planned_cell(0, parameters=cell.for_run(next(iter(Plan.of(adhoc("echo", size=7))))))
    assert cell_time(planned).key == cell_time_of(cell.parameters, cell.forecast).key


def words(text: str) -> str:
    return " ".join(text.split())


Crosswind = Callable[..., tuple[int, str, str]]


def test_the_plan_says_whether_its_forecast_is_learned(crosswind: Crosswind, place: Path) -> None:
    arguments = ("plan", "echo", "--delay", "10ms", "--clock", "real")
    assert "forecast computed: nothing was learned on this machine yet" in words(crosswind(*arguments)[1])
    (cell,) = checked(Study.adhoc("echo", {"path.delay": "10ms", "host.clock": "real"}))
    time = cell_time_of(cell.parameters, cell.forecast)
    learn(lambda durations: durations.learn_cells([(time, 30.0)]))
    status, out, _ = crosswind(*arguments)
    assert status == 0
    assert "forecast learned from 1 run on this machine; 1 of 1 runs are of cells that were measured" in words(out)
    assert "one by one about 30 s" in words(out)
    learn(lambda durations: durations.learn_around("p", 2.0))
    assert "in all about 32 s, with start and report" in words(crosswind(*arguments)[1])
    total = json.loads(crosswind(*arguments, "--json")[1])["total"]
    assert total["wall_ns"] == 32 * 10**9
    assert (total["learned_from"], total["measured_runs"], total["serial_ns"]) == (1, 1, 30 * 10**9)


def test_a_timekeeper_hands_everything_on() -> None:
    seen: list[str] = []

    class Watching(Observer):
        def remark(self, text: str) -> None:
            seen.append(text)

    keeper = Timekeeper(Watching())
    keeper.remark("one")
    for name in (name for name in vars(Observer) if not name.startswith("_")):
        assert name in vars(Timekeeper) or name in vars(Timekeeper.__mro__[1]), name
    assert seen == ["one"]
    keeper.learn(1.0)
