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

import numpy as np
import polars as pl
from common import HERE, ROUNDS, Json, main, run_cell, show, spread, stolen, symmetric

from crosswind.stats import Resampled, resample, tost

CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
ECHOES = [
    "echo", "--transport", "tcp", "--congestion-control", "cubic,reno", "--loss", "10%,15%,20%",
    "--size", "1,50,100,1000", "--messages", "1000",
]  # fmt: skip

# 16 repetitions of four cells, which wait 20 ms and more for each reply.
WAITING = [
    "echo", "--transport", "tcp,udp", "--delay", "20ms,25ms", "--loss", "0%", "--messages", "30", "--repetitions", "16",
    "--set", "budget.delay_error_p99=1s",
]  # fmt: skip
MARGIN_NS = 1e6
"""Of a median round trip of 40 ms or more: the budget's bound of one packet's delay error."""


@dataclass(frozen=True)
class Run:
    """A study that was run: where, its wall time, and result.json of every attempt."""

    place: Path
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

    def medians_ns(self) -> list[Resampled]:
        """Of each cell, the median round trips of its repetitions, without the first exchange, which sets up."""
        found: dict[int, list[float]] = {}
        for one in self.counted:
            table = pl.read_parquet(self.place / "cells" / one["name"] / "samples.parquet")
            later = table.filter(pl.col("exchange") > 0)
            found.setdefault(one["cell"], []).append(float(np.median(later["received_ns"] - later["sent_ns"])))
        return [resample(np.array(found[cell]), np.arange(len(found[cell])), seed=cell) for cell in sorted(found)]


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
    return Run(place, wall_s, results)


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


def equivalence(directory: Path) -> None:
    """Round trips in a crowd, and one cell after another once more, beside those of one cell after another."""
    alone = run_study(directory, *WAITING, "--jobs", "1").medians_ns()

    def against_alone(jobs: str) -> str:
        """The worst of the cells, by two one-sided tests."""
        other = run_study(directory, *WAITING, "--jobs", jobs).medians_ns()
        shown = [tost(a, b, margin=MARGIN_NS, unit="ns") for a, b in zip(alone, other, strict=True)]
        worst = max(shown, key=lambda one: one.p)
        found = worst.estimate
        assert found.low is not None and found.high is not None
        return (
            f"{found.value / 1e3:.0f} us [{found.low / 1e3:.0f}, {found.high / 1e3:.0f}], p {worst.p:.2g}, n {found.n};"
            f" {sum(one.equivalent for one in shown)} of {len(shown)} cells equivalent"
        )

    crowd = against_alone("64")
    show(
        "Median round trips of 40 and 50 ms, 64 cells at a time less one at a time: the worst cell, 90 % interval",
        crowd,
        f"one at a time, again: {against_alone('1')}",
        "within 1 ms either way: two one-sided tests, alpha 0.05",
        "equivalent",
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
    main(
        {
            "set-up": set_up,
            "hundred": hundred,
            "equivalence": equivalence,
            "echoes": echoes,
            "serial-to-parallel": serial_to_parallel,
        }
    )
