"""Repetitions that lose the same packets are run once, and come out as if each had been run."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from crosswind.store.directory import Store
from e2e_cli import Cli
from virtual.conftest import requires_kernel

REPETITIONS = 24
LOSSY = ("--delay", "20ms", "--messages", "5", "--loss", "1%", "--clock", "virtual")


def test_every_repetition_is_as_if_it_had_been_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    hosts = ("--set", "host.random_seed=3", "--transport", "tcp,http3")
    ran = crosswind("run", "echo", *LOSSY, *hosts, "--repetitions", str(REPETITIONS), "--output", "run")
    assert ran.status == 0, ran.err
    assert "each losing other packets" in ran.err
    store = Store.read(tmp_path / "run")
    results = store.results()
    assert len(results) == 2 * REPETITIONS
    for cell in (0, 1):
        own = [result for result in results.values() if result.planned.cell == cell]
        assert [result.planned.repetition for result in sorted(own, key=lambda one: one.planned.repetition)] == list(
            range(REPETITIONS)
        )
        run = [result for result in own if result.same_as is None]
        assert 3 < len(run) < REPETITIONS
        losses = {tuple(result.finished.ledger.forward.dropped.items()) for result in run if result.finished}
        assert len(losses) > 1
    verified = crosswind("verify", "run", "--all")
    assert verified.status == 0, verified.out
    assert f"{2 * REPETITIONS} of {2 * REPETITIONS} cells came out the same" in verified.out
    # Without the copies, nothing behind the first missing repetition counts: which are there depends on what they lose.
    before = samples(crosswind)
    shutil.rmtree(tmp_path / "run" / "partitions")
    left = samples(crosswind)["repetition"].unique().sort().to_list()
    assert left == list(range(len(left))) and len(left) < 10
    assert crosswind("run", "--resume", "run").status == 0
    assert samples(crosswind).drop("client_port").equals(before.drop("client_port"))


def samples(crosswind: Cli) -> pl.DataFrame:
    assert crosswind("report", "run", "--samples", "samples.parquet").status in (0, 1)
    return pl.read_parquet(crosswind.cwd / "samples.parquet").sort("cell", "repetition", "exchange")


def test_a_precision_takes_the_same_repetitions_as_known(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    words = ("run", "echo", "--transport", "tcp", *LOSSY, "--precision", "20%", "--repetitions-max", "400")
    assert crosswind(*words, "--output", "run").status == 0
    results = Store.read(tmp_path / "run").results().values()
    assert len(results) > 40
    assert sum(result.same_as is None for result in results) < len(results) / 2
