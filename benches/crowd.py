#!/usr/bin/env python3
"""Many cells at a time: how long studies take, and what fidelity is left (`make bench BENCH=crowd`).

References come from the same run: the longest connection, the budget, cells one after another. Needs root.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
from common import CROSSWIND, HERE, Json, main, show, spread, stolen
from numpy.typing import NDArray
from scipy.stats import linregress, rankdata, spearmanr

from crosswind.decisions.judge import OfEffect
from crosswind.decisions.statement import Range
from crosswind.stats.differences import Side, difference
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import Interval
from crosswind.stats.repetitions import Repetitions

ECHOES = [
    "echo", "--transport", "tcp", "--congestion-control", "cubic,reno", "--loss", "10%,15%,20%",
    "--size", "1,50,100,1000", "--messages", "500",
]  # fmt: skip

# 8 repetitions of four cells, which wait 20 ms and more for each reply.
WAITING = [
    "echo", "--transport", "tcp,udp", "--delay", "20ms,25ms", "--loss", "0%", "--messages", "30", "--repetitions", "8",
    "--set", "budget.delay_error_p99=1s",
]  # fmt: skip
# Over a path without delay, where whatever runs beside a cell makes its exchanges longer. Most of their time they wait
# for what was lost.
UNDELAYED = [
    "echo", "--transport", "socketio-websocket,webtransport", "--loss", "10%", "--size", "100", "--messages", "60",
    "--repetitions", "8",
]  # fmt: skip
MARGIN_NS, MARGIN_SHARE = 20e3, 0.02
"""The larger of both counts: what the fidelity budget allows a mean exchange to be longer than alone."""


FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """A study that was run: where, its wall time, and result.json of every attempt."""

    place: Path
    wall_s: float
    results: list[Json]

    @property
    def counted(self) -> list[Json]:
        """The results of the attempts that count."""
        return [result for result in self.results if "." not in result["name"]]

    @property
    def longest_s(self) -> float:
        """The duration of the longest cell."""
        return float(max(result["elapsed_ns"] for result in self.counted)) / 1e9

    @property
    def concurrency(self) -> float:
        """The seconds of all cells together, without repeated attempts, for each second of the run."""
        return float(sum(result["elapsed_ns"] for result in self.counted)) / 1e9 / self.wall_s

    @property
    def valid(self) -> str:
        """How many cells kept their budget, and how many attempts were repeated."""
        valid = sum(result["finished"]["valid"] for result in self.counted)
        return f"{valid} of {len(self.counted)} valid, {len(self.results) - len(self.counted)} repeated"

    @property
    def p99_us(self) -> list[float]:
        """The 99th percentile of each cell's delay error, in microseconds."""
        return [result["finished"]["fidelity"]["delay_error_ns"]["p99"] / 1e3 for result in self.counted]

    def companions(self) -> list[FloatArray]:
        """Of each cell, how many others ran beside each of its repetitions."""
        found: dict[int, list[float]] = {}
        for result in self.counted:
            found.setdefault(result["cell"], []).append(result["beside"])
        return [np.array(found[cell], dtype=np.float64) for cell in sorted(found)]

    def medians_ns(self) -> list[FloatArray]:
        """The median round trips of each cell's repetitions, without the first exchange, which opens the connection."""
        found: dict[int, list[float]] = {}
        for result in self.counted:
            table = pl.read_parquet(self.place / "cells" / result["name"] / "samples.parquet")
            later = table.filter(pl.col("exchange") > 0)
            found.setdefault(result["cell"], []).append(float(np.median(later["received_ns"] - later["sent_ns"])))
        return [np.array(found[cell]) for cell in sorted(found)]

    def sides(self) -> list[Side]:
        """Those medians, as sides of a comparison."""
        return [Side(Repetitions.of(own)) for own in self.medians_ns()]


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
    if failed := next((result["failure"] for result in results if result["failure"]), None):
        sys.exit(f"error: {failed['message']}")
    return Run(place, wall_s, results)


def echoes(directory: Path) -> None:
    """24 cells of 500 messages: small messages under 10 to 20 % loss."""
    single = run_study(directory, *ECHOES)
    ten = run_study(directory, *ECHOES, "--connections", "10")
    show(
        "24 tcp echo cells of 500 messages, 10 to 20 % loss each way",
        f"{single.wall_s:.1f} s ({single.valid}); with ten connections a cell {ten.wall_s:.1f} s ({ten.valid})",
        f"the longest single connection: {single.longest_s:.1f} s",
        f"{single.wall_s / single.longest_s:.2f} of it",
        "at most 1.3 times the longest",
    )


def hundred(directory: Path) -> None:
    """A hundred cells at once, which mostly wait."""
    for delay in ("20ms", "10ms"):
        stolen_before = stolen()
        study = ["echo", "--transport", "tcp", "--delay", delay, "--loss", "1%", "--messages", "250"]
        run = run_study(directory, *study, "--repetitions", "100", "--jobs", "100")
        first = [result for result in run.results if result["attempt"] == 1]
        fidelity = [result["finished"]["fidelity"] for result in first]
        kept = sum(cell["within_budget"] for cell in fidelity)
        late = [cell["delay_error_ns"]["p99"] / 1e3 for cell in fidelity]
        waited = [cell["starvation"]["fraction"] for cell in fidelity]
        beside = statistics.median(result["beside"] for result in first)
        show(
            f"100 echo cells at once, {delay} each way, 1 % loss",
            f"{kept} of 100 kept the budget at the first attempt; p99 of the delay error {spread(late, 1, 'us')}",
            f"budget: 1000 us, and 20 % CPU wait (was {100 * max(waited):.1f} % at most)",
            f"beside each: {beside:.0f} others; taken by the hypervisor meanwhile: {stolen() - stolen_before:.2f} s",
            "the budget held",
        )


def equivalence(directory: Path) -> None:
    """Median round trips of cells side by side, and of a second serial run, compared with those one after another."""
    for what, study, jobs in (
        ("of 40 and 50 ms, 32 cells at a time", WAITING, ["--jobs", "32"]),
        ("without delay, 10 % loss, as many cells as the budget allows", UNDELAYED, []),
    ):
        alone = run_study(directory, *study, "--jobs", "1").sides()
        crowd = run_study(directory, *study, *jobs).sides()
        again = run_study(directory, *study, "--jobs", "1").sides()
        show(
            f"Median round trips {what}, less one at a time: the worst cell, 90 % interval",
            against(alone, crowd),
            f"one at a time, again: {against(alone, again)}",
            "within 20 us or 2 % of the median either way: two one-sided tests, alpha 0.05",
            "equivalent",
        )


def against(alone: list[Side], other: list[Side]) -> str:
    """The worst of the cells, by two one-sided tests."""
    shown = [tested(a, b) for a, b in zip(alone, other, strict=True)]
    p, found = max(shown, key=lambda test: test[0])
    assert found.value is not None and found.low is not None and found.high is not None
    return (
        f"{found.value / 1e3:.0f} us [{found.low / 1e3:.0f}, {found.high / 1e3:.0f}], p {p:.2g}, n {found.n};"
        f" {sum(p < 0.05 for p, _ in shown)} of {len(shown)} cells equivalent"
    )


def tested(alone: Side, other: Side) -> tuple[float, Interval]:
    """Whether one cell's repetitions are as those that ran alone: the p-value, and the difference with its interval."""
    margin = max(MARGIN_NS, MARGIN_SHARE * float(np.median(alone.units.values)))
    effect = difference(alone, other)
    p = OfEffect(effect, Range(-margin, margin)).p(yes=True)
    assert p is not None
    return p / 2, estimate_of(effect, level=0.90)


def companions(directory: Path) -> None:
    """Whether what a repetition measures depends on how many others ran beside it."""
    run = run_study(directory, *WAITING, "--repetitions", "32")
    beside, typical = run.companions(), run.medians_ns()
    rank = spearmanr(within(map(rankdata, beside)), within(map(rankdata, typical)))
    slope = linregress(within(beside), within(typical))
    fewest, most = min(map(np.min, beside)), max(map(np.max, beside))
    longer_us, half_us = slope.slope * most / 1e3, 1.96 * slope.stderr * most / 1e3
    show(
        "Median round trips of 40 and 50 ms against the number of cells beside, within each cell",
        f"rank correlation {rank.statistic:.2f} (p {rank.pvalue:.2g}); {longer_us:.1f} us longer with "
        f"{most:.0f} cells beside by a straight line, 95 % interval +-{half_us:.1f} us",
        f"{sum(map(len, beside))} repetitions, with {fewest:.0f} to {most:.0f} others beside them",
        "margin: 20 us or 2 % of the median",
        "no dependence beyond the margin",
    )


def within(each: Iterable[FloatArray]) -> FloatArray:
    """Values of all cells, each less the mean of its cell: what is between cells is left out."""
    return np.concatenate([values - np.mean(values) for values in each])


def speed_up(directory: Path) -> None:
    """The quick variant of transfer-time with cells side by side, and a part of it with one cell after another."""
    parallel = run_study(directory, "transfer-time", "--quick")
    serial = run_study(directory, "transfer-time", "--quick", "--jobs", "1", "--repetitions", "2")
    show(
        f"transfer-time --quick, {len(parallel.counted)} repetitions: seconds of cells in a second",
        f"{parallel.concurrency:.1f} in {parallel.wall_s:.1f} s ({parallel.valid}); "
        f"its longest cell takes {parallel.longest_s:.1f} s",
        f"{serial.concurrency:.2f} in {serial.wall_s:.1f} s, {len(serial.counted)} repetitions one after another",
        f"{parallel.concurrency / serial.concurrency:.1f} times faster",
        "at least 20",
    )


if __name__ == "__main__":
    main(
        {
            "hundred": hundred,
            "equivalence": equivalence,
            "companions": companions,
            "echoes": echoes,
            "speed-up": speed_up,
        }
    )
