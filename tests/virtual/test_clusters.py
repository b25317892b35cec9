"""Runs on a Dask cluster of processes: the bits are those of this machine, whatever becomes of the workers."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import crosswind
from crosswind.cell.process import CellEnd
from crosswind.errors import CrosswindError, EngineError
from crosswind.execution.observer import Observer
from crosswind.store.plan import PlannedCell
from crosswind.study.design import Study
from linux.lab import wait_until
from processes import descendants_of
from virtual.conftest import requires_kernel

SETTINGS = {"host.clock": "virtual", "study.repetitions": "4", "workload.messages": "20", "path.delay": "10ms"}


class Cluster:
    """A scheduler and its workers, a process each."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "scheduler.json"
        self._directory = directory
        self._started: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file)
        )
        wait_until(self.file.exists)
        self.workers: list[subprocess.Popen[bytes]] = []

    def add_frozen(self) -> None:
        """A worker that the cluster knows, and that answers no more."""
        self.add()
        log = self._directory / f"worker-{len(self._started) - 1}.log"
        wait_until(lambda: "Registered to" in log.read_text("utf-8", "replace"))
        self.workers[-1].send_signal(signal.SIGSTOP)

    def add(self, *options: str) -> None:
        """A worker with one thread."""
        arguments = ("--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny", *options)
        self.workers.append(self._start("worker", *arguments))

    def _start(self, role: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", role, "--no-dashboard", *arguments]
        log = (self._directory / f"{role}-{len(self._started)}.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)
        log.close()
        self._started.append(process)
        return process

    def close(self) -> None:
        """Ends everything."""
        for process in self._started:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    requires_kernel()
    directory = tmp_path / "cluster"
    directory.mkdir()
    made = Cluster(directory)
    yield made
    made.close()


class AtFirstEnd(Observer):
    """Does something when the first repetition has ended."""

    def __init__(self, action: object) -> None:
        self._action = action
        self.ended: list[str] = []

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        self.ended.append(planned.key)
        if len(self.ended) == 1:
            self._action()


def study(**settings: str) -> Study:
    lossy = {"path.loss": "0%,5%", "workload.transport": "tcp,udp"}
    return Study.adhoc("echo", {**SETTINGS, **lossy, **settings})


def contents(run: Path) -> dict[str, bytes]:
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.glob("cells/*/*.parquet")}


def test_a_cluster_gives_the_bits_of_this_machine_though_a_worker_dies_and_another_is_frozen(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Dask itself takes a frozen one for dead after five minutes, which a test does not have.
    monkeypatch.setattr("crosswind.execution.workers.dask._ANSWER_S", 1)
    cluster.add_frozen()
    for _ in range(3):
        cluster.add()
    victim = cluster.workers[1]
    killed = AtFirstEnd(lambda: os.kill(victim.pid, signal.SIGKILL))
    there = crosswind.run(study(), output=tmp_path / "there", on=str(cluster.file), progress=killed)
    here = crosswind.run(study(), output=tmp_path / "here")
    keys = here.results()
    assert there.valid and sorted(killed.ended) == sorted(keys) == sorted(there.results())
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert contents(there.directory) == contents(here.directory)
    machines = {result.machine for result in there.results().values()}
    assert machines == {os.uname().nodename}
    assert {result.machine for result in here.results().values()} == {None}


def test_a_worker_of_another_version_takes_nothing(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.py"
    other.write_text("import crosswind.text.version\ncrosswind.text.version.__version__ = '0.0.1'\n")
    cluster.add("--preload", str(other))
    said = r"no worker of the cluster may take c00.-r0.: .*it has Crosswind 0\.0\.1, not"
    with monkeypatch.context() as impatient, pytest.raises(EngineError, match=said):
        impatient.setattr("crosswind.execution.workers.dask._WAIT_FOR_ANOTHER_S", 2)
        crosswind.run(study(), output=tmp_path / "run", on=str(cluster.file))
    # One that may is enough.
    cluster.add()
    resumed = crosswind.resume(tmp_path / "run", on=str(cluster.file))
    assert resumed.valid and len(resumed.results()) == resumed.planned


def test_without_its_scheduler_a_run_ends_and_goes_on_later(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long as Dask tries to reach it again.
    monkeypatch.setattr("crosswind.execution.workers.dask._CONNECT_S", 3)
    cluster.add()
    dies = AtFirstEnd(cluster.scheduler.kill)
    with pytest.raises(EngineError, match="scheduler") as caught:
        crosswind.run(study(), output=tmp_path / "run", on=str(cluster.file), progress=dies)
    assert "--resume" in (caught.value.hint or "")
    resumed = crosswind.resume(tmp_path / "run")
    assert resumed.valid and len(resumed.results()) == resumed.planned
    assert dies.ended[0] in resumed.results()


def test_a_stop_interrupts_what_runs_on_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    cluster.add()
    (tmp_path / "stop.py").write_text(
        "import crosswind, sys\n"
        "from virtual.test_clusters import study\n"
        "run = crosswind.run(study(**{'workload.messages': '1000000'}), output=sys.argv[1], on=sys.argv[2])\n"
        "print('interrupted' if run.interrupted else 'done')\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).parents[1])]),
    }
    command = [sys.executable, str(tmp_path / "stop.py"), str(tmp_path / "run"), str(cluster.file)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    worker = cluster.workers[0].pid
    wait_until(lambda: len(descendants_of(worker)) > 1, within_s=60)
    timer = threading.Timer(10, process.kill)
    timer.start()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    timer.cancel()
    assert (process.returncode, out) == (0, b"interrupted\n")
    # Its machine has ended it, too: the kernel that waits for the next one stays.
    wait_until(lambda: len(descendants_of(worker)) <= 1)


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("local:none", "'none' is no number of workers"),
        ("nowhere", "there is no cluster 'nowhere'"),
        ("slurm:4", "--on slurm needs dask-jobqueue"),
        ("tcp://127.0.0.1:9", "cannot reach the cluster tcp://127.0.0.1:9"),
    ],
)
def test_a_cluster_that_is_none_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, said: str
) -> None:
    requires_kernel()
    monkeypatch.setattr("crosswind.execution.workers.dask._CONNECT_S", 1)
    with pytest.raises(CrosswindError, match=said) as caught:
        crosswind.run(study(), output=tmp_path / "run", on=on)
    assert caught.value.hint
