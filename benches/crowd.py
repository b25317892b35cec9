#!/usr/bin/env python3
"""Many cells at a time: how long studies take, what fidelity is left, what a cell costs (`make bench`).

References come from the same run: the longest connection, the budget, the same study one cell after another. Needs
root. The serial study takes some five minutes. Nothing passes or fails.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from common import HERE, ROUNDS, Json, main, run_cell, show, spread, stolen, symmetric

CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
ECHOES = [
    "echo", "--transport", "tcp", "--congestion-control", "cubic,reno", "--loss", "10%,15%,20%",
    "--size", "1,50,100,1000", "--messages", "1000",
]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A study that was run: wall time, and result.json of every attempt."""

    wall_s: float
    results: list[Json]

    @property
    def counted(self) -> list[Json]:
        """Those that count."""
        return [one for one in self.results if "." not in one["name"]]

    @property
    def longest_s(self) -> float:
        """The longest of them."""
        return max(one["elapsed_ns"] for one in self.counted) / 1e9

    @property
    def valid(self) -> str:
        """How many kept their budget, and how many attempts that took."""
        valid = sum(one["finished"]["valid"] for one in self.counted)
        return f"{valid} of {len(self.counted)} valid, {len(self.results) - len(self.counted)} repeated"

    @property
    def p99_us(self) -> list[float]:
        """99th percentile of the delay error of each, microseconds."""
        return [one["finished"]["fidelity"]["delay_error_ns"]["p99"] / 1e3 for one in self.counted]


def run_study(directory: Path, *arguments: str) -> Run:
    """Runs a study by the command line, as a user would."""
    place = directory / "run"
    shutil.rmtree(place, ignore_errors=True)
    started = time.monotonic()
    command = [*CROSSWIND, "run", *arguments, "--no-report", "--output", str(place)]
    source = str(HERE.parent / "python")
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": source}, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    wall_s = time.monotonic() - started
    results = [
        {**json.loads(path.read_text(encoding="utf-8")), "name": path.parent.name}
        for path in place.glob("cells/*/result.json")
    ]
    if failed := next((one["failure"] for one in results if one["failure"]), None):
        sys.exit(f"error: {failed['message']}")
    return Run(wall_s, results)


def echoes(directory: Path) -> None:
    """The study of S0's size and loss, natively: 24 cells of 1000 messages."""
    one = run_study(directory, *ECHOES)
    ten = run_study(directory, *ECHOES, "--connections", "10")
    show(
        "24 tcp echo cells of 1000 messages, 10 to 20 % loss each way",
        f"{one.wall_s:.1f} s ({one.valid}); with ten connections a cell {ten.wall_s:.1f} s ({ten.valid})",
        f"the longest single connection: {one.longest_s:.1f} s",
        f"{one.wall_s / one.longest_s:.2f} of it",
        "at most 1.3 times the longest; under 60 s with ten connections",
    )


def hundred(directory: Path) -> None:
    """A hundred waiting cells at once."""
    for delay in ("20ms", "10ms"):
        stolen_before = stolen()
        study = ["echo", "--transport", "tcp", "--delay", delay, "--loss", "1%", "--messages", "500"]
        run = run_study(directory, *study, "--repetitions", "100", "--jobs", "100")
        first = [one for one in run.results if one["attempt"] == 1]
        kept = sum(one["finished"]["fidelity"]["within_budget"] for one in first)
        late = [one["finished"]["fidelity"]["delay_error_ns"]["p99"] / 1e3 for one in first]
        waited = [one["finished"]["fidelity"]["starvation"]["fraction"] for one in first]
        beside = statistics.median(one["beside"] for one in first)
        show(
            f"100 echo cells at once, {delay} each way, 1 % loss",
            f"{kept} of 100 kept the budget at the first attempt; p99 of the delay error {spread(late, 1, 'us')}",
            f"budget: 1000 us, and 20 % CPU wait (was {100 * max(waited):.1f} % at most)",
            f"beside each: {beside:.0f} others; taken by the hypervisor meanwhile: {stolen() - stolen_before:.2f} s",
            "the budget held",
        )


def serial_to_parallel(directory: Path) -> None:
    """The quick variant of transfer-time, side by side and one after another."""
    parallel = run_study(directory, "transfer-time", "--quick")
    serial = run_study(directory, "transfer-time", "--quick", "--jobs", "1")
    show(
        f"transfer-time --quick, {len(parallel.counted)} repetitions",
        f"{parallel.wall_s:.1f} s ({parallel.valid}); its longest takes {parallel.longest_s:.1f} s",
        f"one after another: {serial.wall_s:.1f} s ({serial.valid})",
        f"{serial.wall_s / parallel.wall_s:.1f} times faster",
        "at least 20",
    )


def set_up(_directory: Path) -> None:
    """Start and teardown of a cell, and the same processor time with all that the kernel does afterwards."""
    wall, cpu = [], []
    busy_before = busy_s()
    count = ROUNDS * 20
    for _ in range(count):
        before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run_cell({"kind": "echo", "transport": "udp", "messages": 1}, path=symmetric(delay_ns=0))
        wall.append(time.perf_counter() - before)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    time.sleep(1)
    machine = (busy_s() - busy_before) / count
    show(
        "A cell of one message, from start to end",
        spread(wall, 1e-3, "ms") + " wall",
        spread(cpu, 1e-3, "ms") + f" CPU of its process; {machine * 1e3:.1f} ms of the whole machine's for each",
        f"n = {count}",
        "under 60 ms wall, 30 ms CPU",
    )


def busy_s() -> float:
    """Seconds of processor time that this machine has used, for whatever."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main({"set-up": set_up, "hundred": hundred, "echoes": echoes, "serial-to-parallel": serial_to_parallel})
