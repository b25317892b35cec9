"""`crosswind fit` as people call it: what it prints, and what it says to what it cannot fit."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from crosswind.analysis.model_fit import AT_BOUND
from crosswind.cell.record import RunRecord
from crosswind.cli.fit import command
from crosswind.errors import StoreError, UsageError
from records import path, record, runs, timed


def lossy(cell: int, size: int, loss: float, repetitions: int = 50):
    """Repetitions of two transfers."""
    parameters = {
        "path": path(loss=loss, rate_bps=6_000_000, delay_ns=10_000_000),
        "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size},
    }
    times = [round(size * 1e3 * (1 + 10 * loss) * factor) for factor in (0.9, 1.1)]
    levels = {"workload.size": str(size), "path.loss": f"{loss:.0%}"}
    tables = [timed([time + repetition for time in times], size=size) for repetition in range(repetitions)]
    return runs(cell, tables, levels, parameters=parameters)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch):
    """Calls `crosswind fit` on a record, without a directory."""

    def call(found: RunRecord, *options: str) -> str:
        class Loaded:
            directory = Path("a-run")

            def measured(self) -> RunRecord:
                return found

        monkeypatch.setattr("crosswind.store.run.load", lambda _: Loaded())
        return CliRunner().invoke(command, ["a-run", *options], catch_exceptions=False).output

    return call


LEVELS = [(size, loss) for size in (15_000, 64_000, 256_000) for loss in (0.02, 0.05, 0.1)]


def all_cells(repetitions: int = 50) -> RunRecord:
    """Cells of one rate and one round trip."""
    return record(*(own for index, level in enumerate(LEVELS) for own in lossy(index, *level, repetitions)))


def test_every_coefficient_has_its_interval_and_every_model_its_held_out_error(fitted) -> None:
    found = all_cells()
    plain = json.loads(fitted(found, "--model", "power-law", "--model", "pftk-kappa", "--json"))
    assert {made["model"] for made in plain["fits"]} == {"power-law", "pftk-kappa"}
    for made in plain["fits"]:
        assert made["held_out_median"] > 0
        told = [part for part in made["coefficients"] if part["reason"] is None]
        assert all(part["low"] <= part["value"] <= part["high"] for part in told)
        assert all(part["reason"] == AT_BOUND for part in made["coefficients"] if part["at_bound"])
    text = fitted(found, "--model", "power-law")
    assert "a-study: 9 cells with loss" in text
    assert "held out" in text and "size" in text


def test_a_coefficient_of_what_does_not_vary_has_no_number(fitted) -> None:
    """The exponents of the rate and of the round trip could be anything."""
    found = all_cells()
    (made,) = json.loads(fitted(found, "--model", "power-law", "--json"))["fits"]
    parts = {part["name"]: (part["value"], part["low"], part["high"]) for part in made["coefficients"]}
    told = {name for name, numbers in parts.items() if None not in numbers}
    assert told == {"segments", "loss"}
    assert all(parts[name] == (None, None, None) for name in ("ln k", "serialisation", "round_trip"))
    text = fitted(found, "--model", "power-law")
    assert any(line.split()[:4] == ["round_trip", "–", "these", "cells"] for line in text.splitlines())


def test_a_coefficient_of_few_repetitions_has_no_interval_and_says_how_many_more_it_takes(fitted) -> None:
    text = fitted(all_cells(repetitions=5), "--model", "power-law")
    why = "an interval of a fitted coefficient needs 20 repetitions, there are 5: 15 more"
    assert any(line.split()[0] == "segments" and line.endswith(why) for line in text.splitlines() if line.strip())


def test_an_unknown_model_is_refused(fitted) -> None:
    with pytest.raises(UsageError, match="newton: there is no such model") as caught:
        fitted(record(), "--model", "newton")
    assert "transfer" in caught.value.hint


def test_an_empty_run_is_refused(fitted) -> None:
    with pytest.raises(StoreError, match="a-run: there are too few cells to fit to") as caught:
        fitted(record())
    assert caught.value.exit_code == 2


def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        CliRunner().invoke(command, [str(tmp_path / "nothing")], catch_exceptions=False)
