"""How many repetitions a precision will take, from an earlier run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosswind.analysis.needed import NeededRepetitions, needed_repetitions
from crosswind.cli import main
from crosswind.cli.plan_precision import needed_text, seconds_by_cell
from crosswind.stats.sample_size import repetitions_for_width, spread_limits
from crosswind.stats.sequential import width_factor
from crosswind.store.cells import CellsFolder
from crosswind.study.precision import look_schedule
from echo_cells import BASE_MS, exact, parameters, repetitions
from effects import effect_of
from records import MS, echoes, record, run
from runs import RUN_ID, cell_result, echo_samples, new_run, planned_cell

LOOKS = look_schedule(5, 100)


def needed(pilot: list[Any], *, bound: float = 0.05, statistic: str = "mean", **changes: Any) -> NeededRepetitions:
    """For one cell, which has the parameters of `repetitions` with these changes."""
    asked = {
        "targets": [
            {"metric": "rtt", "statistic": statistic, "target": "t", "is_relative": True, "bound": bound, "cells": [0]}
        ],
        "looks": [{"cells": [0], "repetitions": list(LOOKS)}],
    }
    cell = parameters(delay_ns=10 * MS, **changes)
    (found,) = needed_repetitions(asked, {0: ({}, cell, effect_of(cell))}, record(*pilot))
    return found


def test_it_is_the_first_look_whose_interval_is_narrow_enough_for_the_spread() -> None:
    found = needed(repetitions(BASE_MS))
    spread = float(np.std(BASE_MS, ddof=1) * MS)
    assert found.spread == pytest.approx(spread, rel=1e-6)
    assert found.wanted == pytest.approx(0.05 * np.mean(BASE_MS) * MS, rel=1e-6)
    assert found.needed is not None
    at = LOOKS.index(found.needed)
    assert width_factor(found.needed, at, LOOKS) * spread <= found.wanted
    assert width_factor(LOOKS[at - 1], at - 1, LOOKS) * spread > found.wanted
    assert found.fixed == repetitions_for_width(spread, found.wanted)
    assert found.fixed < found.needed


def test_its_range_is_that_of_the_spread() -> None:
    found = needed(repetitions(BASE_MS))
    low, high = spread_limits(1.0, 6, level=0.8)
    assert found.low is not None
    assert found.needed is not None
    assert found.low < found.needed < (found.high or 1000)
    # Repetitions grow with the square of the spread; looks are a quarter apart, and the critical values fall.
    assert found.needed * low**2 / 2 < found.low < found.needed * low**2 * 2
    assert found.high is None or found.high < found.needed * high**2 * 2


def test_there_is_no_range_where_an_earlier_run_may_have_missed_rare_long_waits() -> None:
    lossy = {"transport": "tcp", "loss": 0.1}
    for statistic, has_range in (("mean", False), ("median", True)):
        found = needed(repetitions([20 + 0.1 * at for at in range(60)], **lossy), statistic=statistic, **lossy)
        assert found.needed is not None
        assert (found.low is not None) == (found.high is not None) == found.has_range == has_range
        assert needed_text(found).startswith(str(found.needed))
        assert ("[" in needed_text(found)) == has_range


def test_a_mean_that_takes_more_repetitions_by_design_than_there_may_be_is_not_forecast() -> None:
    lossy = {"transport": "tcp", "loss": 0.02}
    found = needed(repetitions(BASE_MS, **lossy), **lossy)
    assert found.reason == "its interval takes 125 repetitions by design, and 100 are the most"


def test_repetitions_that_are_all_the_same_take_those_of_a_sign_test() -> None:
    found = needed(repetitions([20.0] * 6))
    assert (found.spread, found.low, found.needed, found.high) == (0, 10, 10, 10)


def test_beyond_the_most_there_is_no_number() -> None:
    found = needed(repetitions(BASE_MS), bound=0.001)
    assert (found.needed, found.low, found.high) == (None, None, None)
    assert needed_text(found) == "more than 100"
    assert seconds_by_cell([found], {0: 2.0}) == {0: 200.0}


@pytest.mark.parametrize(
    ("pilot", "reason"),
    [
        (repetitions(BASE_MS[:2]), "a spread needs 3 repetitions, there are 2"),
        (repetitions(BASE_MS, transport="tcp", levels={"x": "1"}), "the earlier run has no such cell"),
        ([run(0, echoes([None]), parameters=parameters())], "no repetition has a value"),
    ],
    ids=["two repetitions", "another cell", "all lost"],
)
def test_what_is_not_known_says_why(pilot: list[Any], reason: str) -> None:
    found = needed(pilot)
    assert (found.needed, found.reason) == (None, reason)


def test_an_exact_cell_needs_one_repetition() -> None:
    assert needed(exact(20)).needed == 1


@pytest.fixture
def planning(
    fake_cell: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> Callable[..., tuple[int, str, str]]:
    """Plans a study of one echo: (exit status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell("")))

    def plan(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(["plan", "echo", "--clock", "real", "--transport", "udp", "--messages", "20", *words])
        out, err = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    return plan


def test_a_plan_says_what_a_precision_takes(planning: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    pilot = tmp_path / "pilot"
    plan = [planned_cell(0, key=f"c000-r{n:02d}", repetition=n, order=n, levels={}) for n in range(5)]
    with new_run(pilot, plan=plan):
        folder = CellsFolder(pilot, RUN_ID)
        for planned in plan:
            part = folder.begin(planned.key)
            echo_samples(20 + planned.repetition).write_parquet(part / "samples.parquet")
            folder.commit(part, cell_result(planned, elapsed_ns=2_000_000_000))
    status, out, _ = planning("--precision", "2%", "--from", str(pilot))
    assert (status, "5 repetitions at first" in out, "mean(rtt)" in out) == (0, True, True)
    status, out, _ = planning("--precision", "2%", "--from", str(pilot), "--json")
    found = json.loads(out)["precision"]
    (one,) = found["needed"]
    assert (status, one["pilot_units"], found["seconds"]) == (0, 5, 2.0 * one["needed"])
