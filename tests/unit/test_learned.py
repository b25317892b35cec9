"""Forecasts learned from what runs took: exact numbers, and nothing that fails for want of a file."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cell_events import finished
from cells import adhoc, checked
from conftest import ROOT
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.process import CellEnd
from crosswind.execution.durations import (
    cell_time,
    cell_time_of,
    durations_file,
    key_of_plan,
    learn,
    read_durations,
)
from crosswind.execution.observer import Observer
from crosswind.execution.planning import plan_costs
from crosswind.execution.timekeeper import Shares, Timekeeper
from crosswind.forecast.kinds import CellTime, Kind, company, key_of, plan_key
from crosswind.forecast.learned import AROUND_S, SCHEMA, Durations, Taken
from crosswind.study.design import Study
from crosswind.study.plan import Plan
from fixture_types import Crosswind
from runs import planned_cell
from study_texts import ECHO, study

A = CellTime("a", Kind("virtual", "echo", "tcp", "clean"), 1.0)
B = CellTime("b", Kind("virtual", "echo", "tcp", "clean"), 2.0)
LOSSY = CellTime("c", Kind("virtual", "echo", "tcp", "loss"), 1.0)
REAL = CellTime("d", Kind("real", "echo", "tcp", "clean"), 1.0)
ALONE = CellTime("e", Kind("real", "echo", "udp", "clean"), 1.0, alone=True)


def took(cell: CellTime, seconds: float, share_s: float | None = None, repetitions: int = 1) -> Taken:
    return Taken(cell, seconds, seconds if share_s is None else share_s, repetitions)


def test_a_cell_that_was_run_takes_as_long_again() -> None:
    durations = Durations()
    durations.learn_cells([took(A, 3.0, 1.5), took(B, 7.0)])
    assert (durations.cell_s(A), durations.share_s(A)) == ((3.0, True), 1.5)
    assert durations.runs == 1


def test_another_cell_is_corrected_by_its_kind_and_else_by_its_sort() -> None:
    durations = Durations()
    durations.learn_cells([took(A, 3.0, 1.5), took(LOSSY, 9.0, 1.5)])
    assert durations.cell_s(B) == (6.0, False)
    assert durations.cell_s(CellTime("x", LOSSY.kind, 2.0)) == (18.0, False)
    # Both kinds together: 12 s of 2 s.
    assert durations.cell_s(CellTime("x", Kind("virtual", "page", "http2", "clean"), 1.0)) == (6.0, False)
    for unknown in (REAL, ALONE):
        assert durations.cell_s(unknown) == (1.0, False)
    durations.learn_cells([took(REAL, 2.0, 0.5), took(ALONE, 4.0, 5.0)])
    alone = CellTime("x", Kind("real", "connect", "tcp", "clean"), 1.0, alone=True)
    beside = CellTime("x", Kind("real", "connect", "tcp", "clean"), 1.0)
    assert [durations.cell_s(one)[0] for one in (alone, beside)] == [4.0, 2.0]
    # How much of a session it takes depends on what runs beside it: nobody knows before it was run.
    assert durations.share_s(B) is None


def test_cells_without_a_browser_say_nothing_of_one_with_a_browser() -> None:
    durations = Durations()
    durations.learn_cells([took(A, 3.0), took(LOSSY, 9.0)])
    browser = CellTime("x", Kind("virtual", "echo", "wss", "clean", ("chromium", "deno")), 10.0)
    assert durations.cell_s(browser) == (10.0, False)
    durations.learn_cells(
        [took(CellTime("y", Kind("virtual", "page", "http2", "loss", ("chromium", "deno")), 10.0), 15.0)]
    )
    assert durations.cell_s(browser) == (15.0, False)


def test_a_browser_in_virtual_time_is_taken_to_start_for_as_long_as_it_was_measured() -> None:
    chromium, deno = ({"name": name, "command": ["peer"]} for name in ("chromium", "deno"))
    times = []
    for ends in ({}, {"client": chromium}, {"client": chromium, "server": deno}):
        parameters = {"workload": {"kind": "echo", "transport": "wss", **ends}, "host": {"clock": "virtual"}}
        times.append(cell_time(planned_cell(0, parameters=parameters, expected_packets=1000)).predicted_s)
    # 0.1 s, 0.11 ms for each packet, 13 s for the browser and 3 s for any other peer.
    assert times == pytest.approx([0.21, 13.21, 16.21], rel=1e-9)


def test_repetitions_weigh_what_a_kind_took() -> None:
    durations = Durations()
    durations.learn_cells([took(A, 3.0, 3.0, repetitions=3), took(B, 1.0, 0.5)])
    # 10 s of 5 s.
    assert durations.cell_s(CellTime("x", A.kind, 1.0)) == (2.0, False)


def test_what_other_work_has_made_longer_is_not_believed() -> None:
    durations = Durations()
    for seconds in (30.0, 4.0, 90.0):
        durations.learn_cells([took(A, seconds)])
        durations.learn_plan("p", seconds)
    assert (durations.cell_s(A)[0], durations.plan_s("p")) == (4.0, 4.0)
    # Nor is for ever what was short once: the last five count, and of those the second shortest.
    for seconds in (6.0, 5.0, 7.0, 8.0):
        durations.learn_cells([took(A, seconds)])
        durations.learn_plan("p", seconds)
    assert (durations.cells["a"], durations.plans["p"]) == (
        [(90.0, 90.0), (6.0, 6.0), (5.0, 5.0), (7.0, 7.0), (8.0, 8.0)],
        [90.0, 6.0, 5.0, 7.0, 8.0],
    )
    assert (durations.cell_s(A)[0], durations.plan_s("p")) == (6.0, 6.0)


def test_a_kind_takes_the_median_of_what_it_took_in_sessions_with_different_cells() -> None:
    durations = Durations()
    for factor in (1.0, 50.0, 3.0, 2.0):
        durations.learn_cells([took(A, factor, 0.5 * factor)])
    assert durations.cell_s(B) == (4.0, False)
    # A session with 25 times as many repetitions counts five times as much: more than the others together.
    durations.learn_cells([took(A, 4.0, 4.0, repetitions=25)])
    assert durations.cell_s(B) == (8.0, False)


def test_the_oldest_cells_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.forecast.learned.MOST_CELLS", 2)
    durations = Durations()
    durations.learn_cells([took(A, 1.0), took(B, 2.0)])
    durations.learn_cells([took(A, 1.0), took(LOSSY, 1.0)])
    assert set(durations.cells) == {"a", "c"}


def test_a_session_takes_its_start_and_the_shares_of_its_repetitions() -> None:
    durations = Durations()
    assert durations.session_s("virtual", 7.0) == 7.0
    durations.learn_session("virtual", 1.0, 4.0)
    assert durations.session_s("virtual", 10.0) == 13.0
    # One session that something disturbed changes nothing.
    durations.learn_session("virtual", 1.0, 100.0)
    assert durations.session_s("virtual", 10.0) == 13.0
    assert durations.session_s("virtual", 0.0) == 0.0
    assert durations.session_s("real", 10.0) == 10.0


def test_repetitions_are_under_way_together_for_longer_or_shorter_than_computed() -> None:
    durations = Durations()
    beside, alone = (company("real", alone=alone) for alone in (False, True))
    assert durations.company_factor(beside) == 1.0
    for shares_s in (3.0, 50.0, 4.0):
        durations.learn_company(beside, shares_s, 2.0)
    durations.learn_company(alone, 0.0, 0.0)  # There were none.
    assert [durations.company_factor(name) for name in (beside, alone)] == [2.0, 1.0]


def test_a_plan_that_was_run_takes_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.forecast.learned.MOST_PLANS", 1)
    durations = Durations()
    durations.learn_plan(plan_key(["a", "b", "b"]), 20.0)
    durations.learn_plan(plan_key(["b", "a", "b"]), 30.0)
    assert durations.plan_s(plan_key(["b", "b", "a"])) == 20.0
    assert durations.plan_s(plan_key(["a", "b"])) is None
    durations.learn_plan("another", 1.0)
    assert durations.plan_s(plan_key(["a", "b", "b"])) is None


def test_a_command_takes_what_others_took_around_their_sessions() -> None:
    durations = Durations()
    assert durations.around_s("p") == AROUND_S
    for key, seconds in (("p", 3.0), ("q", 9.0), ("r", 2.0), ("s", 4.0), ("t", 5.0)):
        durations.learn_around(key, seconds)
    assert durations.around_s("another") == 3.0
    assert durations.around_s("q") == 9.0


def test_what_runs_side_by_side_shares_the_sessions_time() -> None:
    shares = Shares()
    shares.handle_start(10.0, "a")
    shares.handle_start(11.0, "b")
    shares.handle_end(13.0, "a")
    shares.handle_end(16.0, "b")
    # 1 s alone and half of 2 s; half of 2 s and 3 s alone. Then nothing runs for 4 s.
    shares.handle_start(20.0, "a")
    shares.handle_end(22.0, "a")
    assert (shares.of("a"), shares.of("b")) == (2.0 + 2.0, 4.0)


def ended(seconds: float, *, well: bool = True) -> CellEnd:
    failure = None if well else Failure(ErrorKind.HOST, "it failed")
    return CellEnd(finished() if well else None, failure, round(seconds * 1e9))


def test_a_session_is_learned_with_the_attempts_that_did_not_count(place: Path) -> None:
    (cell,) = checked(adhoc("echo", size=7))
    parameters = cell.for_run(next(iter(Plan.of(adhoc("echo", size=7)))))
    plan = [planned_cell(number, parameters=parameters, expected_load=0.1) for number in (0, 1)]
    first, second = plan
    now = 0.0
    keeper = Timekeeper(Observer(), lambda: now)
    keeper.run_started("name", plan, plan)
    now = 1.0
    keeper.cell_started(first)
    keeper.cell_started(second)
    now = 5.0
    keeper.cell_repeated(first, ended(4.0))  # It was disturbed by the other one, which keeps what it has.
    keeper.cell_ended(second, ended(4.0))
    keeper.cell_started(first)
    now = 8.0
    keeper.cell_ended(first, ended(3.0))
    keeper.learn(9.5)
    durations = read_durations()
    time = cell_time(first)
    # Shares: 2 s and 3 s of the first, 2 s of the second; they took 3 s and 4 s.
    assert (durations.cell_s(time), durations.share_s(time)) == ((3.5, True), 3.5)
    assert durations.starts == {"real": [2.5]}
    # They might have run side by side, for 4 s.
    assert durations.company_factor(company("real", alone=False)) == 7.0 / 4.0
    assert durations.plan_s(key_of_plan(plan)) == 9.5
    assert durations.session_s("real", 2 * 3.5) == 9.5


@pytest.mark.parametrize("wall_s", [None, 9.5])
def test_a_session_that_was_stopped_or_had_failures_says_nothing_of_its_plan(place: Path, wall_s: float | None) -> None:
    plan = [planned_cell(0), planned_cell(1)]
    keeper = Timekeeper(Observer(), lambda: 0.0)
    keeper.run_started("name", plan, plan)
    for planned, well in zip(plan, (True, wall_s is None), strict=True):
        keeper.cell_started(planned)
        keeper.cell_ended(planned, ended(4.0, well=well))
    keeper.learn(wall_s)
    durations = read_durations()
    assert (durations.plans, durations.starts) == ({}, {})
    assert durations.cell_s(cell_time(plan[0])) == (4.0, True)


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
    assert Kind.of(parameters).name == "real echo - clean"
    virtual = {**parameters, "host": {"clock": "virtual"}, "path": {"reverse": {"loss": 0.1}}}
    assert Kind.of(virtual).name == "virtual echo - loss"
    # What a network that is really there takes says nothing of emulated paths.
    network = {**parameters, "path": {"backend": "network", "server": "192.0.2.7:9470"}}
    assert Kind.of(network).name == "real echo - network"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where durations are kept for one test."""
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "kept" / "durations.json"))
    return tmp_path / "kept" / "durations.json"


def test_what_is_learned_is_kept(place: Path) -> None:
    assert read_durations() == Durations()
    learn(lambda durations: durations.learn_cells([took(A, 3.0)]))
    learn(lambda durations: durations.learn_session("virtual", 1.0, 4.0))
    assert read_durations().cell_s(A) == (3.0, True)
    assert read_durations().session_s("virtual", 1.0) == 4.0
    place.unlink()
    assert read_durations() == Durations()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": "crosswind.durations/9"}', f'{{"schema": "{SCHEMA}"}}',
     f'{{"schema": "{SCHEMA}", "runs": "x", "cells": {{}}, "kinds": {{}}, "starts": {{}}, "plans": {{}}}}',
     '{"schema": "crosswind.durations/1", "runs": 1, "cells": {"a": [1, 3.0]}, "around": [], "plans": {}}',
     *(f'{{"schema": "{SCHEMA}", "runs": 1, "cells": {{}}, "kinds": {kinds}, "companies": {{}}, "starts": {{}},'
       f' "plans": {plans}, "around": [], "around_plans": {{}}}}'
       for kinds, plans in (('{"a": []}', "{}"), ("{}", '{"p": [[1]]}')))],
)  # fmt: skip
def test_a_damaged_file_is_as_none_and_is_replaced(place: Path, text: str) -> None:
    place.parent.mkdir()
    place.write_text(text, encoding="utf-8")
    assert read_durations() == Durations()
    learn(lambda durations: durations.learn_cells([took(A, 3.0)]))
    assert read_durations().runs == 1


def test_a_place_that_cannot_be_written_stops_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "file" / "durations.json"))
    learn(lambda durations: durations.learn_cells([took(A, 3.0)]))
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
    durations.learn_cells([took(first, 2 * first.predicted_s)])
    learned = plan_costs(plan, cells, packets=False, capture=False, learned=durations)
    assert (learned.learned_from, learned.measured_runs, learned.runs) == (1, 3, 6)
    assert learned.serial_ns == pytest.approx(2 * computed.serial_ns, abs=6)
    assert learned.packets == computed.packets
    assert not learned.is_measured_plan
    keys = [cell_time_of(cell.parameters, cell.forecast).key for cell in cells]
    durations.learn_plan(plan_key(3 * keys), 44.0)
    again = plan_costs(plan, cells, packets=False, capture=False, learned=durations)
    assert again.is_measured_plan
    assert (again.parallel_ns, again.wall_ns) == (44 * 10**9, round((44 + AROUND_S) * 1e9))


def test_repetitions_that_had_to_run_alone_are_forecast_to_do_so_again() -> None:
    # As computed, all run at a time.
    made = study(ECHO + '[path]\ndelay = ["10ms", "20ms"]\n[host]\nclock = "real"\n[study]\nrepetitions = 3\n')
    plan, cells = Plan.of(made), checked(made)
    first, second = (cell_time_of(cell.parameters, cell.forecast) for cell in cells)
    computed = plan_costs(plan, cells, packets=False, capture=False)
    assert computed.parallel_ns == pytest.approx(second.predicted_s * 1e9, rel=1e-6)
    # They disturbed each other, and each was run again alone. What another cell takes was learned from the session.
    durations = Durations()
    durations.learn_cells([took(first, first.predicted_s, 1.25 * first.predicted_s, repetitions=3)])
    durations.learn_session("real", 10.0, 10.5)
    durations.learn_company(company("real", alone=False), 10.0, 4.0)
    learned = plan_costs(plan, cells, packets=False, capture=False, learned=durations)
    expected_s = 0.5 + 3 * 1.25 * first.predicted_s + 2.5 * second.predicted_s
    assert learned.parallel_ns == pytest.approx(expected_s * 1e9, rel=1e-6)


def test_the_cell_of_a_plan_is_that_of_its_run() -> None:
    (cell,) = checked(adhoc("echo", size=7))
    planned = planned_cell(0, parameters=cell.for_run(next(iter(Plan.of(adhoc("echo", size=7))))))
    assert cell_time(planned).key == cell_time_of(cell.parameters, cell.forecast).key


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_plan_says_whether_its_forecast_is_learned(crosswind: Crosswind, place: Path) -> None:
    arguments = ("plan", "echo", "--delay", "10ms", "--clock", "real", "--repetitions", "1")
    assert "forecast computed: nothing was learned on this machine yet" in words(crosswind(*arguments)[1])
    (cell,) = checked(Study.adhoc("echo", {"path.delay": "10ms", "host.clock": "real"}))
    time = cell_time_of(cell.parameters, cell.forecast)
    learn(lambda durations: durations.learn_cells([took(time, 30.0)]))
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
