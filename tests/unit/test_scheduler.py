"""The scheduler with cells that are well, that fail and that are stopped; and what a session leaves in the store."""

import errno
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cell_events import MISSED_FIDELITY
from conftest import GOOD_END
from crosswind.cell.events import Event, Progress, Ready
from crosswind.cell.process import CellEnd
from crosswind.errors import DiskError, EngineError
from crosswind.execution.concurrency import FIRST_PER_PROCESSOR, Concurrency
from crosswind.execution.observer import Observer
from crosswind.execution.processors import Processors
from crosswind.execution.scheduler import Scheduler
from crosswind.execution.stops import stopped_by_signals
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.files import write_json
from crosswind.store.manifest import ClockJump, Status
from crosswind.store.plan import PlannedCell
from crosswind.store.record import record_of
from crosswind.store.wallclock import WallClock
from runs import echo_samples, new_run, planned_cell

FakeCell = Callable[[str], Path]
AFFINITY = os.sched_getaffinity(0)
"""Before any test."""

FIRST = min(10, FIRST_PER_PROCESSOR * len(AFFINITY))
"""Light cells that run at a time before anything is known."""


class Log(Observer):
    """An observer that remembers, and may act on an event."""

    def __init__(self, act: Callable[[Event], None] = lambda _event: None) -> None:
        self.lines: list[str] = []
        self._act = act

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        self.lines.append(f"run {len(missing)}/{len(plan)}")

    def cell_started(self, planned: PlannedCell) -> None:
        self.lines.append(f"start {planned.key}")

    def cell_event(self, planned: PlannedCell, event: Event) -> None:
        self._act(event)

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        self.lines.append(f"end {planned.key} {end.failure.kind if end.failure else 'ok'}")

    def cell_repeated(self, planned: PlannedCell, end: CellEnd) -> None:
        self.lines.append(f"again {planned.key}")

    def remark(self, text: str) -> None:
        self.lines.append(f"remark {text}")

    def run_ended(self) -> None:
        self.lines.append("over")


class Crowd(Log):
    """An observer of cells that wait for each other: opens a gate, by name, for every cell that is ready and that
    ended, for windows in which as many are ready as there ever will be, and for remarks.
    """

    def __init__(self, gates: Path, together: int) -> None:
        super().__init__()
        self.ready: list[str] = []
        self.when_together: Callable[[], None] = lambda: None
        self._gates = gates
        self._together = together

    def cell_event(self, planned: PlannedCell, event: Event) -> None:
        if isinstance(event, Ready):
            self.ready.append(planned.key)
            if len(self.ready) == self._together:
                self.when_together()
                (self._gates / "together").touch()

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        super().cell_ended(planned, end)
        (self._gates / f"{planned.key}-ended").touch()

    def concurrency(self, now: Concurrency) -> None:
        if len(self.ready) >= self._together:
            (self._gates / "a-window-together").touch()

    def remark(self, text: str) -> None:
        super().remark(text)
        (self._gates / "remark").touch()


GATED = (
    GOOD_END
    + """
key = os.path.basename(cell['output']['directory']).split('.')[0]
run = os.path.dirname(os.path.dirname(cell['output']['directory']))
def note(name): open(os.path.join(cell['output']['directory'], name), 'w').write(repr(time.monotonic()))
def begin(): start(); ready()
def wait_for(gate):
    for _ in range(4000):
        if os.path.exists(os.path.join(os.path.dirname(run), gate)): return
        time.sleep(0.005)
    sys.exit(f'{gate} was never opened')
"""
)
"""For cells that wait, for 20 s at most, until a Crowd opens a gate."""


def session(directory: Path, binary: Path, observer: Log, cells: int = 3, *, jobs: int | None = 1) -> Scheduler:
    fresh = not (directory / "manifest.json").exists()
    store = new_run(directory, cells) if fresh else Store.resume(directory)
    return Scheduler(store, binary, observer, jobs=jobs)


def light(cells: int, *, heavy: int = 0) -> list[PlannedCell]:
    """A plan whose first cells are heavy and whose others hardly load a processor."""
    return [planned_cell(number, expected_load=1.0 if number < heavy else 0.01) for number in range(cells)]


def missing(store: Store) -> list[str]:
    return [planned.key for planned in store.missing()]


def missed(store: Store, key: str) -> int:
    return CellsFolder(store.directory).missed()[key]


def result(run: Path, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((run / "cells" / name / "result.json").read_text(encoding="utf-8"))
    return read


def at_once(run: Path, keys: list[str]) -> int:
    """Most cells that were between their notes "began" and "ends" at the same time, by one clock."""

    def noted(key: str, name: str) -> float:
        return float((run / "cells" / key / name).read_text())

    times = [(noted(key, "began"), 1) for key in keys] + [(noted(key, "ends"), -1) for key in keys]
    running = [0]
    for _, change in sorted(times):
        running.append(running[-1] + change)
    return max(running)


def test_cells_run_one_after_another_in_the_plans_order(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    scheduler = session(tmp_path / "run", fake_cell(GOOD_END + "start(); finish()"), log, cells=2)
    assert scheduler.run() is Status.DONE
    assert log.lines == ["run 2/2", "start c000-r00", "end c000-r00 ok", "start c001-r00", "end c001-r00 ok", "over"]
    assert Store.read(tmp_path / "run").manifest.status is Status.DONE


def test_a_cell_is_told_where_to_write(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/proof', 'w').write('x'); start(); finish()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    assert (tmp_path / "run" / "cells" / "c000-r00" / "proof").exists()
    result = json.loads((tmp_path / "run" / "cells" / "c000-r00" / "result.json").read_text(encoding="utf-8"))
    assert result["parameters"] == planned_cell(0).parameters


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


def test_the_third_attempt_counts_whatever_it_is(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    assert session(tmp_path / "run", fake_cell(LATE_END + "start(); end(False)"), log, cells=1).run() is Status.DONE
    assert log.lines.count("start c000-r00") == 3
    store = Store.read(tmp_path / "run")
    assert (missed(store, "c000-r00"), missing(store)) == (2, [])


def test_a_failing_cell_is_data_and_the_rest_runs(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "start()\nif '/c001' in cell['output']['directory']: os.kill(os.getpid(), 9)\nfinish()"
    log = Log()
    assert session(tmp_path / "run", fake_cell(body), log).run() is Status.DONE
    assert [line for line in log.lines if line.startswith("end")] == [
        "end c000-r00 ok",
        "end c001-r00 killed",
        "end c002-r00 ok",
    ]
    store = Store.read(tmp_path / "run")
    assert missing(store) == ["c001-r00"]
    failure = store.results()["c001-r00"].failure
    assert failure is not None
    assert record_of(store).cells[1].failure == failure


def test_what_a_failed_cell_left_is_no_measurement(fake_cell: FakeCell, tmp_path: Path) -> None:
    echo_samples().write_ipc(tmp_path / "samples.arrow")
    body = f"import shutil; shutil.copy({str(tmp_path / 'samples.arrow')!r}, cell['output']['directory']); start()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    (cell,) = record_of(Store.read(tmp_path / "run")).cells
    assert cell.failure is not None
    assert cell.samples.is_empty()


def test_a_table_that_is_none_fails_its_cell_only(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/samples.arrow', 'w').write('junk'); start(); finish()"
    assert session(tmp_path / "run", fake_cell(body), Log(), cells=1).run() is Status.DONE
    failure = Store.read(tmp_path / "run").results()["c000-r00"].failure
    assert failure is not None
    assert failure.kind == "protocol"
    assert "samples.arrow" in failure.message
    assert [p.name for p in (tmp_path / "run" / "cells" / "c000-r00").iterdir()] == ["result.json"]


@pytest.mark.parametrize(("kind", "error"), [("privilege", EngineError), ("disk", DiskError)])
def test_what_would_fail_every_cell_ends_the_run(
    fake_cell: FakeCell, tmp_path: Path, kind: str, error: type[Exception]
) -> None:
    body = f"start(); say(event='error', kind={kind!r}, message='no', hint='do'); sys.exit(1)"
    with pytest.raises(error, match="no") as caught:
        session(tmp_path / "run", fake_cell(body), Log()).run()
    assert getattr(caught.value, "hint", None) == "do"
    store = Store.read(tmp_path / "run")
    assert store.manifest.status is Status.STOPPED
    assert len(missing(store)) == 3
    assert store.results() == {}


def test_a_stop_keeps_what_was_finished_and_resume_runs_the_rest_once(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = (
        GOOD_END
        + "signal.signal(2, lambda *_: sys.exit(130)); start()\n"
        + "if '/c001' in cell['output']['directory'] and not os.path.exists('go'): ready(); signal.pause()\n"
        + "finish()"
    )
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        log = Log(lambda event: scheduler.stop() if isinstance(event, Ready) else None)
        scheduler = session(tmp_path / "run", fake_cell(body), log)
        assert scheduler.run() is Status.INTERRUPTED
        scheduler.store.close()
        store = Store.read(tmp_path / "run")
        assert store.manifest.status is Status.INTERRUPTED
        assert missing(store) == ["c001-r00", "c002-r00"]
        assert sorted(path.name for path in (tmp_path / "run" / "cells").iterdir()) == ["c000-r00"]
        (tmp_path / "go").touch()
        log = Log()
        assert session(tmp_path / "run", fake_cell(body), log).run() is Status.DONE
    finally:
        os.chdir(here)
    assert [line for line in log.lines if line.startswith("start")] == ["start c001-r00", "start c002-r00"]
    assert missing(Store.read(tmp_path / "run")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_a_run_with_a_deaf_cell(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr("crosswind.cell.process.INTERRUPT_GRACE_S", 0.01)
    body = "signal.signal(2, signal.SIG_IGN); start(); ready()\nwhile True: signal.pause()"
    log = Log(lambda event: os.kill(os.getpid(), number) if isinstance(event, Ready) else None)
    scheduler = session(tmp_path / "run", fake_cell(body), log)
    before = signal.getsignal(number)
    with stopped_by_signals(scheduler.stop):
        assert scheduler.run() is Status.INTERRUPTED
    assert signal.getsignal(number) is before
    assert Store.read(tmp_path / "run").results() == {}


def test_a_second_stop_kills_at_once(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = "signal.signal(2, signal.SIG_IGN); start(); ready()\nwhile True: signal.pause()"

    def twice(event: Event) -> None:
        if isinstance(event, Ready):
            scheduler.stop()
            scheduler.stop()

    scheduler = session(tmp_path / "run", fake_cell(body), Log(twice))
    assert scheduler.run() is Status.INTERRUPTED
    assert missing(scheduler.store) == ["c000-r00", "c001-r00", "c002-r00"]


def test_a_program_that_cannot_be_started_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start"):
        session(tmp_path / "run", tmp_path / "nothing", Log()).run()
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status is Status.STOPPED


# Side by side


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
    assert Scheduler(store, fake_cell(body), log, jobs=None).run() is Status.DONE
    heavy, waiting = ["c000-r00", "c001-r00"], [f"c{number:03d}-r00" for number in range(2, FIRST + 2)]
    assert at_once(tmp_path / "run", waiting) == FIRST
    assert {result(tmp_path / "run", key)["beside"] for key in waiting} == {FIRST - 1}
    starts = [line for line in log.lines if line.startswith("start")]
    assert starts == [f"start {key}" for key in waiting + heavy]
    assert log.lines[-5:] == ["start c000-r00", "end c000-r00 ok", "start c001-r00", "end c001-r00 ok", "over"]
    alone = result(tmp_path / "run", "c000-r00")
    assert (alone["beside"], alone["placement"]) == (0, Processors().place("tun").as_json())


def test_a_cell_with_company_is_told_to_tell_of_itself(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GATED + (
        "with open(os.path.join(cell['output']['directory'], 'sent'), 'w') as file: json.dump(cell, file)\n"
        "begin(); wait_for('together'); finish()"
    )
    log = Crowd(tmp_path, together=2)
    assert Scheduler(new_run(tmp_path / "run", plan=light(3, heavy=1)), fake_cell(body), log).run() is Status.DONE
    cells = tmp_path / "run" / "cells"
    sent = [json.loads((cells / f"c{number:03d}-r00" / "sent").read_text()) for number in range(3)]
    assert [cell.get("heartbeat_ns") for cell in sent] == [None, 500_000_000, 500_000_000]
    assert sent[0]["placement"] == Processors().place("tun").as_json()


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
        write_json(path, data)

    monkeypatch.setattr("crosswind.store.cells.write_json", refuse)
    body = GATED + "begin(); wait_for('together')\nif key == 'c001-r00': finish(); sys.exit()\nsignal.pause()"
    with pytest.raises(DiskError, match="No space left"):
        session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=3), jobs=3).run()
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status is Status.STOPPED


# Stopping many


def test_a_stop_asks_all_that_run_to_end(fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With a grace of an hour, what ends has done so itself.
    monkeypatch.setattr("crosswind.cell.process.INTERRUPT_GRACE_S", 3600.0)
    body = GATED + (
        "def bye(*_): open(os.path.join(os.path.dirname(run), key + '-bye'), 'w'); sys.exit(130)\n"
        "signal.signal(2, bye); begin()\nwhile True: signal.pause()"
    )
    log = Crowd(tmp_path, together=10)
    scheduler = session(tmp_path / "run", fake_cell(body), log, cells=12, jobs=10)
    log.when_together = scheduler.stop
    assert scheduler.run() is Status.INTERRUPTED
    assert len(list(tmp_path.glob("*-bye"))) == 10
    assert sum(line.startswith("start") for line in log.lines) == 10
    assert not any(line.startswith("end") for line in log.lines)
    store = Store.read(tmp_path / "run")
    assert (store.manifest.status, len(missing(store))) == (Status.INTERRUPTED, 12)
    assert list((tmp_path / "run" / "cells").iterdir()) == []


DEAF = GATED + "signal.signal(2, signal.SIG_IGN); begin()\nwhile True: signal.pause()"


def test_those_that_do_not_listen_are_killed_after_the_grace(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.cell.process.INTERRUPT_GRACE_S", 0.01)
    log = Crowd(tmp_path, together=10)
    scheduler = session(tmp_path / "run", fake_cell(DEAF), log, cells=12, jobs=10)
    log.when_together = scheduler.stop
    assert scheduler.run() is Status.INTERRUPTED
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status is Status.INTERRUPTED


@pytest.mark.timeout(60)
def test_a_second_stop_kills_all_at_once(fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.cell.process.INTERRUPT_GRACE_S", 3600.0)
    log = Crowd(tmp_path, together=10)
    scheduler = session(tmp_path / "run", fake_cell(DEAF), log, cells=12, jobs=10)

    def twice() -> None:
        scheduler.stop()
        scheduler.stop()

    log.when_together = twice
    assert scheduler.run() is Status.INTERRUPTED
    assert list((tmp_path / "run" / "cells").iterdir()) == []


def test_what_ended_before_a_stop_reached_it_is_kept(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.cell.process.INTERRUPT_GRACE_S", 3600.0)
    body = GATED + (
        "signal.signal(2, lambda *_: (finish(), os._exit(0)) if key == 'c001-r00' else sys.exit(130)); begin()\n"
        "while True: signal.pause()"
    )
    log = Crowd(tmp_path, together=3)
    scheduler = session(tmp_path / "run", fake_cell(body), log, jobs=3)
    log.when_together = scheduler.stop
    assert scheduler.run() is Status.INTERRUPTED
    assert missing(Store.read(tmp_path / "run")) == ["c000-r00", "c002-r00"]


# The fidelity budget


def test_a_missed_attempt_is_stored_aside_with_its_company(fake_cell: FakeCell, tmp_path: Path) -> None:
    # The first attempt at c000 ends, too late, when c001 has ended; the second has no company.
    body = (GATED + LATE_END) + (
        "begin(); wait_for('together' if key == 'c001-r00' else 'c001-r00-ended')\n"
        "end(key == 'c001-r00' or missed == 1)"
    )
    assert session(tmp_path / "run", fake_cell(body), Crowd(tmp_path, together=2), cells=2, jobs=2).run() is Status.DONE
    run = tmp_path / "run"
    placed = Processors()
    together = [placed.place("tun", beside=1).as_json() for _ in range(2)]

    def facts(name: str) -> tuple[int, int, dict[str, Any]]:
        stored = result(run, name)
        return stored["attempt"], stored["beside"], stored["placement"]

    assert facts("c000-r00.missed-1") == (1, 1, together[0])
    assert facts("c001-r00") == (1, 1, together[1])
    assert facts("c000-r00") == (2, 0, placed.place("tun").as_json())
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
    assert caught.value.hint is not None
    assert "--set budget.delay_error_p99" in caught.value.hint
    assert log.lines[-1] == "over"
    store = Store.read(tmp_path / "run")
    assert store.manifest.status is Status.STOPPED
    assert sorted(store.results()) == ["c002-r00", "c003-r00", "c004-r00"]
    assert [missed(store, f"c{number:03d}-r00") for number in range(5)] == [1, 1, 1, 1, 1]
    assert missing(store) == ["c000-r00", "c001-r00"]


def test_without_hope_side_by_side_three_are_tried_alone(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Crowd(tmp_path, together=FIRST)
    body = GATED + LATE_END + "begin(); wait_for('together'); end(False)"
    with pytest.raises(EngineError, match="not even alone"):
        Scheduler(new_run(tmp_path / "run", plan=light(FIRST)), fake_cell(body), log).run()
    store = Store.read(tmp_path / "run")
    results = store.results()
    assert len(results) == 3
    assert {(stored.attempt, stored.beside) for stored in results.values()} == {(2, 0)}
    first = [result(tmp_path / "run", f"c{number:03d}-r00.missed-1") for number in range(FIRST)]
    assert {(stored["attempt"], stored["beside"]) for stored in first} == {(1, FIRST - 1)}


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


# Processors and clocks


def test_while_cells_run_the_emulators_processors_are_theirs(fake_cell: FakeCell, tmp_path: Path) -> None:
    seen: list[set[int]] = []
    log = Log(lambda _event: seen.append(os.sched_getaffinity(0)))
    assert session(tmp_path / "run", fake_cell(GOOD_END + "start(); finish()"), log, cells=1).run() is Status.DONE
    assert seen == [set(Processors(sorted(AFFINITY)).hosts)] * 2
    assert os.sched_getaffinity(0) == AFFINITY
    with pytest.raises(EngineError):
        session(tmp_path / "other", tmp_path / "nothing", Log()).run()
    assert os.sched_getaffinity(0) == AFFINITY


def test_processors_of_a_cell_that_ended_are_given_to_the_next(
    fake_cell: FakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.execution.scheduler.Processors", lambda: Processors(range(8)))
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
    scheduler = Scheduler(new_run(tmp_path / "run", 2), fake_cell(body), log, jobs=2, clock=clock)
    assert scheduler.run() is Status.DONE
    stamp = "2001-09-09T01:47:30.000+00:00"
    assert scheduler.clock_jumps == [ClockJump(at=stamp, by_s=by_s)]
    remark = f"the machine's clock was set by {by_s:+.1f} s, or it slept; times measured are not affected"
    assert log.lines[3] == f"remark {remark}"
    results = Store.read(tmp_path / "run").results().values()
    assert {time for stored in results for time in (stored.started, stored.ended)} == {stamp}


# What cells report


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
    scheduler = Scheduler(new_run(tmp_path / "run", plan=light(2)), fake_cell(body), log, jobs=2)
    assert scheduler.run() is Status.DONE
    assert sum(now.window.released for now in seen) == 100
    assert {(now.window.late_share, now.window.starvation, now.window.probe_starvation) for now in seen} == {
        (0.02, 0.01, 0.04)
    }
    assert {now.limit for now in seen} == {None}
