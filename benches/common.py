"""What the benches share: cells, medians with their spread, and how a result is shown."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).parent
CELL = os.environ.get("CROSSWIND_CELL", str(HERE.parent / "target" / "release" / "crosswind-cell"))
INSTALLED = shutil.which("crosswind")
CROSSWIND = [INSTALLED] if INSTALLED else [sys.executable, "-m", "crosswind"]
"""The installed command, or the one of the source tree (PYTHONPATH=python) where none is installed."""
ROUNDS = 5
MILLISECOND = 1_000_000
Json = dict[str, Any]
Bench = Callable[[Path], None]


def run_cell(workload: Json, *, path: Json | None = None, output: Path | None = None, **recording: bool) -> Json:
    """Runs one cell and returns its `finished` event."""
    cell: Json = {"schema": "crosswind.cell/1", "workload": workload, "path": path or {}}
    if output is not None:
        cell["output"] = {"directory": str(output), **recording}
    done = subprocess.run([CELL], input=json.dumps(cell).encode(), stdout=subprocess.PIPE, check=False)
    last: Json = json.loads(done.stdout.splitlines()[-1])
    if last["event"] != "finished":
        sys.exit(f"error: {last['message']}\nhint: {last['hint']}")
    return last


def symmetric(**direction: object) -> Json:
    """A path that is the same both ways."""
    return {"forward": direction, "reverse": direction}


def samples(directory: Path) -> pl.DataFrame:
    """The successful samples of the last cell that wrote into the directory."""
    return pl.read_ipc(directory / "samples.arrow").filter(pl.col("outcome") == "ok")


def alternate(a: Callable[[], float], b: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Measures the two alternately, ROUNDS times."""
    pairs = [(a(), b()) for _ in range(ROUNDS)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def spread(values: list[float], scale: float, unit: str) -> str:
    """Median, smallest and largest."""
    low, middle, high = min(values) / scale, statistics.median(values) / scale, max(values) / scale
    return f"{middle:.2f} {unit} [{low:.2f}, {high:.2f}]"


def show(name: str, ours: str, reference: str, ratio: str, target: str) -> None:
    """One result."""
    print(
        f"{name}\n  ours       {ours}\n  reference  {reference}\n  result     {ratio}   (target: {target})\n",
        flush=True,
    )


def stolen() -> float:
    """Seconds of processor time that a hypervisor has kept from this machine."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def main(benches: dict[str, Bench]) -> None:
    """Runs all benches of a program, or those that its command line names."""
    wanted = sys.argv[1:] or list(benches)
    if unknown := [name for name in wanted if name not in benches]:
        sys.exit(f"error: no such bench: {', '.join(unknown)}\nhint: there are {', '.join(benches)}")
    load = os.getloadavg()[0]
    print(
        f"load before the start: {load:.2f}"
        + ("   (not idle: absolute figures will be worse)\n" if load > 0.5 else "\n")
    )
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crosswind-bench-") as directory:
        for name in wanted:
            benches[name](Path(directory))
    print(f"{Path(sys.argv[0]).stem}: {time.monotonic() - started:.0f} s\n")
