"""Whatever goes wrong with a guest is a failed cell that says why, the next cell runs, and nothing is left behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import crosswind
from conftest import ROOT, requires_binary
from crosswind.catalog.warning import ResultWarning
from crosswind.cell import guests, started
from crosswind.cell.events import CellEvent, Progress
from crosswind.cell.failure import ErrorKind
from crosswind.cell.guests import Template
from crosswind.cell.process import CellProcess
from crosswind.errors import EngineError, StudyError
from crosswind.execution.workers.worker import followed
from linux.lab import KEPT_BYTES, Object, assert_shortened, left_out_warning, ms, wait_until
from processes import descendants_of, is_running
from virtual.conftest import requires_kernel
from virtual.lab import VirtualCells, ended, run, start

ECHO: Object = {"kind": "echo", "transport": "tcp", "messages": 10}
PYTHON = [sys.executable, "-I", "-S", "-c"]
SLOW: Object = {"forward": {"delay_ns": ms(10), "rate_bps": 100_000_000}, "reverse": {"delay_ns": ms(10)}}
LOST_PROCESS = "a process of this machine was killed on which the guest ran one of its own"
SPIN = [*PYTHON, "while True: pass"]
SPIN = [*PYTHON, "while True: pass"]
FILL_MEMORY = "held = [bytearray(b'x') * (4 << 20) for _ in range(100)]"


@pytest.fixture
def own_template() -> Iterator[Template]:
    """A kernel that a test may end."""
    template = Template(requires_kernel(), requires_binary())
    yield template
    template.close()


@pytest.fixture
def small_template() -> Iterator[Template]:
    """A kernel with little memory, which is soon full."""
    template = Template(requires_kernel(), requires_binary(), memory_mb=64)
    yield template
    template.close()


def spinning(cells: VirtualCells) -> CellProcess:
    """A cell that goes on until it is ended, and that has begun."""
    directory = cells.directory()
    client = [*PYTHON, "import sys; print('here', flush=True)\nwhile True: pass"]
    process = cells.start({"kind": "program", "client": client}, directory)
    out = directory / "client.out"
    wait_until(lambda: out.exists() and out.read_text() == "here\n")
    return process


# --- killed -----------------------------------------------------------------------------------------------------------


def test_a_killed_guest_is_a_failed_cell_and_the_next_one_runs(cells: VirtualCells) -> None:
    process = spinning(cells)
    inside = descendants_of(process.pid)
    assert inside
    os.kill(process.pid, signal.SIGKILL)
    end = followed(process)
    assert end.failure is not None
    assert end.failure.kind is ErrorKind.KILLED
    assert "the kernel that it ran on ended before it did" in end.failure.message
    wait_until(lambda: not any(map(is_running, inside)))
    assert cells.run(ECHO).finished.valid


@pytest.mark.parametrize(("victim", "is_needed"), [(0, False), (1, True)], ids=["init", "crosswind-cell"])
def test_a_killed_process_inside_a_guest_does_not_make_it_hang(
    cells: VirtualCells, victim: int, is_needed: bool
) -> None:
    # One process of the host stands for each address space inside: the guest's first process, which only waits for the
    # end of the other, and crosswind-cell.
    inside: list[int] = []

    def kill(event: CellEvent) -> None:
        if isinstance(event, Progress) and not inside:
            inside.extend(sorted(descendants_of(process.pid)))
            os.kill(inside[victim], signal.SIGKILL)

    transfer = {"kind": "transfer", "transport": "tcp", "duration_ns": ms(1000)}
    process = cells.start(transfer, cells.directory(), kill, **SLOW)
    end = followed(process)
    assert len(inside) == 2
    if is_needed:
        assert end.failure is not None
        assert end.failure.kind is ErrorKind.KILLED
        assert LOST_PROCESS in end.failure.message
    wait_until(lambda: not any(map(is_running, inside)))
    assert cells.run(ECHO).finished.valid


def test_a_program_whose_process_is_killed_from_outside_has_no_result(cells: VirtualCells) -> None:
    # Inside it looks like a segmentation fault of the program's own.
    process = spinning(cells)
    os.kill(max(descendants_of(process.pid)), signal.SIGKILL)
    end = followed(process)
    assert end.failure is not None
    assert end.failure.kind is ErrorKind.KILLED
    assert LOST_PROCESS in end.failure.message
    faulty = [*PYTHON, "import ctypes; ctypes.string_at(0)"]
    ran = cells.run({"kind": "program", "client": faulty})
    assert ran.finished.program is not None
    assert ran.finished.program.signal == signal.SIGSEGV


def test_a_killed_template_takes_its_guests_along(own_template: Template, tmp_path: Path) -> None:
    cells = VirtualCells(own_template, requires_binary(), tmp_path)
    processes = [spinning(cells) for _ in range(2)]
    template = own_template._process.pid
    everything = {template, *descendants_of(template)}
    assert {process.pid for process in processes} < everything
    os.kill(template, signal.SIGKILL)
    for process in processes:
        end = followed(process)
        assert end.failure is not None
        assert end.failure.kind is ErrorKind.KILLED
    wait_until(lambda: not any(map(is_running, everything - {template})))
    with pytest.raises(EngineError, match="the kernel of virtual time does not run"):
        run(own_template, "true")


def test_a_killed_template_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    requires_kernel()
    from crosswind.execution import virtual

    virtual._TEMPLATES.close()  # those of other tests
    first = crosswind.virtual({}, workload=ECHO)
    (template,) = virtual._TEMPLATES._booted.values()
    os.kill(template._process.pid, signal.SIGKILL)
    template._process.wait()
    assert crosswind.virtual({}, workload=ECHO).packets.equals(first.packets)


SPINNING_PROGRAM = f"""
import crosswind, signal
# A shell has what it starts in the background ignore this.
signal.signal(signal.SIGINT, signal.default_int_handler)
crosswind.virtual({{"delay": "10ms"}}, workload={{"kind": "echo", "messages": 10}})
print("ready", flush=True)
crosswind.virtual({{}}, {SPIN!r}, {SPIN!r})
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_python_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    requires_kernel()
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT / "python"), "TMPDIR": str(tmp_path), "PYTHONFAULTHANDLER": "1",
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", SPINNING_PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    # The interpreter, the template, the guest, and at least one process of the guest's.
    wait_until(lambda: len(descendants_of(process.pid)) >= 4)
    everything = descendants_of(process.pid)
    process.send_signal(number)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        left = [pid for pid in (process.pid, *everything) if is_running(pid)]
        process.send_signal(signal.SIGABRT)  # It says where it is.
        pytest.fail(f"{left} of {process.pid} and {everything} still run:\n{process.communicate()[1].decode()}")
    assert process.returncode == -number
    wait_until(lambda: not any(map(is_running, everything)))
    if number == signal.SIGINT:
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5])
def test_a_kill_at_any_step_leaves_nothing(processes: int) -> None:
    requires_kernel()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    process = subprocess.Popen(
        [sys.executable, "-c", SPINNING_PROGRAM], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    # The template, the guest, and the guest's processes come one after another.
    seen: set[int] = set()

    def are_there() -> bool:
        now = descendants_of(process.pid)
        seen.update(now)
        return len(now) >= processes

    wait_until(are_there)
    process.kill()
    process.wait()
    wait_until(lambda: not any(map(is_running, seen)))


# --- what programs do -------------------------------------------------------------------------------------------------


def test_a_program_that_computes_for_ever_is_named(cells: VirtualCells, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "STUCK_S", 2.0)
    ran = cells.run({"kind": "program", "client": SPIN})
    failure = ran.end.failure
    assert failure is not None
    assert failure.kind is ErrorKind.DEADLINE
    said = (
        r"python[\d.]* computes without a system call \(its last one was number \d+\): virtual time stood still for 2 s"
    )
    assert re.match(said, failure.message), failure.message
    assert failure.hint is not None
    assert "--clock real" in failure.hint
    assert cells.run(ECHO).finished.valid


def test_a_program_that_fills_the_memory_is_ended_by_the_guests_kernel(
    small_template: Template, tmp_path: Path
) -> None:
    cells = VirtualCells(small_template, requires_binary(), tmp_path)
    ran = cells.run({"kind": "program", "client": [*PYTHON, FILL_MEMORY]})
    assert ran.finished.program is not None
    assert ran.finished.program.signal == signal.SIGKILL
    assert cells.run(ECHO).finished.valid


def test_a_guest_that_panics_is_a_failed_cell_with_the_kernels_last_words(
    small_template: Template, tmp_path: Path
) -> None:
    cells = VirtualCells(small_template, requires_binary(), tmp_path)
    script = 'echo 1 > /proc/sys/vm/panic_on_oom; exec "$@"'
    ran = cells.run({"kind": "program", "client": ["sh", "-c", script, "sh", *PYTHON, FILL_MEMORY]})
    failure = ran.end.failure
    assert failure is not None
    assert failure.kind is ErrorKind.KILLED
    assert "Kernel panic - not syncing: Out of memory" in failure.message
    assert cells.run(ECHO).finished.valid


def test_a_program_that_switches_the_guest_off_is_a_failed_cell(cells: VirtualCells) -> None:
    off = "import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)"
    ran = cells.run({"kind": "program", "client": [*PYTHON, off]})
    assert ran.end.finished is None or ran.end.finished.program is not None
    assert cells.run(ECHO).finished.valid


def test_a_program_that_never_ends_is_ended_at_the_deadline(cells: VirtualCells) -> None:
    waits = [*PYTHON, "import time\nwhile True: time.sleep(1)"]
    ran = cells.run({"kind": "program", "client": waits}, deadline_ns=ms(20_000))
    assert ran.end.failure is not None
    assert ran.end.failure.kind is ErrorKind.DEADLINE


def test_a_program_that_makes_processes_without_end_is_ended(cells: VirtualCells) -> None:
    forks = [*PYTHON, "import os, time\nfor _ in range(300):\n    if not os.fork(): time.sleep(1000)"]
    process = cells.start({"kind": "program", "client": forks}, cells.directory())
    inside: set[int] = set()
    while not process.done:
        inside.update(descendants_of(process.pid))
        for stream in process.streams():
            process.handle_readable(stream)
        time.sleep(0.02)
    end = process.end()
    assert end.failure is None, end.failure
    wait_until(lambda: not any(map(is_running, inside)))


def test_of_a_program_that_writes_much_the_beginning_and_the_end_are_kept(cells: VirtualCells) -> None:
    script = "echo first; head -c 100000000 /dev/zero; echo last"
    ran = cells.run({"kind": "program", "client": ["sh", "-c", script]})
    left_out = 100_000_000 + len("first\nlast\n") - 2 * KEPT_BYTES
    assert ran.finished.warnings == (ResultWarning(**left_out_warning("client", "out", left_out=left_out)),)
    assert_shortened(ran.directory / "client.out", left_out=left_out)


def test_a_program_that_writes_without_end_is_ended_and_told_why(cells: VirtualCells) -> None:
    # It takes no time at all, so that no timeout would end it.
    ran = cells.run({"kind": "program", "client": ["yes"]})
    first_error = ran.finished.samples.outcomes[0].first_error
    too_much = (
        "ended with signal 25 (SIGXFSZ), which ends who writes more than 1 GB to a file in virtual time: y | y | y"
    )
    assert first_error == f"the client program {too_much}"
    assert ran.finished.warnings == (
        ResultWarning(**left_out_warning("client", "out", left_out=(1 << 30) - 2 * KEPT_BYTES)),
    )
    assert (ran.directory / "client.out").stat().st_size < 2 * KEPT_BYTES + 100


def test_output_without_end_does_not_stop_a_guest(template: Template) -> None:
    # Nobody reads its errors for a while: the guest waits, and its clock with it.
    guest = start(template, "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x; echo; date +%s")
    time.sleep(0.5)
    ran = ended(guest)
    assert ran.status == 0
    assert ran.output.count("x") == 1_000_000
    assert ran.output.splitlines()[-1] == str(guests.START_NS // 10**9)


# --- bad input --------------------------------------------------------------------------------------------------------


def test_without_a_kernel_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requires_binary()
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    with pytest.raises(EngineError, match=f"there is no kernel of virtual time in {tmp_path}") as error:
        crosswind.virtual({}, workload=ECHO)
    assert "make kernel" in (error.value.hint or "")


@pytest.mark.parametrize("damage", ["no kernel.json", "no program", "not executable", "not a kernel"])
def test_a_damaged_kernel_is_no_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    real = requires_kernel().program.parent
    place = tmp_path / "6.12-damaged"
    place.mkdir()
    (tmp_path / "6.12").symlink_to(place)
    if damage != "no kernel.json":
        facts = json.loads((real / "kernel.json").read_bytes())
        facts.pop("sha256", None)  # With it, another program is no kernel at all.
        (place / "kernel.json").write_text(json.dumps(facts))
    if damage != "no program":
        (place / "linux").write_text("#!/bin/sh\necho something else\nexit 3\n")
        (place / "linux").chmod(0o644 if damage == "not executable" else 0o755)
    monkeypatch.setenv("CROSSWIND_KERNELS", str(tmp_path))
    said = "does not run: something else" if damage == "not a kernel" else "there is no kernel of virtual time"
    with pytest.raises(EngineError, match=said):
        crosswind.virtual({}, workload=ECHO)


def test_what_the_guests_kernel_does_not_have_is_named() -> None:
    requires_kernel()
    said = r"host\.congestion_control \(nonesuch\) is not offered by the kernel of virtual time"
    with pytest.raises(StudyError, match=said):
        crosswind.virtual({}, workload=ECHO, host={"congestion_control": "nonesuch"})


def test_a_program_that_is_not_there_is_named() -> None:
    requires_kernel()
    with pytest.raises(StudyError, match="cannot find the program /no/such/program") as error:
        crosswind.virtual({}, ["/no/such/program"])
    assert "installed" in (error.value.hint or "")
    with pytest.raises(StudyError, match="no-such-program"):
        crosswind.virtual({}, ["true"], ["no-such-program"])


def test_a_server_that_ends_at_once_says_why() -> None:
    requires_kernel()
    with pytest.raises(EngineError, match="the server wrote: out of order"):
        crosswind.virtual({}, ["true"], ["sh", "-c", "echo out of order >&2; exit 7"])


def test_a_directory_that_cannot_be_written_is_an_error(template: Template, tmp_path: Path) -> None:
    cells = VirtualCells(template, requires_binary(), tmp_path)
    end = followed(cells.start(ECHO, tmp_path / "absent"))
    assert end.failure is not None
    assert str(tmp_path / "absent") in end.failure.message
    end = followed(cells.start(ECHO, Path("/proc/self/no")))
    assert end.failure is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": {"dely": "10ms"}, "client": ["true"]}, "path.dely"),
        ({"path": {"delay": "10 parsecs"}, "client": ["true"]}, "is not a unit"),
        ({"path": {"delay": "soon"}, "client": ["true"]}, "is not a duration"),
        ({"path": {"delay": "10ms,20ms"}, "client": ["true"]}, "this is 2 cells, not one"),
        ({"path": {"loss": ["0%", "5%"]}, "client": ["true"]}, "this is 2 cells, not one"),
        ({"path": {}}, "either a client program or a workload"),
        ({"path": {}, "server": ["true"]}, "either a client program or a workload"),
        ({"path": {}, "client": ["true"], "workload": {"kind": "echo"}}, "either a client program or a workload"),
        ({"path": {}, "client": []}, "is not an argument list"),
        ({"path": {}, "workload": {"transport": "tcp"}}, "workload has no kind"),
        ({"path": {}, "workload": {"kind": "eccho"}}, "eccho"),
        ({"path": {}, "workload": {"kind": "echo", "transport": "tpc"}}, "tpc"),
        ({"path": {}, "client": ["true"], "seed": -1}, "seed"),
    ],
)
def test_mistakes_are_those_of_a_study(arguments: dict[str, object], said: str) -> None:
    requires_kernel()
    with pytest.raises(StudyError, match=said):
        crosswind.virtual(**arguments)  # type: ignore[arg-type]
