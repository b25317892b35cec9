"""The scheduler with cells that are well, that fail and that are stopped; and what a session leaves in the store."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import GOOD_END
from crosswind.engine import Event, Outcome
from crosswind.errors import DiskError, EngineError
from crosswind.admission import Entry
from crosswind.scheduler import Concurrency, Scheduler, stopped_by_signals
from crosswind.store import Store
from runs import echo_samples, entry, manifest

FakeCell = Callable[[str], Path]


class Log:
    """A watcher that remembers, and may act on an event."""

    def __init__(self, act: Callable[[Event], None] = lambda _event: None) -> None:
        self.lines: list[str] = []
        self._act = act

    def run_started(self, plan: list[dict[str, Any]], missing: list[str]) -> None:
        self.lines.append(f"run {len(missing)}/{len(plan)}")

    def cell_started(self, entry: Entry) -> None:
        self.lines.append(f"start {entry['key']}")

    def cell_event(self, entry: Entry, event: Event) -> None:
        self._act(event)

    def cell_ended(self, entry: Entry, outcome: Outcome) -> None:
        self.lines.append(f"end {entry['key']} {outcome.failure.kind if outcome.failure else 'ok'}")

    def cell_repeated(self, entry: Entry, outcome: Outcome) -> None:
        self.lines.append(f"again {entry['key']}")

    def concurrency(self, now: Concurrency) -> None:
        pass

    def remark(self, text: str) -> None:
        self.lines.append(f"remark {text}")

    def run_ended(self) -> None:
        self.lines.append("over")


def session(directory: Path, binary: Path, watcher: Log, cells: int = 3) -> Scheduler:
    fresh = not (directory / "manifest.json").exists()
    store = Store.create(directory, manifest(cells)) if fresh else Store.resume(directory)
    return Scheduler(store, binary, watcher, jobs=1)


def test_cells_run_one_after_another_in_the_plans_order(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    scheduler = session(tmp_path / "run", fake_cell(GOOD_END + "start(); finish()"), log, cells=2)
    assert scheduler.run()
    assert log.lines == ["run 2/2", "start c000-r00", "end c000-r00 ok", "start c001-r00", "end c001-r00 ok", "over"]
    assert Store.read(tmp_path / "run").manifest.status == "done"


def test_a_cell_is_told_where_to_write(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/proof', 'w').write('x'); start(); finish()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    assert (tmp_path / "run" / "cells" / "c000-r00" / "proof").exists()
    result = json.loads((tmp_path / "run" / "cells" / "c000-r00" / "result.json").read_text(encoding="utf-8"))
    assert result["parameters"] == entry(0)["parameters"]


LATE_END = """
import glob, os, pathlib
def finish(within):
    say(event='finished', schema='crosswind.cell-result/1', id='', valid=within, reasons=[] if within else ['late'],
        warnings=[], samples={'rows': 0, 'ok': 0, 'lost': 0}, ledger={'closed': True},
        fidelity={'within_budget': within}, elapsed_ns=1)
key, cells = (lambda p: (p.name.split('.')[0], p.parent))(pathlib.Path(cell['output']['directory']))
missed = len(glob.glob(str(cells / (key + '.missed-*'))))
start()
"""


def test_a_repetition_that_missed_its_budget_is_run_again_later(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    body = LATE_END + "finish(key != 'c000-r00' or missed == 1)"
    assert session(tmp_path / "run", fake_cell(body), log, cells=2).run()
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
    record = Store.read(tmp_path / "run").record()
    assert record.cells[0].finished
    assert record.cells[0].finished["warnings"] == ["attempt 2: those before missed the fidelity budget"]
    assert [(run.key, run.finished and run.finished["valid"]) for run in record.cells] == [
        ("c000-r00", True),
        ("c001-r00", True),
    ]


def test_the_third_attempt_counts_whatever_it_is(fake_cell: FakeCell, tmp_path: Path) -> None:
    log = Log()
    assert session(tmp_path / "run", fake_cell(LATE_END + "finish(False)"), log, cells=1).run()
    assert log.lines.count("start c000-r00") == 3
    store = Store.read(tmp_path / "run")
    assert (store.missed("c000-r00"), store.missing()) == (2, [])


def test_a_failing_cell_is_data_and_the_rest_runs(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "start()\nif '/c001' in cell['output']['directory']: os.kill(os.getpid(), 9)\nfinish()"
    log = Log()
    assert session(tmp_path / "run", fake_cell(body), log).run()
    assert [line for line in log.lines if line.startswith("end")] == [
        "end c000-r00 ok",
        "end c001-r00 killed",
        "end c002-r00 ok",
    ]
    store = Store.read(tmp_path / "run")
    assert store.missing() == ["c001-r00"]
    assert store.record().cells[1].failure == store.results()["c001-r00"]["failure"]


def test_what_a_failed_cell_left_is_no_measurement(fake_cell: FakeCell, tmp_path: Path) -> None:
    echo_samples().write_ipc(tmp_path / "samples.arrow")
    body = f"import shutil; shutil.copy({str(tmp_path / 'samples.arrow')!r}, cell['output']['directory']); start()"
    session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    (cell,) = Store.read(tmp_path / "run").record().cells
    assert cell.failure is not None
    assert cell.samples.is_empty()


def test_a_table_that_is_none_fails_its_cell_only(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = GOOD_END + "open(cell['output']['directory'] + '/samples.arrow', 'w').write('junk'); start(); finish()"
    assert session(tmp_path / "run", fake_cell(body), Log(), cells=1).run()
    failure = Store.read(tmp_path / "run").results()["c000-r00"]["failure"]
    assert failure["kind"] == "protocol"
    assert "samples.arrow" in failure["message"]
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
    assert store.manifest.status == "stopped"
    assert len(store.missing()) == 3
    assert store.results() == {}


def test_a_stop_keeps_what_was_finished_and_resume_runs_the_rest_once(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = (
        GOOD_END
        + "signal.signal(2, lambda *_: sys.exit(130)); start()\n"
        + "if '/c001' in cell['output']['directory'] and not os.path.exists('go'): say(event='ready'); signal.pause()\n"
        + "finish()"
    )
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        log = Log(lambda event: scheduler.stop() if event["event"] == "ready" else None)
        scheduler = session(tmp_path / "run", fake_cell(body), log)
        assert not scheduler.run()
        scheduler.store.close()
        store = Store.read(tmp_path / "run")
        assert store.manifest.status == "interrupted"
        assert store.missing() == ["c001-r00", "c002-r00"]
        assert sorted(path.name for path in (tmp_path / "run" / "cells").iterdir()) == ["c000-r00"]
        (tmp_path / "go").touch()
        log = Log()
        assert session(tmp_path / "run", fake_cell(body), log).run()
    finally:
        os.chdir(here)
    assert [line for line in log.lines if line.startswith("start")] == ["start c001-r00", "start c002-r00"]
    assert Store.read(tmp_path / "run").missing() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_a_run_with_a_deaf_cell(fake_cell: FakeCell, tmp_path: Path, number: signal.Signals) -> None:
    body = "signal.signal(2, signal.SIG_IGN); start(); say(event='ready')\nwhile True: signal.pause()"
    log = Log(lambda event: os.kill(os.getpid(), number) if event["event"] == "ready" else None)
    scheduler = session(tmp_path / "run", fake_cell(body), log)
    before = signal.getsignal(number)
    with stopped_by_signals(scheduler.stop):
        assert not scheduler.run()
    assert signal.getsignal(number) is before
    assert Store.read(tmp_path / "run").results() == {}


def test_a_second_stop_kills_at_once(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = "signal.signal(2, signal.SIG_IGN); start(); say(event='ready')\nwhile True: signal.pause()"

    def twice(event: Event) -> None:
        if event["event"] == "ready":
            scheduler.stop()
            scheduler.stop()

    scheduler = session(tmp_path / "run", fake_cell(body), Log(twice))
    assert not scheduler.run()
    assert scheduler.store.missing() == ["c000-r00", "c001-r00", "c002-r00"]


def test_a_program_that_cannot_be_started_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot start"):
        session(tmp_path / "run", tmp_path / "nothing", Log()).run()
    assert list((tmp_path / "run" / "cells").iterdir()) == []
    assert Store.read(tmp_path / "run").manifest.status == "stopped"
