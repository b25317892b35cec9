#!/usr/bin/env python3
"""How long ten million samples take to estimate and compare, and their memory (`make bench BENCH=estimates`)."""

import multiprocessing
import resource
import sys
import time
from pathlib import Path

import numpy as np
from common import HERE, main, show

from crosswind.findings.pipeline import analyse
from crosswind.store.run import load

sys.path.insert(0, str(HERE.parent / "tests"))
from records import MS, path, run
from runs import echo_samples, kept_run

CELLS, REPETITIONS, MESSAGES, FEWER = 10, 10, 100_000, 10_000
TABLES = 20


def make(directory: Path, messages: int) -> None:
    """A run of echoes over TCP at ten losses. Repetitions are drawn from 20 tables, none twice in a cell."""
    rng = np.random.default_rng(1)
    sent = echo_samples(messages)
    tables = []
    for _ in range(TABLES):
        late = 200 * (rng.random(messages) < 0.02)
        rtt_ns = np.round((20 + rng.lognormal(0, 0.1, messages) + late) * MS).astype(np.int64)
        tables.append(sent.with_columns(received_ns=sent["sent_ns"] + rtt_ns))
    workload = {"kind": "echo", "transport": "tcp", "mode": "closed"}
    repetitions = [
        run(
            cell,
            tables[(7 * cell + repetition) % TABLES],
            {"path.loss": f"{cell}%"},
            repetition=repetition,
            parameters={"path": path(loss=cell / 100, delay_ns=10 * MS), "workload": workload, "seed": repetition + 1},
        )
        for cell in range(CELLS)
        for repetition in range(REPETITIONS)
    ]
    kept_run(directory, repetitions)


def analysed(directory: Path) -> tuple[float, float, float, int]:
    """Seconds to read a run and to analyse it, peak memory in MB, and how many comparisons it has."""
    started = time.perf_counter()
    record = load(directory).record()
    read = time.perf_counter()
    result = analyse(record)
    ended = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return read - started, ended - read, peak, len(result.comparisons)


def ten_million_samples(directory: Path) -> None:
    """Each run is made and analysed in processes of their own, so that memory is that of the analysis alone."""
    spawned = multiprocessing.get_context("spawn")
    figures = []
    for messages in (FEWER, MESSAGES):
        place = directory / str(messages)
        with spawned.Pool(1, maxtasksperchild=1) as pool:
            pool.apply(make, (place, messages))
            figures.append(pool.apply(analysed, (place,)))
    (few_read, few_s, few_mb, _), (read_s, analysis_s, peak_mb, comparisons) = figures
    show(
        f"All estimates and {comparisons} comparisons of {CELLS * REPETITIONS * MESSAGES / 1e6:.0f} million samples",
        f"{analysis_s:.1f} s, and {read_s:.1f} s to read them, {peak_mb:.0f} MB",
        f"{few_s:.1f} s, {few_read:.1f} s and {few_mb:.0f} MB for a tenth of them",
        f"{analysis_s / few_s:.1f} times as long for ten times the samples",
        "under 10 s and 2 GB",
    )


if __name__ == "__main__":
    main({"samples": ten_million_samples})
