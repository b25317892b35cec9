"""Runs started by a program: `crosswind.run`, `crosswind.resume` and `crosswind.load`, without a command line."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crosswind
from conftest import GOOD_END
from crosswind.cell import clocks
from crosswind.cell.events import CellEvent, Ready
from crosswind.cell.process import CellEnd
from crosswind.errors import DiskError, EngineError, StoreError, StudyError
from crosswind.execution import session
from crosswind.peers.registry import KnownPeer, Obstacle
from crosswind.store.manifest import Status
from crosswind.store.plan import PlannedCell

STUDY = """
title = "Two cells"
[path]
loss = ["0%", "5%"]
[workload]
kind = "echo"
transport = "tcp"
messages = 60
[quick]
"path.loss" = ["5%"]
"""

GOOD = GOOD_END + "start(); finish()"
SECOND_WAITS = (
    GOOD_END
    + """
signal.signal(2, lambda *_: sys.exit(130))
start()
if '/c001' in cell['output']['directory'] and not os.path.exists('../go'): ready(); signal.pause()
finish()
"""
)


class StopWhenReady(crosswind.Observer):
    """Stops the run as Ctrl-C does, once a cell is ready."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def cell_event(self, planned: PlannedCell, event: CellEvent) -> None:
        if isinstance(event, Ready):
            os.kill(os.getpid(), signal.SIGINT)

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        self.ended.append(planned.key)


@pytest.fixture
def use_cell(
    fake_cell: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], None]:
    """Puts a made-up cell in place, and the study `two.toml` into an empty working directory."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "two.toml").write_text(STUDY, encoding="utf-8")

    def use(body: str) -> None:
        monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(body)))

    return use


@pytest.mark.parametrize("study", ["two.toml", Path("two.toml"), crosswind.load_study], ids=["name", "path", "study"])
def test_a_study_is_run_by_its_name_its_path_or_itself(
    use_cell: Callable[[str], None], capfd: pytest.CaptureFixture[str], study: Any
) -> None:
    use_cell(GOOD)
    run = crosswind.run(study("two.toml") if callable(study) else study, command=["my-program"])
    assert run.directory.parent == Path("crosswind-runs")
    assert (run.status, run.interrupted, run.planned, run.valid) == (Status.DONE, False, 2, True)
    assert list(run.results()) == ["c000-r00", "c001-r00"]
    assert [cell.levels for cell in run.record().cells] == [{"path.loss": "0%"}, {"path.loss": "5%"}]
    assert run.manifest.sessions[0].command == ("my-program",)
    assert capfd.readouterr() == ("", "")


def test_options_are_those_of_the_command_line(use_cell: Callable[[str], None]) -> None:
    use_cell(GOOD)
    run = crosswind.run("two.toml", quick=True, output="here", jobs=1, packets=True, profile=True)
    assert (run.directory, run.planned) == (Path("here"), 1)
    (result,) = run.results().values()
    output = result.planned.parameters["output"]
    assert (output["packets"], output["capture"], output["profile"]) == (True, False, True)


def test_a_run_is_loaded_as_it_was_returned(use_cell: Callable[[str], None]) -> None:
    use_cell(GOOD)
    run = crosswind.run("two.toml", output="here")
    loaded = crosswind.load("here")
    assert repr(loaded) == repr(run) == "Run('here', done)"
    assert (loaded.manifest, loaded.results()) == (run.manifest, run.results())
    with pytest.raises(StoreError, match="is not a run"):
        crosswind.load("nowhere")


def test_a_run_is_analysed_and_reported_in_one_call_each(use_cell: Callable[[str], None], tmp_path: Path) -> None:
    use_cell(GOOD)
    run = crosswind.run(crosswind.load_study("quickstart").quick())
    result = crosswind.analyse(run)
    assert (result.study, result.valid, result.executed) == ("quickstart", True, run.planned)
    assert crosswind.write_html(run) == run.directory / "report.html"
    page = crosswind.write_html(run, tmp_path / "page.html")
    assert result.title in page.read_text(encoding="utf-8")


def test_an_interrupted_run_goes_on_where_it_was_stopped(use_cell: Callable[[str], None]) -> None:
    use_cell(SECOND_WAITS)
    first = crosswind.run("two.toml", output="here", jobs=1, progress=StopWhenReady())
    assert (first.interrupted, first.valid) == (True, False)
    done = set(first.results())
    Path("../go").touch()
    observer = StopWhenReady()
    run = crosswind.resume(study=crosswind.load_study("two.toml"), directory="here", progress=observer)
    assert (run.status, run.valid, len(run.manifest.sessions)) == (Status.DONE, True, 2)
    assert set(observer.ended) == {"c000-r00", "c001-r00"} - done
    assert all(session.ended for session in run.manifest.sessions)


class Remarks(crosswind.Observer):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def remark(self, text: str) -> None:
        self.texts.append(text)


def test_a_resumed_run_says_which_absent_cells_could_run_by_now_and_leaves_them_out(
    use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacles = [Obstacle("Chromium is not installed", "apt-get install chromium")]
    monkeypatch.setattr(KnownPeer, "missing", lambda _peer, _transport: next(iter(obstacles), None))
    use_cell(GOOD)
    client = 'client = ["native", "chromium"]\n[study]\noptional_peers = ["chromium"]\n'
    Path("peers.toml").write_text(
        f'title = "Peers"\n[workload]\nkind = "echo"\ntransport = "websocket"\n{client}', encoding="utf-8"
    )
    remarks = Remarks()
    planned = crosswind.run("peers.toml", output="here").planned
    crosswind.resume("here", progress=remarks)
    assert remarks.texts == []
    obstacles.clear()
    assert crosswind.resume("here", progress=remarks).planned == planned == 1
    (text,) = remarks.texts
    assert text.startswith("1 cell left out of this run could run by now: its program is installed")
    assert text.endswith("--output DIR")


def test_a_run_that_goes_on_keeps_how_many_cells_run_at_a_time(use_cell: Callable[[str], None]) -> None:
    use_cell(GOOD)
    crosswind.run("two.toml", output="here", jobs=3)
    crosswind.resume("here")
    crosswind.resume("here", jobs=2)
    assert [session.jobs for session in crosswind.resume("here").manifest.sessions] == [3, 3, 2, 2]
    crosswind.run("two.toml", output="there")
    assert [session.jobs for session in crosswind.resume("there").manifest.sessions] == [None, None]


def test_what_a_resumed_run_had_is_what_its_scheduler_is_given(
    use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int | None] = []

    class Recorded(session.Scheduler):
        def __init__(self, *arguments: Any, jobs: int | None, **named: Any) -> None:
            given.append(jobs)
            super().__init__(*arguments, jobs=jobs, **named)

    monkeypatch.setattr(session, "Scheduler", Recorded)
    use_cell(GOOD)
    crosswind.run("two.toml", output="here", jobs=3)
    crosswind.resume("here")
    assert given == [3, 3]


@pytest.mark.parametrize(("asked", "remarks"), [("auto", 1), ("virtual", 0)])
def test_a_run_says_so_when_the_machine_leaves_it_virtual_time_only(
    use_cell: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, asked: str, remarks: int
) -> None:
    use_cell(GOOD)
    monkeypatch.setattr(clocks, "real_time_obstacle", lambda: EngineError("no network"))
    heard: list[str] = []
    observer = crosswind.Observer()
    monkeypatch.setattr(observer, "remark", heard.append)
    study = crosswind.load_study("two.toml").with_overrides({"host.clock": asked})
    # The kernel of these tests starts nothing.
    with pytest.raises(EngineError, match=r"cannot start|does not run"):
        crosswind.run(study, output="run", progress=observer)
    assert sum("cells run in virtual time" in text for text in heard) == remarks


def test_a_run_with_an_invalid_cell_is_not_valid(use_cell: Callable[[str], None]) -> None:
    use_cell(GOOD_END + "start(); finish(valid='/c000' in cell['output']['directory'])")
    run = crosswind.run("two.toml")
    assert (run.status, run.valid) == (Status.DONE, False)


def test_a_run_may_be_started_in_any_thread(use_cell: Callable[[str], None]) -> None:
    use_cell(GOOD)
    runs: list[crosswind.Run] = []
    thread = threading.Thread(target=lambda: runs.append(crosswind.run("two.toml")))
    thread.start()
    thread.join()
    assert [run.valid for run in runs] == [True]


def test_mistakes_and_failures_are_exceptions(
    use_cell: Callable[[str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    use_cell(GOOD_END + "start(); say(event='error', kind='privilege', message='no', hint='do'); sys.exit(1)")
    with pytest.raises(StudyError, match="nowhere"):
        crosswind.run("nowhere")
    with pytest.raises(EngineError, match="no") as caught:
        crosswind.run("two.toml", output="here")
    assert caught.value.hint == "do"
    assert crosswind.load("here").status is Status.STOPPED
    with pytest.raises(StoreError, match="already holds a run"):
        crosswind.run("two.toml", output="here")
    assert capfd.readouterr() == ("", "")


def test_a_failure_after_the_first_cell_says_how_to_go_on(use_cell: Callable[[str], None]) -> None:
    full = "say(event='error', kind='disk', message='no space', hint='do'); sys.exit(1)"
    use_cell(GOOD_END + f"start()\nif 'r01' in cell['output']['directory']: {full}\nfinish()")
    study = crosswind.load_study("two.toml").with_overrides({"study.repetitions": 2})
    with pytest.raises(DiskError, match="no space") as caught:
        crosswind.run(study, output="here", jobs=1)
    assert caught.value.hint == "do · continue later: crosswind run --resume here"


def test_every_public_name_is_there_and_no_other() -> None:
    assert all(getattr(crosswind, name) for name in crosswind.__all__)
    with pytest.raises(AttributeError, match="module 'crosswind' has no attribute 'walk'"):
        _ = crosswind.walk
