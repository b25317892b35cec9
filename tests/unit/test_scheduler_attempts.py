"""Repetitions that miss their fidelity budget: run again later, and a session that no cell keeps it in."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cell_events import MISSED_FIDELITY
from conftest import GOOD_END
from crosswind.cell.events import Progress, Ready
from crosswind.errors import EngineError
from crosswind.execution.processors import Processors
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.store.record import record_of
from crosswind.study.design import Study
from fixture_types import FakeCell
from sessions import GATED, Crowd, Log, missing, result, session


def missed(store: Store, key: str) -> int:
    return CellsFolder(store.directory, store.manifest.id).missed()[key]


LATE_END = (
    GOOD_END
    + f"""
import glob, pathlib
def end(within):
    fidelity = {{**{MISSED_FIDELITY!r}, 'within_budget': within}}
    finish(valid=within, reasons=[] if within else REASONS, fidelity=fidelity)
REASONS = ['late']
key, cells = (lambda p: (p.name.split('.')[0], p.parent))(pathlib.Path(cell['output']['directory']))
missed = len(glob.glob(str(cells / (key + '.missed-*'))))
"""
)
"""Defines end(within) for a fake cell that keeps its fidelity budget or misses it."""


def test_a_repetition_that_missed_its_budget_is_run_again_later(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    body = LATE_END + "start(); end(key != 'c000-r00' or missed == 1)"
    assert session(tmp_path / "run", fake_cell(body), log, cells=2).run() is Status.DONE
    assert [line for line in log.lines if not line.startswith("start")] == [
        "run 2/2",
        "again c000-r00",
        "end c001-r00 ok",
        "end c000-r00 ok",
        "over",
    ]
    cells = tmp_path / "run" / "cells"
    assert sorted(path.name for path in cells.iterdir()) == ["c000-r00", "c000-r00.missed-1", "c001-r00"]
    missed = json.loads((cells / "c000-r00.missed-1" / "result.json").read_text(encoding="utf-8"))
    assert missed["finished"]["reasons"] == ["late"]
    record = record_of(Store.read(tmp_path / "run"))
    assert record.cells[0].finished
    # That it was run again is known from the attempts. It succeeded in the end, and nobody is warned.
    assert (record.cells[0].finished.warnings, record.cells[0].attempts) == ((), 2)
    assert [(run.key, run.finished and run.finished.valid) for run in record.cells] == [
        ("c000-r00", True),
        ("c001-r00", True),
    ]


def test_a_missed_attempt_is_stored_aside_with_its_company(fake_cell: FakeCell, tmp_path: Path) -> None:
    # The first attempt at c000 ends, too late, when c001 has ended; the second has no company.
    body = (GATED + LATE_END) + (
        "begin(); wait_for('together' if key == 'c001-r00' else 'c001-r00-ended')\n"
        "end(key == 'c001-r00' or missed == 1)"
    )
    assert session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=2), cells=2, jobs=2).run() is Status.DONE
    run = tmp_path / "run"
    placed = Processors()
    together = [placed.place("tun", beside=1) for _ in range(2)]

    def facts(name: str) -> tuple[int, int, dict[str, Any]]:
        stored = result(run, name)
        return stored["attempt"], stored["beside"], stored["placement"]

    assert facts("c000-r00.missed-1") == (1, 1, together[0])
    assert facts("c001-r00") == (1, 1, together[1])
    assert facts("c000-r00") == (2, 0, placed.place("tun"))
    cells = record_of(Store.read(run)).cells
    assert [(cell.attempts, cell.beside) for cell in cells] == [(2, 0), (1, 1)]


def test_a_budget_that_nothing_keeps_ends_the_run_with_the_figures(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    body = LATE_END + "REASONS[0] = 'p99 of ' + key\nstart(); end(False)"
    with pytest.raises(EngineError, match="not even alone") as caught:
        session(tmp_path / "run", fake_cell(body), log, cells=5).run()
    # From the third miss on there is doubt: whoever misses it a second time, alone, is a witness.
    figures = " · ".join(f"{key}: p99 of {key}" for key in ("c002-r00", "c003-r00", "c004-r00"))
    assert caught.value.message == f"no cell of this run keeps the fidelity budget, not even alone: {figures}"
    # What was measured keeps the budget, whatever the cell says of it: no key is named.
    assert caught.value.hint == "ask for less (a lower rate, fewer connections)"
    assert log.lines[-1] == "over"
    store = Store.read(tmp_path / "run")
    assert store.manifest.status is Status.STOPPED
    assert sorted(store.results()) == ["c002-r00", "c003-r00", "c004-r00"]
    assert [missed(store, f"c{number:03d}-r00") for number in range(5)] == [1, 1, 1, 1, 1]
    assert missing(store) == ["c000-r00", "c001-r00"]


def thread(fraction: float) -> dict[str, Any]:
    return {"run_ns": 0, "wait_ns": 0, "elapsed_ns": 1, "fraction": fraction}


@pytest.mark.parametrize(
    ("measured", "options"),
    [
        ({"delay_error_ns": {"n": 1, "p50": 0, "p99": 1_500_000, "max": 0}}, {"delay_error_p99": "3ms"}),
        ({"starvation": thread(0.25)}, {"starvation": "50%"}),
        ({"probe_starvation": {"client": thread(0.1), "server": thread(0.6)}}, {"probe_starvation": "100%"}),
        (
            {
                "exchange_delay": {"hosts_ns": 25_000, "path_ns": 5000, "median_ns": 1_000_000},
                "starvation": thread(0.5),
            },
            {"starvation": "100%", "exchange_delay": "60us"},
        ),
    ],
)
def test_the_hint_names_the_keys_of_the_budget_that_are_missed(
    fake_cell: FakeCell, tmp_path: Path, measured: dict[str, Any], options: dict[str, str]
) -> None:
    body = LATE_END.replace("'within_budget': within}", f"'within_budget': within, **{measured!r}}}")
    with pytest.raises(EngineError, match="not even alone") as caught:
        session(tmp_path / "run", fake_cell(body + "start(); end(False)"), Log(), cells=5).run()
    assert caught.value.hint is not None
    written = dict(re.findall(r"--set budget\.(\w+)=(\S+)", caught.value.hint))
    assert written == options
    # Each is a key that a study takes.
    Study.adhoc("connect", {f"budget.{key}": value for key, value in written.items()})


def test_one_cell_that_kept_it_in_an_earlier_session_is_hope_enough(fake_cell: FakeCell, tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = LATE_END + "start()\nif key == 'c000-r00': end(True); sys.exit()\nready(); signal.pause()"
    log = Log(lambda event: scheduler.stop() if isinstance(event, Ready) else None)
    scheduler = session(run, fake_cell(first), log, cells=4)
    assert scheduler.run() is Status.INTERRUPTED
    scheduler.store.close()
    assert missing(Store.read(run)) == ["c001-r00", "c002-r00", "c003-r00"]
    assert session(run, fake_cell(LATE_END + "start(); end(False)"), Log()).run() is Status.DONE
    store = Store.read(run)
    assert [missed(store, f"c{number:03d}-r00") for number in range(4)] == [0, 2, 2, 2]
    assert result(run, "c003-r00")["attempt"] == 3


def test_attempts_go_on_where_an_earlier_session_was_stopped(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = LATE_END + "start(); progress(done=missed + 1)\nend(key != 'c000-r00')"
    run = tmp_path / "run"
    log = Log(lambda event: scheduler.stop() if isinstance(event, Progress) and event.done == 2 else None)
    scheduler = session(run, fake_cell(body.replace("\nend(", "\nmissed == 1 and signal.pause()\nend(")), log)
    assert scheduler.run() is Status.INTERRUPTED
    scheduler.store.close()
    assert missed(Store.read(run), "c000-r00") == 1
    log = Log()
    assert session(run, fake_cell(body), log).run() is Status.DONE
    assert log.lines == [
        "run 1/3",
        "start c000-r00",
        "again c000-r00",
        "start c000-r00",
        "end c000-r00 ok",
        "over",
    ]
    assert [missed(Store.read(run), "c000-r00"), result(run, "c000-r00")["attempt"]] == [2, 3]
