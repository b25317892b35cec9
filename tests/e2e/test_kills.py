"""A run that is killed again and again, anywhere, and goes on each time: nothing lost, nothing counted twice."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

from e2e_cli import ANY_FIDELITY, Cli

STUDY = """
[path]
delay = ["2ms", "3ms"]
loss = ["0%", "10%"]

[study]
repetitions = 4

[[part]]
name = "echo"
[part.workload]
kind = "echo"
transport = ["tcp", "udp"]
messages = 100
timeout = "100ms"

[[part]]
name = "program"
[part.workload]
kind = "program"
client = ["sh", "-c", "sleep 0.3; echo {server}"]
server = ["sleep", "5"]
"""
CELLS, REPETITIONS, MESSAGES = 12, 4, 100
KEYS = {f"c{cell:03d}-r{repetition:02d}" for cell in range(CELLS) for repetition in range(REPETITIONS)}
MOST_ROUNDS = 60


def family(pid: int) -> list[int]:
    """A process's descendants, nearest first, as far as they can be seen."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop(0)
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                new = [int(child) for child in children.read_text(encoding="ascii").split()]
            except (OSError, ValueError):
                continue
            found += new
            waiting += new
    return found


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
    below = family(process.pid)
    match kind:
        case "kill":
            process.kill()
        case "cell" if below:
            _kill(chance.choice(below[: max(1, len(below) // 2)]))
        case "grandchild" if below:
            _kill(below[-1])
        case "disk":
            ballast = disk / "ballast"
            free = shutil.disk_usage(disk).free
            with ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, free - 4096))
            time.sleep(0.3)
            ballast.unlink()
        case "terminate":
            process.terminate()
        case "twice":
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
        case _:
            process.send_signal(signal.SIGINT)
    return kind


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def ended_within(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether a process ends within a time."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    return process.poll() is not None


@pytest.fixture
def disk(crosswind: Cli) -> Path:
    """A file system of its own for the run, so that filling it harms nobody."""
    place = crosswind.cwd / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a tmpfs")
    (crosswind.cwd / "run").symlink_to(place / "run")
    return place


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_survives_whatever_happens_to_it(crosswind: Cli, disk: Path, seed: int) -> None:
    chance = random.Random(seed)
    (crosswind.cwd / "hard.toml").write_text(STUDY, encoding="utf-8")
    arguments = ["run", "hard.toml", *ANY_FIDELITY, "--output", "disk/run", "--no-report"]
    kept: dict[str, str] = {}
    strikes = []
    for _ in range(MOST_ROUNDS):
        process = crosswind.start(*arguments)
        # Start-up takes about a second, the whole run some seconds more: anywhere in them.
        while not ended_within(process, chance.uniform(0.5, 4.0)):
            strikes.append(strike(chance, process, disk))
        ended = crosswind.end(process)
        assert "Traceback" not in ended.err, ended.err
        if not (disk / "run" / "manifest.json").exists():
            continue
        arguments = ["run", "--resume", "disk/run", "--no-report"]
        now = whole_cells(crosswind)
        failed = failed_cells(crosswind)
        assert {key: now.get(key) for key in kept} == kept, f"a cell that was whole has changed after {strikes}"
        kept = {key: digest for key, digest in now.items() if key not in failed}
        if set(kept) == KEYS:
            break
    assert len(strikes) >= 5, "the run was over before anything happened to it"
    last = crosswind("run", "--resume", "disk/run", "--no-report")
    assert last.status == 0, last.err
    assert set(whole_cells(crosswind)) == KEYS
    assert not [name for name in crosswind.attempts("run") if name.endswith(".part")]
    assert {name.partition(".")[0] for name in crosswind.attempts("run")} == KEYS
    for key in KEYS:
        table = crosswind.cells("run") / key / "samples.parquet"
        numbers = pl.read_parquet(table)["exchange"].sort().to_list()
        assert numbers in ([], list(range(MESSAGES)))


@pytest.fixture(autouse=True)
def unmounted(crosswind: Cli) -> object:
    """Unmounts when everything that may hold the file system has ended."""
    yield
    place = crosswind.cwd / "disk"
    for process in crosswind.running:
        if process.poll() is None:
            process.kill()
            process.communicate()
    if place.is_mount():
        subprocess.run(["umount", "--lazy", place], check=True)
