#!/usr/bin/env python3
"""How long the help, the first cell of a run, and a single cell take to start (`make bench BENCH=start-up`).

The command is the installed one. References are Python alone and the binary alone, from the same run. Needs root.
"""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import CELL, CROSSWIND, ROUNDS, alternate, main, run_cell, show, spread, symmetric

# A crosswind-cell that notes the time when it runs its first cell, which it does without arguments.
NOTING_CELL = """#!/bin/sh
if test $# -eq 0 && ! test -e {note}; then date +%s%N > {note}; fi
exec {cell} "$@"
"""


def wall_s(command: list[str]) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def help_text(_directory: Path) -> None:
    """`crosswind --help`."""
    ours, reference = alternate(lambda: wall_s([*CROSSWIND, "--help"]), lambda: wall_s([sys.executable, "-c", ""]))
    show(
        "crosswind --help",
        spread(ours, 1e-3, "ms"),
        spread(reference, 1e-3, "ms") + ", Python alone",
        f"{1e3 * (statistics.median(ours) - statistics.median(reference)):.0f} ms more",
        "under 150 ms",
    )


def first_cell(directory: Path) -> None:
    """From `crosswind run` to the start of its first cell."""
    note, cell = directory / "note", directory / "noting-cell"
    cell.write_text(NOTING_CELL.format(note=note, cell=CELL))
    cell.chmod(0o755)
    numbers = iter(range(10 * ROUNDS))

    def until_first_cell() -> float:
        command = [*CROSSWIND, "run", "echo", "--messages", "1", "--no-report"]
        note.unlink(missing_ok=True)
        started = time.time_ns()
        subprocess.run(
            [*command, "--output", str(directory / f"run-{next(numbers)}")],
            env={**os.environ, "CROSSWIND_CELL": str(cell)},
            check=True,
            capture_output=True,
        )
        return (int(note.read_text()) - started) / 1e9

    until_first_cell()
    ours, reference = alternate(until_first_cell, lambda: wall_s([CELL, "--version"]))
    show(
        "crosswind run, until its first cell starts",
        spread(ours, 1e-3, "ms"),
        spread(reference, 1e-3, "ms") + ", crosswind-cell --version",
        f"n = {len(ours)}",
        "under 500 ms",
    )


def one_cell(_directory: Path) -> None:
    """Start and teardown of a cell, and its processor time including the kernel's work afterwards."""
    wall, cpu = [], []
    busy_before = busy_s()
    count = ROUNDS * 20
    for _ in range(count):
        before, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        run_cell({"kind": "echo", "transport": "udp", "messages": 1}, path=symmetric(delay_ns=0))
        wall.append(time.perf_counter() - before)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    # The kernel removes the devices of a cell after its end.
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
    """Seconds of processor time that all programs on this machine have used."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main({"help": help_text, "first-cell": first_cell, "cell": one_cell})
