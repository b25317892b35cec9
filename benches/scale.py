#!/usr/bin/env python3
"""What runs of many repetitions cost: tiny ones that are run, and many that are made up of one of them.

    benches/scale.py [--run 2000] [--workers 400] [--cells 10000] [--repetitions 10] [--listed 1000000]

`--run` tiny repetitions are run in virtual time. So are `--workers` of them by Dask, with one, two and four processes,
beside as many by this machine's own worker, one at a time. A run of `--cells` times `--repetitions`, and one of
`--listed`, are written as the store writes them, with round trips that differ; then commands read them. 0 leaves a part
out.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from common import CROSSWIND, show

from crosswind.store.directory import Store
from crosswind.store.kept import Sums
from crosswind.store.manifest import Status
from crosswind.store.partitions import PACKED_AT_ONCE, RESULTS, packed_text, write_partition
from crosswind.store.plan import PlannedCell
from crosswind.store.result import RepetitionResult
from crosswind.study.identity import repetition_key

TINY = """
title = "Tiny repetitions"
path = {{ delay = ["1ms", "2ms"], loss = "1%" }}
workload = {{ kind = "echo", transport = "udp", size = 100, messages = 5 }}
study = {{ repetitions = {repetitions}, seed = 3 }}
"""
WORKERS = (1, 2, 4)
LOSSES = 100
"""Levels of one factor of a made-up run; the other has as many as its cells take."""


def crosswind(*arguments: object) -> tuple[float, float, float]:
    """Runs a command. Returns: seconds, seconds of processor time with what it started, and peak megabytes."""
    words = [*CROSSWIND, *map(str, arguments)]
    # A process of its own waits for the command, so that the peak is that of this command alone.
    program = (
        "import json, resource, subprocess, sys, time; t = time.perf_counter();"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE);"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "sys.stderr.buffer.write(done.stderr[-2000:]) if done.returncode > 1 else None;"
        "print(time.perf_counter() - t, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, check=True)
    wall, cpu, megabytes = map(float, done.stdout.split())
    return wall, cpu, megabytes


def shown(name: str, target: str, *arguments: object) -> None:
    """One command."""
    wall, cpu, megabytes = crosswind(*arguments)
    show(name, f"{wall:.1f} s, {cpu:.1f} s of processor time, {megabytes:.0f} MB", "-", f"{wall:.1f} s", target)


def tiny_run(directory: Path, repetitions: int) -> Path:
    """So many repetitions that are run, half of each of two cells."""
    study, run = directory / "tiny.toml", directory / "tiny"
    study.write_text(TINY.format(repetitions=repetitions // 2), encoding="utf-8")
    wall, cpu, megabytes = crosswind("run", study, "--clock", "virtual", "--output", run, "--no-report")
    size = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    show(
        f"{repetitions:,} tiny repetitions are run",
        f"{wall:.1f} s, {cpu / repetitions * 1e3:.1f} ms of processor time each with their cells, {megabytes:.0f} MB",
        f"{size / repetitions / 1e3:.1f} kB and {sum(1 for _ in run.rglob('*')) / repetitions:.2f} files each",
        f"{cpu / repetitions * 1e3:.1f} ms",
        "as little as possible",
    )
    return run


def by_workers(directory: Path, repetitions: int) -> None:
    """As many tiny repetitions by each kind of worker: what one costs more than by this machine's own."""
    study = directory / "workers.toml"
    study.write_text(TINY.format(repetitions=repetitions // 2), encoding="utf-8")
    own: tuple[float, float] | None = None
    kinds: list[tuple[str, list[object]]] = [("its own worker, one at a time", ["--jobs", 1])]
    kinds += [(f"Dask, {processes} processes", ["--on", f"local:{processes}"]) for processes in WORKERS]
    for at, (name, options) in enumerate(kinds):
        run = directory / f"workers-{at}"
        wall, cpu, megabytes = crosswind("run", study, "--clock", "virtual", "--output", run, "--no-report", *options)
        each = wall / repetitions * 1e3, cpu / repetitions * 1e3
        own = own or each
        show(
            f"{repetitions:,} tiny repetitions by {name}",
            f"{repetitions / wall:.1f} cells/s, each {each[0]:.1f} ms, {each[1]:.1f} ms processor, {megabytes:.0f} MB",
            f"its own: {own[0]:.1f} ms, {own[1]:.1f} ms of processor time",
            f"{each[1] - own[1]:+.1f} ms of processor time each, with start and end of the workers",
            "as little as possible",
        )


def made_up(source: Path, directory: Path, cells: int, repetitions: int, *, number: int = 0) -> Path:
    """A run of so many cells, of what one repetition of another run left: its round trips differ, by level and by
    chance.
    """
    of = Store.read(source)
    template = next(of.iter_results())
    place = of.unpacked(template, directory)
    tables = {name: pl.read_parquet(place / name) for name in sorted(template.files)}
    plan = list(plan_of(template.planned, cells, repetitions))
    manifest = replace(of.manifest, planned=len(plan), plan=None, id=f"{number:016x}")
    with Store.create(directory / f"run-{cells}-{repetitions}-{number}", manifest, plan) as store:
        draw = np.random.default_rng(number)
        for start in range(0, len(plan), PACKED_AT_ONCE):
            own = sorted(plan[start : start + PACKED_AT_ONCE], key=lambda planned: (planned.cell, planned.repetition))
            write_partition(
                store.directory,
                manifest.id,
                [planned.key for planned in own],
                {name: repeated(name, table, own, draw) for name, table in tables.items()} | results(template, own),
                Sums.of(replace(template, planned=planned) for planned in own),
            )
        store.set_status(Status.DONE)
    return store.directory


def plan_of(kind: PlannedCell, cells: int, repetitions: int) -> Iterator[PlannedCell]:
    """A plan in blocks of their own order."""
    orders = list(range(cells))
    factors = [(1 + cell // LOSSES, cell % LOSSES / 10) for cell in range(cells)]
    levels = [{"path.delay": f"{delay_ms}ms", "path.loss": f"{percent:g}%"} for delay_ms, percent in factors]
    paths = [path_of(kind.parameters["path"], *factor) for factor in factors]
    for repetition in range(repetitions):
        random.Random(repetition).shuffle(orders)
        for at, cell in enumerate(orders):
            key, seed = repetition_key(cell, repetition), 1000 + repetition
            yield replace(
                kind,
                key=key,
                order=repetition * cells + at,
                cell=cell,
                repetition=repetition,
                block=repetition,
                seed=seed,
                levels=levels[cell],
                parameters={**kind.parameters, "path": paths[cell], "id": key, "seed": seed},
            )


def path_of(path: dict[str, Any], delay_ms: int, percent: float) -> dict[str, Any]:
    """A path with a delay and a loss of each direction."""
    ways = {
        way: {**path[way], "delay_ns": delay_ms * 1_000_000, "loss": percent / 100} for way in ("forward", "reverse")
    }
    return {**path, **ways}


def repeated(name: str, table: pl.DataFrame, own: list[PlannedCell], draw: np.random.Generator) -> pl.DataFrame:
    """A table for each of some repetitions, one below the other."""
    height = table.height
    labels = {
        "cell": np.repeat([planned.cell for planned in own], height),
        "repetition": np.repeat([planned.repetition for planned in own], height),
    }
    rows = pl.concat([table] * len(own), rechunk=True)
    if name == "samples.parquet":
        later = labels["cell"] // LOSSES * 2_000_000 + draw.integers(0, 200_000, rows.height)
        rows = rows.with_columns(received_ns=pl.col("received_ns") + pl.Series(later))
    columns = [pl.Series(label, values, dtype=pl.UInt32) for label, values in labels.items()]
    return rows.select(*columns, pl.all())


def results(template: RepetitionResult, own: list[PlannedCell]) -> dict[str, pl.DataFrame]:
    """The table of their results."""
    text = packed_text(template)
    columns = {
        "cell": [planned.cell for planned in own],
        "repetition": [planned.repetition for planned in own],
        "result": [text.replace(template.key, planned.key) for planned in own],
    }
    return {RESULTS: pl.DataFrame(columns, schema_overrides={"cell": pl.UInt32, "repetition": pl.UInt32})}


@contextmanager
def directory_of(given: Path | None) -> Iterator[Path]:
    """Where runs are kept, and removed unless somebody named it."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as directory:
        yield Path(directory)


def main() -> None:
    """Measures what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=400)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--listed", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path)
    asked = parser.parse_args()
    os.environ.setdefault("CROSSWIND_DURATIONS", "off")
    with directory_of(asked.directory) as directory:
        source = tiny_run(directory, max(2, asked.run))
        if asked.workers:
            by_workers(directory, max(2, asked.workers))
        if asked.cells:
            started = time.perf_counter()
            run = made_up(source, directory, asked.cells, asked.repetitions)
            print(f"made up {asked.cells * asked.repetitions:,} in {time.perf_counter() - started:.0f} s\n", flush=True)
            name = f"{asked.cells * asked.repetitions:,} repetitions of {asked.cells:,} cells"
            other = made_up(source, directory, asked.cells, asked.repetitions, number=1)
            shown(f"runs, {name}", "5 s", "runs", run)
            shown(f"runs --details, {name}", "-", "runs", run, "--details")
            shown(f"run --resume with nothing left, {name}", "5 s", "run", "--resume", run, "--no-report")
            shown(f"report, {name}", "120 s, 2 GB", "report", run, "--html", directory / "page.html")
            shown(f"compare, {name}", "5 s", "compare", run, other)
            shown(f"clean, {name}", "5 s", "clean", other, "--yes")
        if asked.listed:
            run = made_up(source, directory, max(1, asked.listed // 100), 100)
            name = f"{asked.listed:,} repetitions"
            shown(f"runs, {name}", "5 s", "runs", run)
            shown(f"run --resume with nothing left, {name}", "5 s", "run", "--resume", run, "--no-report")
            shown(f"report, {name}", "-", "report", run, "--html", directory / "page.html")


if __name__ == "__main__":
    main()
