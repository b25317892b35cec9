"""A run that is killed again and again, anywhere, and goes on each time: nothing lost, nothing counted twice."""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

from cell_events import FINISHED
from e2e_cli import ANY_FIDELITY, Cli, running_cells
from processes import descendants_of
from runs import echo_samples

MESSAGES = 20
STUDY = f"""
[path]
delay = ["2ms", "3ms"]
loss = ["0%", "10%"]

[study]
repetitions = 2

[[part]]
name = "echo"
[part.workload]
kind = "echo"
transport = ["tcp", "udp"]
messages = {MESSAGES}
timeout = "100ms"

[[part]]
name = "program"
[part.workload]
kind = "program"
client = ["sh", "-c", "sleep 0.1; echo {{server}}"]
server = ["sleep", "5"]
"""
CELLS, REPETITIONS = 12, 2
KEYS = {f"c{cell:03d}-r{repetition:02d}" for cell in range(CELLS) for repetition in range(REPETITIONS)}
MAX_SESSIONS = 60
MIN_STRIKES = 5

# It has a child and reports its progress, as the real one does, and ends with whoever started it. The repetitions of
# one cell do not end before there were enough strikes.
FAKE_CELL = """
import ctypes, random, shutil
PR_SET_PDEATHSIG = 1
def end_with_parent(): ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
end_with_parent()
start()
child = os.fork()
if child == 0:
    end_with_parent()
    time.sleep(20)
    os._exit(0)
for done in range(random.Random(cell['seed']).randrange(2, 20)):
    time.sleep(0.02)
    say(event='progress', done=done, total=20, lost=0, elapsed_ns=20_000_000 * done, median_ns=None, fidelity=None)
while cell['id'].startswith('c011') and not os.path.exists({enough!r}): time.sleep(0.01)
os.kill(child, signal.SIGKILL)
shutil.copy({samples!r}, cell['output']['directory'])
say(**{{**{finished!r}, 'id': cell['id']}})
"""


@pytest.fixture
def fake_cells(fake_cell: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells that only wait, and then leave samples behind."""
    samples = tmp_path / "samples.arrow"
    echo_samples(MESSAGES).write_ipc(samples)
    binary = fake_cell(FAKE_CELL.format(samples=str(samples), finished=FINISHED, enough=str(tmp_path / "enough")))
    monkeypatch.setenv("CROSSWIND_CELL", str(binary))


def whole_cells(crosswind: Cli) -> dict[str, str]:
    """A digest of every file of every cell that counts."""
    digests = {}
    for key in crosswind.finished("run"):
        text = hashlib.sha256()
        for path in sorted((crosswind.cells("run") / key).rglob("*")):
            text.update(path.name.encode() + path.read_bytes())
        digests[key] = text.hexdigest()
    return digests


def failed_cells(crosswind: Cli) -> set[str]:
    """Keys whose repetition failed, so that it will run again."""
    pattern = '"failure": null'
    return {
        key
        for key in crosswind.finished("run")
        if pattern not in (crosswind.cells("run") / key / "result.json").read_text("utf-8")
    }


def strike(chance: random.Random, process: subprocess.Popen[str], disk: Path) -> str:
    """Does something bad to a run, and says what."""
    kind = chance.choice(["kill", "kill", "cell", "grandchild", "interrupt", "terminate", "twice", "disk"])
    below = descendants_of(process.pid)
    match kind:
        case "kill":
            process.kill()
        case "cell" if below:
            _kill(chance.choice(below[: max(1, len(below) // 2)]))
        case "grandchild" if below:
            _kill(below[-1])
        case "disk":
            with full(disk):
                time.sleep(0.3)
        case "terminate":
            process.terminate()
        case "twice":
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
        case _:
            process.send_signal(signal.SIGINT)
    return kind


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Leaves no byte free, whatever the run writes meanwhile."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    yield
    ballast.unlink()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def ended_within(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether a process ends within a time."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def wait_for_a_moment(chance: random.Random, process: subprocess.Popen[str]) -> None:
    """Returns while the command line starts up, one time in four, or else when it has begun to run cells."""
    if chance.random() < 0.25:
        ended_within(process, chance.uniform(0, 1))
        return
    while process.poll() is None and not running_cells(process):
        time.sleep(0.005)


@pytest.fixture
def disk(crosswind: Cli) -> Iterator[Path]:
    """A file system of its own for the run, so that filling it harms nobody."""
    place = crosswind.cwd / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a tmpfs")
    (crosswind.cwd / "run").symlink_to(place / "run")
    yield place
    # What may hold the file system has to end first.
    crosswind.stop()
    subprocess.run(["umount", "--lazy", place], check=True)


def kill_until_done(crosswind: Cli, disk: Path, chance: random.Random) -> list[str]:
    """Starts the run and resumes it until every cell is whole, and strikes meanwhile. Returns the strikes."""
    (crosswind.cwd / "hard.toml").write_text(STUDY, encoding="utf-8")
    arguments = ["run", "hard.toml", *ANY_FIDELITY, "--jobs", "3", "--output", "disk/run", "--no-report"]
    kept: dict[str, str] = {}
    strikes: list[str] = []
    for _ in range(MAX_SESSIONS):
        process = crosswind.start(*arguments)
        wait_for_a_moment(chance, process)
        while not ended_within(process, chance.uniform(0.1, 1)):
            strikes.append(strike(chance, process, disk))
            if len(strikes) >= MIN_STRIKES:
                (crosswind.cwd / "enough").touch()
        ended = crosswind.end(process)
        # Python itself shows a traceback where the signal comes before it has read the first file of ours.
        assert "Traceback" not in ended.err or "crosswind" not in ended.err, ended.err
        if not (disk / "run" / "manifest.json").exists():
            continue
        arguments = ["run", "--resume", "disk/run", "--jobs", "3", "--no-report"]
        now = whole_cells(crosswind)
        failed = failed_cells(crosswind)
        assert {key: now.get(key) for key in kept} == kept, f"a cell that was whole has changed after {strikes}"
        kept = {key: digest for key, digest in now.items() if key not in failed}
        if set(kept) == KEYS:
            break
    return strikes


def assert_whole(crosswind: Cli) -> None:
    """Every repetition is there once, with all its samples, and nothing is left of those that were cut short."""
    last = crosswind("run", "--resume", "disk/run", "--no-report")
    assert last.status == 0, last.err
    assert set(whole_cells(crosswind)) == KEYS
    assert not [name for name in crosswind.attempts("run") if name.endswith(".part")]
    assert {name.partition(".")[0] for name in crosswind.attempts("run")} == KEYS
    for key in KEYS:
        cell = crosswind.cells("run") / key
        kind = json.loads((cell / "result.json").read_text(encoding="utf-8"))["parameters"]["workload"]["kind"]
        numbers = pl.read_parquet(cell / "samples.parquet")["exchange"].sort().to_list()
        # A program has one sample; the fake cells leave those of an echo behind, whatever they are to be.
        assert numbers == list(range(MESSAGES)) or (kind == "program" and numbers == [0])


@pytest.mark.usefixtures("fake_cells")
@pytest.mark.parametrize("seed", range(2))
def test_a_run_of_fake_cells_survives_whatever_happens_to_it(crosswind: Cli, disk: Path, seed: int) -> None:
    strikes = kill_until_done(crosswind, disk, random.Random(seed))
    assert len(strikes) >= MIN_STRIKES, "the run was over before anything happened to it"
    assert_whole(crosswind)


def test_a_run_of_real_cells_survives_whatever_happens_to_it(crosswind: Cli, disk: Path) -> None:
    strikes = kill_until_done(crosswind, disk, random.Random(1))
    assert len(strikes) >= MIN_STRIKES, "the run was over before anything happened to it"
    assert_whole(crosswind)
