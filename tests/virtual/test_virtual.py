"""`crosswind.virtual`: one cell from Python."""

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import crosswind
from conftest import ROOT
from linux.lab import ms, wait_until
from processes import descendants_of, is_running
from virtual.conftest import requires_kernel

ECHO = {"kind": "echo", "transport": "tcp", "messages": 30}
LOSSY = {"delay": "10ms", "loss": "5%"}


@pytest.fixture(autouse=True)
def kernel() -> None:
    requires_kernel()


def test_a_workload_gives_its_result_samples_and_packets() -> None:
    cell = crosswind.virtual({"delay": "10ms"}, workload=ECHO)
    assert cell.result.valid
    assert cell.result.virtual_time
    assert len(cell.samples) == 30
    assert (cell.samples["received_ns"] - cell.samples["sent_ns"]).min() >= ms(20)
    assert len(cell.packets) == sum(book.in_ for book in (cell.result.ledger.forward, cell.result.ledger.reverse))
    assert (cell.output, cell.errors) == ({}, {})
    with pytest.raises(FrozenInstanceError):
        cell.samples = cell.packets  # type: ignore[misc]


def test_it_is_the_cell_that_a_run_of_the_same_study_has(tmp_path: Path) -> None:
    from crosswind.study.design import Study

    options = {"path.delay": "10ms", "path.loss": "5%", "workload.transport": "tcp", "workload.messages": 30}
    study = Study.adhoc("echo", {**options, "host.clock": "virtual"})
    # `virtual` keeps packets too.
    run = crosswind.run(study, output=tmp_path / "run", packets=True)
    (cell,) = run.record().cells
    assert cell.samples.equals(crosswind.virtual(LOSSY, workload=ECHO).samples)


def test_directions_and_host_are_the_studys() -> None:
    path = {"delay": "10ms", "forward": {"delay": "30ms", "rate": "1Mbit/s"}}
    cell = crosswind.virtual(path, workload=ECHO, host={"congestion_control": "bbr"})
    assert (cell.samples["received_ns"] - cell.samples["sent_ns"]).min() >= ms(40)
    assert cell.result.readback.client.route["congestion_control"] == "bbr"


def test_programs_give_what_they_wrote_and_how_the_client_ended() -> None:
    cell = crosswind.virtual(
        {"delay": "10ms"},
        ["sh", "-c", "echo to {server}; echo careful >&2; exit 3"],
        ["sh", "-c", "echo as {server}; exec sleep 100"],
    )
    assert cell.result.program is not None
    assert cell.result.program.exit_code == 3
    assert cell.output["client"].removeprefix("to ") == cell.output["server"].removeprefix("as ")
    assert cell.errors == {"client": "careful\n", "server": ""}
    assert cell.samples["outcome"].to_list() == ["error"]
    assert "outcome" in cell.samples.columns


def test_programs_start_where_the_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "script").write_text("echo found")
    monkeypatch.chdir(tmp_path)
    assert crosswind.virtual({}, ["sh", "script"]).output["client"] == "found\n"
    monkeypatch.chdir("/proc")
    assert crosswind.virtual({}, ["true"]).result.valid


def test_a_client_may_be_alone() -> None:
    cell = crosswind.virtual({"delay": "10ms"}, ["ping", "-c", "3", "-i", "0.2", "{server}"])
    assert "3 received" in cell.output["client"], cell.errors


TWICE = """
import crosswind, os, sys
def cell(): return crosswind.virtual({"delay": "10ms"}, workload={"kind": "echo", "messages": 10})
def kernels(): return open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
first = cell(); booted = kernels()
assert len(booted) == 1
assert cell().packets.equals(first.packets)
assert kernels() == booted
child = os.fork()
if child == 0:
    # A copy of a process leaves its parent's kernel alone, also when it exits. (Polars does not work in it.)
    from crosswind.execution import virtual
    sys.exit(len(virtual._TEMPLATES._booted))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert kernels() == booted
assert cell().packets.equals(first.packets)
print(*booted)
"""


def test_one_kernel_a_process_which_ends_with_it() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run(
        [sys.executable, "-c", TWICE], capture_output=True, text=True, env=environment, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    wait_until(lambda: not is_running(int(ran.stdout)))


def test_threads_may_call_it_at_the_same_time() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        cells = list(pool.map(lambda seed: crosswind.virtual(LOSSY, workload=ECHO, seed=seed % 2 + 1), range(8)))
    for seed in (0, 1):
        assert all(cell.packets.equals(cells[seed].packets) for cell in cells[seed::2])


def test_nothing_is_left_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    crosswind.virtual({}, workload=ECHO)
    before = set(descendants_of(os.getpid()))
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        crosswind.virtual({}, workload=ECHO)
    assert not list(tmp_path.iterdir())
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    wait_until(lambda: before.issuperset(descendants_of(os.getpid())))
