"""What goes wrong in a run: signals, killed processes, full disks, two writers, readers that leave."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e_cli import ANY_FIDELITY, Cli, cell_of, wait_until
from small_disks import mounted_disk

# Four cells: the first to run ends at once, and every other one waits until there is a file `go`.
WAITING = """
[path]
delay = ["5ms", "6ms", "7ms", "8ms"]
[workload]
kind = "program"
client = ["sh", "-c", "mkdir {place}/first 2> {place}/errors || while ! test -e {place}/go; do sleep 0.01; done"]
"""
KEYS = {f"c{number:03d}-r00" for number in range(4)}


def start_waiting(crosswind: Cli, *options: str) -> "subprocess.Popen[str]":
    """A run in a process of its own, in which one cell has ended and the next one waits."""
    (crosswind.cwd / "waiting.toml").write_text(WAITING.replace("{place}", str(crosswind.cwd)), encoding="utf-8")
    process = crosswind.start("run", "waiting.toml", *ANY_FIDELITY, "--jobs", "1", "--output", "here", *options)
    wait_until(lambda: crosswind.finished("here"))
    return process


def go_on(crosswind: Cli) -> None:
    """Lets cells end that wait."""
    (crosswind.cwd / "go").touch()


def results(crosswind: Cli) -> dict[str, str]:
    """result.json of every whole cell, as text."""
    return {
        key: (crosswind.cells("here") / key / "result.json").read_text("utf-8") for key in crosswind.finished("here")
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_goes_on_with_nothing_lost_and_nothing_twice(crosswind: Cli, number: signal.Signals) -> None:
    process = start_waiting(crosswind, "--no-report")
    process.send_signal(number)
    ended = crosswind.end(process)
    before = results(crosswind)
    assert ended.status == 130
    assert "interrupted: 1 of 4 repetitions are kept in here" in ended.err
    assert crosswind.attempts("here") == list(before)
    assert len(before) == 1
    go_on(crosswind)
    resumed = crosswind("run", "--resume", "here", "--no-report")
    assert resumed.status == 0, resumed.err
    after = results(crosswind)
    assert set(after) == KEYS == set(crosswind.attempts("here"))
    assert {key: after[key] for key in before} == before


def test_a_killed_cell_is_a_failure_and_is_run_again_on_resume(crosswind: Cli) -> None:
    process = start_waiting(crosswind, "--json")
    os.kill(cell_of(process), signal.SIGKILL)
    go_on(crosswind)
    ended = crosswind.end(process)
    assert ended.status == 1
    assert "SIGKILL" in ended.err
    assert not ended.json["valid"]
    (failed,) = [key for key, text in results(crosswind).items() if json.loads(text)["failure"]]
    resumed = crosswind("run", "--resume", "here", "--json")
    assert resumed.status == 0, resumed.err
    assert "1 of 4 repetitions to run" in resumed.err
    assert set(crosswind.attempts("here")) == KEYS | {f"{failed}.failed-1"}
    assert [cell["repetitions"] for cell in resumed.json["cells"]] == [1, 1, 1, 1]


def test_a_second_writer_is_refused_and_a_reader_is_not(crosswind: Cli) -> None:
    process = start_waiting(crosswind)
    second = crosswind("run", "--resume", "here")
    reader = crosswind("report", "here")
    go_on(crosswind)
    assert (second.status, second.out) == (2, "")
    assert "error: here is in use by another crosswind" in second.err
    assert "1 of 4" in reader.out
    assert crosswind.end(process).status == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte, at the place where the run is to be kept."""
    with mounted_disk(tmp_path / "disk", "1m") as place:
        yield place


def test_a_full_disk_ends_the_run_and_room_lets_it_go_on(crosswind: Cli, small_disk: Path) -> None:
    # 4 MB a cell, captured twice, on a disk of one.
    moved = ("--transport", "tcp", "--size", "4MB", "--repetitions", "1", "--delay", "0ms,1ms")
    bulky = ("run", "transfer", *moved, *ANY_FIDELITY, "--capture")
    ended = crosswind(*bulky, "--output", "disk/run")
    assert ended.status == 1
    assert "No space left" in ended.err or "space" in ended.err
    assert "hint: " in ended.err
    assert "Traceback" not in ended.err
    assert crosswind.finished("disk/run") == set()
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    resumed = crosswind("run", "--resume", "disk/run")
    assert resumed.status == 0, resumed.err
    assert crosswind.attempts("disk/run") == ["c000-r00", "c001-r00"]


def test_a_read_only_place_is_refused_before_anything_runs(crosswind: Cli, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    ended = crosswind("run", "echo", "--messages", "1", "--output", "disk/run")
    assert ended.status == 1
    assert "Read-only" in ended.err
    assert "--output" in ended.err


def test_a_congestion_control_that_the_kernel_has_not_got(crosswind: Cli) -> None:
    ended = crosswind("run", "echo", "--congestion-control", "nonesuch", "--messages", "1")
    assert (ended.status, "nonesuch" in ended.err, "Traceback" in ended.err + ended.out) == (2, True, False)


def test_a_reader_that_leaves_is_no_error(crosswind: Cli) -> None:
    for arguments in (["studies"], ["show", "quickstart"], ["schema"], ["studies", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.run(
            crosswind.command(*arguments), cwd=crosswind.cwd, env=crosswind.env, stdout=writing, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
        os.close(writing)
        assert (process.returncode, process.stderr) == (0, "")
