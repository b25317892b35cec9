"""Cells that run at the same time: how many and where, what they report, and one that fails beside others."""

import errno
import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from conftest import GOOD_END
from crosswind.errors import DiskError
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.processors import Processors
from crosswind.execution.scheduler import Scheduler
from crosswind.execution.workers.local import LocalWorker
from crosswind.store.directory import Store
from crosswind.store.files import write_sealed
from crosswind.store.manifest import ClockJump, Status
from crosswind.store.wallclock import WallClock
from fixture_types import FakeCell
from runs import new_run
from sessions import FIRST, GATED, Crowd, Log, light, missing, result, session


def at_once(run: Path, keys: list[str]) -> int:
    """Most cells that were between their notes "began" and "ends" at the same time, by one clock."""

    def noted(key: str, name: str) -> float:
        return float((run / "cells" / key / name).read_text())

    times = [(noted(key, "began"), 1) for key in keys] + [(noted(key, "ends"), -1) for key in keys]
    running = [0]
    for _, change in sorted(times):
        running.append(running[-1] + change)
    return max(running)


def test_no_more_than_so_many_run_at_a_time(fake_cell: FakeCell, tmp_path: Path) -> None:
    # The first wait until a whole window went by with four of them: whoever could start beside them would have.
    body = GATED + "note('began'); begin(); wait_for('a-window-together'); note('ends'); finish()"
    log = Crowd(tmp_path, together=4)
    assert session(tmp_path / "run", fake_cell(body), log, cells=12, jobs=4).run() is Status.DONE
    keys = [f"c{number:03d}-r00" for number in range(12)]
    assert at_once(tmp_path / "run", keys) == 4
    assert [line for line in log.lines if line.startswith("start")] == [f"start {key}" for key in keys]
    assert sorted(line for line in log.lines if line.startswith("end")) == [f"end {key} ok" for key in keys]
    assert sorted(path.name for path in (tmp_path / "run" / "cells").iterdir()) == keys
    assert [result(tmp_path / "run", key)["beside"] for key in keys[:4]] == [3, 3, 3, 3]
    assert missing(Store.read(tmp_path / "run")) == []


def test_waiting_cells_run_together_and_heavy_ones_afterwards_alone(fake_cell: FakeCell, tmp_path: Path) -> None:
    # Ten of 0.01 fit into half of one processor; so many may run before anything is known.
    body = GATED + "note('began'); begin(); wait_for('together'); note('ends'); finish()"
    log = Crowd(tmp_path, together=FIRST)
    store = new_run(tmp_path / "run", plan=light(FIRST + 2, heavy=2))
    assert Scheduler(store, fake_cell(body), [log], jobs=None).run() is Status.DONE
    heavy, waiting = ["c000-r00", "c001-r00"], [f"c{number:03d}-r00" for number in range(2, FIRST + 2)]
    assert at_once(tmp_path / "run", waiting) == FIRST
    assert {result(tmp_path / "run", key)["beside"] for key in waiting} == {FIRST - 1}
    starts = [line for line in log.lines if line.startswith("start")]
    assert starts == [f"start {key}" for key in waiting + heavy]
    assert log.lines[-5:] == ["start c000-r00", "end c000-r00 ok", "start c001-r00", "end c001-r00 ok", "over"]
    alone = result(tmp_path / "run", "c000-r00")
    assert (alone["beside"], alone["placement"]) == (0, Processors().place("tun"))


def test_a_cell_with_company_is_told_to_tell_of_itself(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GATED + (
        "with open(os.path.join(cell['output']['directory'], 'sent'), 'w') as file: json.dump(cell, file)\n"
        "begin(); wait_for('together'); finish()"
    )
    log = Crowd(tmp_path, together=2)
    assert Scheduler(new_run(tmp_path / "run", plan=light(3, heavy=1)), fake_cell(body), [log]).run() is Status.DONE
    cells = tmp_path / "run" / "cells"
    sent = [json.loads((cells / f"c{number:03d}-r00" / "sent").read_text()) for number in range(3)]
    assert [cell.get("heartbeat_ns") for cell in sent] == [None, 500_000_000, 500_000_000]
    assert sent[0]["placement"] == Processors().place("tun")


def test_a_cell_that_dies_leaves_its_company_alone(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GATED + (
        "begin(); wait_for('together')\n"
        "if key == 'c001-r00': os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait_for('c001-r00-ended'); note('proof'); finish()"
    )
    log = Crowd(tmp_path, together=4)
    assert session(tmp_path / "run", fake_cell(body), log, cells=4, jobs=4).run() is Status.DONE
    assert log.lines[5] == "end c001-r00 killed"
    store = Store.read(tmp_path / "run")
    assert missing(store) == ["c001-r00"]
    results = store.results()
    killed = results["c001-r00"].failure
    assert killed is not None
    assert "SIGKILL" in killed.message
    for key in ("c000-r00", "c002-r00", "c003-r00"):
        assert (results[key].failure, results[key].valid) == (None, True)
        assert (tmp_path / "run" / "cells" / key / "proof").exists()


def test_a_full_disk_in_one_cell_ends_all(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GATED + (
        "signal.signal(2, lambda *_: sys.exit(130)); begin()\n"
        "if key == 'c000-r00': finish(); sys.exit()\n"
        "if key == 'c002-r00': wait_for('together'); wait_for('c000-r00-ended'); "
        "say(event='error', kind='disk', message='no space', hint='do'); sys.exit(1)\n"
        "while True: signal.pause()"
    )
    with pytest.raises(DiskError, match="no space"):
        session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=4), cells=6, jobs=4).run()
    store = Store.read(tmp_path / "run")
    assert store.manifest.status is Status.STOPPED
    assert list(store.results()) == ["c000-r00"]
    assert [path.name for path in (tmp_path / "run" / "cells").iterdir()] == ["c000-r00"]


def test_a_disk_that_refuses_one_cell_ends_all(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: Any) -> None:
        if path.name == "result.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_sealed(path, data)

    monkeypatch.setattr("crosswind.store.cells.write_sealed", refuse)
    body = GATED + "begin(); wait_for('together')\nif key == 'c001-r00': finish(); sys.exit()\nsignal.pause()"
    with pytest.raises(DiskError, match="No space left"):
        session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=3), jobs=3).run()
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status is Status.STOPPED


def test_files_are_kept_beside_the_next_cell_where_that_disturbs_nobody(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalWorker, "is_undisturbed", True)
    log = Log()
    assert session(tmp_path / "run", fake_cell(GOOD_END + "start(); finish()"), log, cells=3).run() is Status.DONE
    starts_and_ends = ["start c000", "start c001", "end c000", "start c002", "end c001", "end c002"]
    assert [line.partition("-")[0] for line in log.lines[1:-1]] == starts_and_ends
    assert [result(tmp_path / "run", f"c{number:03d}-r00")["beside"] for number in range(3)] == [0, 0, 0]


def test_a_disk_that_refuses_ends_the_next_cell_too(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalWorker, "is_undisturbed", True)
    monkeypatch.setattr("crosswind.store.cells.sync_tree", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    body = GATED + "begin()\nif key == 'c000-r00': finish(); sys.exit()\nsignal.pause()"
    log = Log()
    with pytest.raises(DiskError, match="No space left"):
        session(tmp_path / "run", fake_cell(body), log, cells=2).run()
    assert log.lines[1:] == ["start c000-r00", "start c001-r00", "over"]
    assert list((tmp_path / "run" / "cells").iterdir()) == []


def test_processors_of_a_cell_that_ended_are_given_to_the_next(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.execution.workers.local.Processors", lambda: Processors(range(8)))
    body = GATED + "begin(); wait_for('c002-r00-ended' if key == 'c000-r00' else 'together'); finish()"
    assert session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=2), jobs=2).run() is Status.DONE
    emulators = [result(tmp_path / "run", f"c{number:03d}-r00")["placement"]["emulator_cpus"] for number in range(3)]
    assert emulators == [[6], [7], [7]]


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_is_recorded_and_moves_no_stamp(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_s: float
) -> None:
    monkeypatch.setattr("crosswind.execution.scheduler.WINDOW_S", 0.05)
    set_by_s = [0.0]

    def set_clock() -> None:
        set_by_s[0] = by_s

    # The machine's clocks stand still but for what it is set by.
    clock = WallClock(lambda: 1_000_000_050.0 + set_by_s[0], lambda: 50.0)
    body = GATED + "begin(); wait_for('remark'); finish()"
    log = Crowd(tmp_path, together=2)
    log.when_together = set_clock
    scheduler = Scheduler(new_run(tmp_path / "run", 2), fake_cell(body), [log], jobs=2, clock=clock)
    assert scheduler.run() is Status.DONE
    stamp = "2001-09-09T01:47:30.000+00:00"
    assert scheduler.clock_jumps == [ClockJump(at=stamp, by_s=by_s)]
    remark = f"the machine's clock was set by {by_s:+.1f} s, or it slept; times measured are not affected"
    assert log.lines[3] == f"remark {remark}"
    results = Store.read(tmp_path / "run").results().values()
    assert {time for stored in results for time in (stored.started, stored.ended)} == {stamp}


def test_what_cells_report_becomes_a_window_of_all(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Concurrency] = []
    monkeypatch.setattr("crosswind.execution.scheduler.WINDOW_S", 0.05)

    class Windows(Crowd):
        def concurrency(self, now: Concurrency) -> None:
            super().concurrency(now)
            if now.window.released:
                seen.append(now)
            if sum(now.window.released for now in seen) == 100:
                (tmp_path / "counted").touch()

    # Each reports once, and ends when windows have what both reported.
    counters = "'released': 50, 'late': 1, 'wait_ns': 10_000_000, 'probe_wait_ns': 40_000_000, 'exchange_delay': 0.1"
    body = GATED + (f"begin(); progress(fidelity={{{counters}}})\nwait_for('counted'); finish()")
    log = Windows(tmp_path, together=2)
    scheduler = Scheduler(new_run(tmp_path / "run", plan=light(2)), fake_cell(body), [log], jobs=2)
    assert scheduler.run() is Status.DONE
    assert sum(now.window.released for now in seen) == 100
    assert {(now.window.late_share, now.window.starvation, now.window.probe_starvation) for now in seen} == {
        (0.02, 0.01, 0.04)
    }
    assert {now.limit for now in seen} == {None}
