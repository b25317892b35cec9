#!/usr/bin/env python3
"""How long the analysis and the page of 400 cells take, and how large the page is (`make bench BENCH=report`)."""

import itertools
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from common import HERE, main, show, spread

from crosswind.analysis.cells import collect
from crosswind.cell.record import RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render

sys.path.insert(0, str(HERE.parent / "tests"))
from records import MS, echoes, path, record, runs

TRANSPORTS = ("tcp", "quic", "websocket", "http1")
LOSSES = (0, 1, 2, 5, 10)
SIZES = (1, 100, 1000, 10_000, 100_000)
DELAYS_MS = (0, 10, 50, 100)
REPETITIONS, MESSAGES, ROUNDS = 5, 100, 3


def run_of(sizes: tuple[int, ...]) -> RunRecord:
    """A run with 80 cells for each size, of five repetitions of a hundred echoes; a tenth are late with loss."""
    rng = np.random.default_rng(1)
    cells = []
    for index, (transport, loss, size, delay_ms) in enumerate(itertools.product(TRANSPORTS, LOSSES, sizes, DELAYS_MS)):
        workload = {"kind": "echo", "transport": transport, "mode": "closed"}
        tables = []
        for _ in range(REPETITIONS):
            late = 200 * (rng.random(MESSAGES) < loss / 50)
            rtts_ms = 2 * delay_ms + rng.lognormal(0, 0.1, MESSAGES) + late
            tables.append(echoes([round(rtt * MS) for rtt in rtts_ms], connect_ns=(2 * delay_ms + 1) * MS))
        levels = {
            "workload.transport": transport,
            "path.loss": f"{loss}%",
            "workload.size": str(size),
            "path.delay": f"{delay_ms}ms",
        }
        parameters = {"path": path(loss=loss / 100, delay_ns=delay_ms * MS), "workload": workload}
        cells += runs(index, tables, levels, parameters=parameters)
    return record(*cells)


def reported(run: RunRecord) -> tuple[float, float, float]:
    """Seconds and processor seconds from a run's record to its page, and the page's megabytes."""
    started, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    data = collect(run)
    page = render(run, analyse(run, data=data), data=data)
    now = resource.getrusage(resource.RUSAGE_SELF)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - started, cpu, len(page.encode()) / 1e6


def page_of_400_cells(_directory: Path) -> None:
    """Beside a run of a fifth of the cells: what grows faster than their number shows."""
    few, many = run_of(SIZES[:1]), run_of(SIZES)
    reported(few)
    small, large = [reported(few) for _ in range(ROUNDS)], [reported(many) for _ in range(ROUNDS)]
    (wall, cpu, megabytes), (of_few, _, _) = zip(*large, strict=True), zip(*small, strict=True)
    show(
        f"The report of {len({one.cell for one in many.cells})} cells, from the record to the page",
        f"{spread(list(wall), 1, 's')} wall, {spread(list(cpu), 1, 's')} CPU, {megabytes[0]:.1f} MB",
        f"{spread(list(of_few), 1, 's')} wall, {len({one.cell for one in few.cells})} cells",
        f"{statistics.median(wall) / statistics.median(of_few):.1f} times as long for five times the cells",
        "under 20 s and 15 MB",
    )


if __name__ == "__main__":
    main({"page": page_of_400_cells})
