"""The engine against cell processes that keep the protocol, and many that do not."""

import json
import os
import selectors
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import GOOD_END
from crosswind.cell.binary import find_binary, used_placeholders, with_ports
from crosswind.cell.events import CellEvent, Started
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.errors import EngineError
from fixture_types import FakeCell

CELL = {"schema": "crosswind.cell/1", "id": "a", "workload": {"kind": "echo"}}


def run(
    binary: Path,
    cell: Mapping[str, Any] = CELL,
    *,
    grace_s: float = 10,
    on_event: Callable[[CellProcess, CellEvent], None] = lambda _process, _event: None,
) -> CellEnd:
    """Drives one cell to its end, as the scheduler does."""
    process = CellProcess(cell, binary=binary, on_event=lambda event: on_event(process, event), grace_s=grace_s)
    while not process.done:
        with selectors.DefaultSelector() as selector:
            for stream in process.streams():
                selector.register(stream, selectors.EVENT_READ)
            for key, _ in selector.select(max(0, process.next_wakeup() - time.monotonic())):
                if key.fileobj in process.streams():
                    process.handle_readable(key.fileobj)
        if not process.done:
            process.handle_time(time.monotonic())
    return process.end()


def test_a_good_cell_gives_its_events_and_its_result(fake_cell: FakeCell) -> None:
    events: list[str] = []
    body = GOOD_END + "start(); say(event='ready', setup_ns=1); progress(); say(event='measured'); finish()"
    end = run(fake_cell(body), on_event=lambda _, event: events.append(event.event))
    assert events == ["started", "ready", "progress", "measured", "finished"]
    assert end.failure is None
    assert end.finished is not None
    assert end.finished.id == "a"
    assert end.parts_ns is not None
    assert 0 < end.parts_ns < end.elapsed_ns


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("start(); os.kill(os.getpid(), signal.SIGKILL)", "killed", "SIGKILL"),
        ("start(); os.kill(os.getpid(), signal.SIGSEGV)", "killed", "SIGSEGV"),
        ("start(); finish(); os.kill(os.getpid(), signal.SIGKILL)", "killed", "SIGKILL"),
        ("start(); print('panic: garbage', flush=True)", "protocol", "not JSON: 'panic: garbage'"),
        ("start(); say(event='ready')", "protocol", "its event 'ready' lacks setup_ns"),
        ("start(); say(event='finished', schema='crosswind.cell-result/9')", "protocol", "crosswind.cell-result/9"),
        ("say(event='ready', setup_ns=1)", "protocol", "first event is 'ready'"),
        ("start()", "protocol", "ended with status 0 and printed neither a result nor an error"),
        ("sys.exit(3)", "protocol", "ended with status 3"),
        ("start(); sys.stderr.write('the reason'); sys.exit(3)", "protocol", "on its standard error: the reason"),
        ("start(); say(event='error', kind='host', message='no', hint='do'); sys.exit(1)", "host", "no"),
        ("start(); os.write(1, b'x' * 3_000_000)", "protocol", "a line of more than"),
    ],
)
def test_a_bad_cell_is_a_failure_and_not_a_crash(fake_cell: FakeCell, body: str, kind: str, message: str) -> None:
    end = run(fake_cell(GOOD_END + body))
    assert end.finished is None
    assert end.failure is not None
    assert end.failure.kind == kind
    assert message in end.failure.message


def test_an_error_event_keeps_its_hint(fake_cell: FakeCell) -> None:
    end = run(fake_cell("start(); say(event='error', kind='privilege', message='m', hint='sudo'); sys.exit(1)"))
    assert end.failure == Failure(ErrorKind.PRIVILEGE, "m", "sudo")


def test_a_cell_that_hangs_is_killed_at_its_deadline(fake_cell: FakeCell) -> None:
    end = run(fake_cell("start(); signal.pause()"), {**CELL, "deadline_ns": 200_000_000}, grace_s=0.1)
    assert end.failure is not None
    assert end.failure.kind == "deadline"


def test_a_cell_that_closes_its_streams_and_stays_is_killed(fake_cell: FakeCell) -> None:
    end = run(fake_cell("start(); os.close(1); os.close(2); signal.pause()"))
    assert end.failure is not None
    assert end.failure.kind == "killed"


def test_an_interrupt_lets_the_cell_end_by_itself(fake_cell: FakeCell) -> None:
    body = """
    def bye(*_):
        say(event='error', kind='interrupted', message='interrupted', hint=None)
        sys.exit(130)
    signal.signal(signal.SIGINT, bye)
    start()
    signal.pause()
    """
    end = run(fake_cell(body), on_event=_interrupt_when_started)
    assert end.failure is not None
    assert end.failure.kind == "interrupted"


def test_a_cell_deaf_to_the_interrupt_is_killed(fake_cell: FakeCell) -> None:
    body = "signal.signal(signal.SIGINT, signal.SIG_IGN); start()\nwhile True: signal.pause()"
    end = run(fake_cell(body), on_event=_interrupt_when_started)
    assert end.failure is not None
    assert end.failure.kind == "interrupted"


def test_the_whole_group_dies_with_a_killed_cell(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = f"""
    child = os.fork()
    if child == 0:
        signal.pause()
    open({str(tmp_path / "child")!r}, "w").write(str(child))
    start()
    signal.pause()
    """
    run(fake_cell(body), on_event=lambda process, _: process.kill())
    child = int((tmp_path / "child").read_text())
    # The group was killed; the orphan's entry goes once init has collected it.
    _wait_until(lambda: _is_gone(child))


def test_a_cell_that_does_not_read_its_input_is_no_crash(tmp_path: Path) -> None:
    program = tmp_path / "deaf"
    program.write_text("#!/bin/sh\nexec <&-\nexit 7\n", encoding="utf-8")
    program.chmod(0o755)
    end = run(program)
    assert end.failure is not None
    assert "status 7" in end.failure.message


def test_what_cannot_be_started_says_what_to_do(tmp_path: Path) -> None:
    program = tmp_path / "not-a-program"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    with pytest.raises(EngineError, match="cannot start") as caught:
        CellProcess(CELL, binary=program)
    assert caught.value.hint


def test_the_binary_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "cell"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("CROSSWIND_CELL", str(program))
    assert find_binary() == program


def test_a_wrong_place_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_CELL", "/nowhere/cell")
    with pytest.raises(EngineError, match="/nowhere/cell") as caught:
        find_binary()
    assert "CROSSWIND_CELL" in str(caught.value.hint)


def test_the_binary_is_found_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "crosswind-cell"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.delenv("CROSSWIND_CELL")
    monkeypatch.setattr("sys.executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "elsewhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == program
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineError, match="cannot find the program crosswind-cell"):
        find_binary()


SERVE = '{"transport": "websocket", "address": "{server}:80"}'
PROGRAMS = {
    "workload": {"kind": "program", "client": ["{python}", "-m", "x{cell}"], "server": ["{cell}", "--serve", SERVE]}
}


def test_placeholders_of_programs_are_filled_in_and_other_braces_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/opt/{cell}/python")
    found = with_ports(PROGRAMS, Path("/opt/crosswind-cell"))
    assert found["workload"]["client"] == ["/opt/{cell}/python", "-m", "x/opt/crosswind-cell"]
    assert found["workload"]["server"] == ["/opt/crosswind-cell", "--serve", SERVE]
    assert PROGRAMS["workload"]["client"] == ["{python}", "-m", "x{cell}"]


def test_only_programs_have_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/opt/python")
    binary = Path("/opt/crosswind-cell")
    echo = {"id": "{python}", "workload": {"kind": "echo"}}
    ping = {"workload": {"kind": "program", "client": ["ping", "{server}"], "server": None}}
    assert [with_ports(cell, binary) for cell in (echo, ping)] == [echo, ping]
    assert used_placeholders([echo, ping], binary) == {}
    assert used_placeholders([PROGRAMS, ping], binary) == {"{python}": "/opt/python", "{cell}": "/opt/crosswind-cell"}


def test_a_cell_process_is_given_what_placeholders_stand_for(fake_cell: FakeCell, tmp_path: Path) -> None:
    body = f"start()\nopen({str(tmp_path / 'read')!r}, 'w').write(json.dumps(cell))\n{GOOD_END}"
    run(fake_cell(body), cell=PROGRAMS)
    read = json.loads((tmp_path / "read").read_text(encoding="utf-8"))
    assert read["workload"]["client"][0] == sys.executable


def _interrupt_when_started(process: CellProcess, event: CellEvent) -> None:
    if isinstance(event, Started):
        process.interrupt()


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


def _wait_until(condition: Callable[[], bool]) -> None:
    """For what the kernel does in its own time. pytest's timeout bounds it."""
    while not condition():
        time.sleep(0.005)
