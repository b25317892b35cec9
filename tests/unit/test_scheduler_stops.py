"""Sessions that are stopped, once or twice, by a program or a signal: what ends how, and what is kept."""

import os
import signal
from pathlib import Path

import pytest

from conftest import GOOD_END
from crosswind.cell.events import CellEvent, Ready
from crosswind.execution.stops import stopped_by_signals
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from fixture_types import FakeCell
from sessions import GATED, Crowd, Log, missing, session


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

    def twice(event: CellEvent) -> None:
        if isinstance(event, Ready):
            scheduler.stop()
            scheduler.stop()

    scheduler = session(tmp_path / "run", fake_cell(body), Log(twice))
    assert scheduler.run() is Status.INTERRUPTED
    assert missing(scheduler.store) == ["c000-r00", "c001-r00", "c002-r00"]


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
        # A handler that prints may interrupt the printing of an event.
        "signal.pthread_sigmask(signal.SIG_BLOCK, [2]); begin(); signal.sigwait([2])\n"
        "finish() if key == 'c001-r00' else sys.exit(130)"
    )
    log = Crowd(tmp_path, together=3)
    scheduler = session(tmp_path / "run", fake_cell(body), log, jobs=3)
    log.when_together = scheduler.stop
    assert scheduler.run() is Status.INTERRUPTED
    assert missing(Store.read(tmp_path / "run")) == ["c000-r00", "c002-r00"]
