"""The runs that both sides read. The earlier tree makes them once, in virtual time: each side reads the same bytes."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from golden.sides import Side

LARGE_CELLS, LARGE_REPETITIONS = 2000, 10
INTERRUPTED_S = 8.0
"""After this time a run is told to end."""


@dataclass(frozen=True)
class Made:
    """A run that is run. Attributes: options: of the command. command: what `exec` starts."""

    kind: str
    options: str
    command: tuple[str, ...] = ()

    def words(self, place: str) -> list[str]:
        """Its command line."""
        words = [self.kind, *self.options.split(), "--clock", "virtual", "--output", place]
        if self.command:
            return [*words, "--server", f"{sys.executable} -m http.server {{port}}", "--", *self.command]
        return [*words, "--no-report"]


_RARE = "echo --transport tcp --delay 20ms --loss 0.5% --messages 10 --repetitions 40"

RUNS: Mapping[str, Made] = {
    "quickstart": Made("run", "quickstart --quick"),
    "thesis": Made("run", "thesis --quick"),
    "bufferbloat": Made("run", "bufferbloat --quick"),
    "transfer-time": Made("run", "transfer-time --quick"),
    "mathis": Made("run", "mathis --quick"),
    "queues": Made("run", "queues --quick"),
    "websocket-or-http": Made("run", "websocket-or-http --quick"),
    "call-and-upload": Made("run", "call-and-upload --quick"),
    "page-load": Made("run", "page-load --quick"),
    "ladder": Made("run", "echo --transport tcp,quic --ladder --repetitions 3 --messages 20"),
    "before": Made("run", _RARE),
    "after": Made("run", f"{_RARE} --set host.min_rto=1s"),
    "program": Made(
        "exec", "--network 4g --loss 2% --repetitions 5",
        ("curl", "-sS", "--fail", "--max-time", "5", "-o", "/dev/null", "http://server:{port}/"),
    ),
}  # fmt: skip


def _interrupted(base: Side, runs: Path, place: Path) -> None:
    del runs
    words = ["run", "echo", "--delay", "20ms", "--messages", "200", "--repetitions", "500", "--loss", "2%"]
    words += ["--clock", "virtual", "--jobs", "1", "--output", str(place), "--no-report"]
    environment = {**os.environ, "PYTHONPATH": str(base.root / "python"), "CROSSWIND_CELL": str(base.cell)}
    run = subprocess.Popen([sys.executable, "-P", "-m", "crosswind", *words], env=environment)
    try:
        run.wait(INTERRUPTED_S)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
    run.wait(60)


def _damaged(base: Side, runs: Path, place: Path) -> None:
    """The quick start with a file of samples cut off, and one that is gone."""
    del base
    shutil.copytree(runs / "quickstart", place)
    samples = sorted(path for path in place.rglob("*.parquet") if path.stat().st_size > 200)
    samples[0].write_bytes(samples[0].read_bytes()[:-100])
    samples[-1].unlink()


def _large(base: Side, runs: Path, place: Path) -> None:
    """A run of so many cells that most of them are only counted."""
    program = (
        "import sys; from pathlib import Path; from scale import made_up; "
        f"made_up(Path(sys.argv[1]), Path(sys.argv[2]), {LARGE_CELLS}, {LARGE_REPETITIONS})"
    )
    work = place.with_name("large-work")
    work.mkdir()
    environment = {**os.environ, "PYTHONPATH": f"{base.root / 'python'}:{base.root / 'benches'}"}
    subprocess.run([sys.executable, "-P", "-c", program, str(runs / "before"), str(work)], env=environment, check=True)
    next(work.glob("run-*")).rename(place)
    shutil.rmtree(work)


DERIVED: Mapping[str, Callable[[Side, Path, Path], None]] = {
    "interrupted": _interrupted, "damaged": _damaged, "large": _large,
}  # fmt: skip


def make_runs(base: Side, runs: Path) -> None:
    """Make those that are not there."""
    runs.mkdir(parents=True, exist_ok=True)
    for name, run in RUNS.items():
        _once(runs / name, partial(_run, base, run))
    for name, derive in DERIVED.items():
        _once(runs / name, partial(derive, base, runs))


def _run(base: Side, run: Made, place: Path) -> None:
    ended = base.crosswind(run.words(str(place)), place.parent)
    if not place.exists():
        raise SystemExit(f"error: {place.name} was not made: {ended.stderr}")


def _once(place: Path, make: Callable[[Path], None]) -> None:
    if not place.exists():
        unfinished = place.with_name(f"{place.name}.part")
        shutil.rmtree(unfinished, ignore_errors=True)
        make(unfinished)
        unfinished.rename(place)
        print(f"made {place.name}", flush=True)
