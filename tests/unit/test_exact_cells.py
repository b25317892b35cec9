"""Cells in which nothing is left to chance: one repetition, no interval, and comparisons that say so."""

import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from crosswind.analysis.result import LevelComparison
from crosswind.cell.record import CellRun
from crosswind.findings.fit.result import Fit
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.result import Answer
from crosswind.report.export import estimates_frame, samples_frame
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import EXACT, Interval, TooFewSamples
from crosswind.stats.repetitions import Repetitions
from records import MS, echoes, finished, parted, record, run, runs

VIRTUAL_END: dict[str, Any] = {
    **finished(),
    "virtual_time": True,
    "cpu": None,
    "fidelity": {**finished()["fidelity"], "starvation": None, "probe_starvation": None},
    "versions": {"crosswind_cell": "0.1.0", "kernel": "6.12.90"},
}
NOISY = [20 * MS + (7919 * at % 1000) for at in range(400)]
ALIKE: dict[str, Any] = {
    "asks": "Alike?", "metric": "rtt", "factor": "path.delay", "yes": "same", "scale": "difference", "margin": "5 ms",
    "bound": 5.0 * MS, "low": -5.0 * MS, "high": 5.0 * MS, "cells": [0, 1],
}  # fmt: skip


def exact(cell: int, rtts: list[int], delay: str = "10ms", **changes: Any) -> CellRun:
    """The one repetition of an exact cell."""
    return replace(run(cell, echoes(rtts), {"path.delay": delay}, end=VIRTUAL_END, **changes), exact=True)


def noisy(cell: int, rtts: list[int], delay: str = "20ms") -> list[CellRun]:
    """Ten repetitions on the real clock."""
    return runs(cell, [echoes(part) for part in parted(rtts, 10)], {"path.delay": delay})


def side(*values: float, is_exact: bool = False) -> Side:
    """A cell of repetitions of one value each."""
    return Side(Repetitions.of(values), exact=is_exact)


def estimate(value: float, *, method: str = EXACT) -> Interval:
    return Interval(value=value, low=None, high=None, n=3, level=0.95, method=method)


def compared(*cells: CellRun) -> LevelComparison:
    return next(made for made in analyse(record(*cells)).comparisons if made.metric == "rtt")


def test_a_constant_beside_few_samples_leaves_their_student_interval() -> None:
    few = side(10.0, 12.0, 14.0, 16.0)
    made = difference(side(10.0, is_exact=True), few)
    assert (made.value, made.freedom) == (3.0, 3)
    error = math.sqrt(20 / 3 / 4)
    assert made.limits(0.95) == pytest.approx((3 - 3.182446 * error, 3 + 3.182446 * error))
    turned = difference(few, side(10.0, is_exact=True))
    assert turned.limits(0.95) == pytest.approx((-3 - 3.182446 * error, -3 + 3.182446 * error))
    assert estimate_of(turned, level=0.95).n == 5


def test_a_ratio_to_an_exact_zero_is_refused() -> None:
    with pytest.raises(TooFewSamples, match="above 0"):
        ratio(side(0.0, is_exact=True), side(1.0, is_exact=True))


def test_shares_of_exact_cells_are_exact() -> None:
    closed = {"workload": {"kind": "echo", "transport": "tcp", "mode": "closed"}}
    alike = {**ALIKE, "metric": "delayed_share", "margin": "4%", "bound": 0.04, "low": -0.04, "high": 0.04}
    cells = [exact(at, [20 * MS] * 30, f"{at}ms", parameters=closed) for at in range(2)]
    result = analyse(record(*cells, questions=[alike]))
    assert result.cells[0].estimates["delayed_share"].mean.is_exact
    assert [answer.verdict for answer in result.of(Answer)] == ["yes"]


def test_exports_have_the_clock() -> None:
    frame = estimates_frame(analyse(record(exact(0, [MS]), *noisy(1, NOISY))))
    assert dict(frame.select("cell", "clock").unique().iter_rows()) == {0: "virtual", 1: "real"}
    assert set(frame.filter(pl.col("cell") == 0, pl.col("statistic") != "p99.9")["method"]) == {EXACT}
    samples = samples_frame(record(exact(0, [MS]), *noisy(1, NOISY)))
    assert dict(samples.select("cell", "clock").unique().iter_rows()) == {0: "virtual", 1: "real"}


def test_fits_take_exact_cells_as_they_are() -> None:
    parameters = {"workload": {"kind": "echo", "transport": "tcp"}}
    first = replace(
        run(0, echoes([20 * MS] * 30), {"path.loss": "0%"}, end=VIRTUAL_END, parameters=parameters), exact=True
    )
    others = [
        run(
            number,
            echoes([round((20 + 3 * 2 ** (loss / 5)) * MS) + (at * 7919 + again * 31) % MS for at in range(30)]),
            {"path.loss": f"{loss}%"},
            repetition=again,
            parameters={**parameters, "path": {"forward": {"loss": loss / 100}, "reverse": {"loss": loss / 100}}},
        )
        for number, loss in enumerate((5, 10, 15), start=1)
        for again in range(4)
    ]
    fit = {
        "title": "f", "model": "caia-exponential", "metric": "rtt", "x": "path.loss", "by": "workload.size",
        "over": "workload.transport", "where": {}, "note": None, "published": [], "cells": [0, 1, 2, 3],
    }  # fmt: skip
    (made,) = analyse(record(first, *others, fits=[fit])).of(Fit)
    reason = made.rows[0].c.reason or ""
    assert "repetitions of each cell" not in reason


def test_what_takes_no_time_has_no_ratio() -> None:
    """Without delay an exchange takes some nanoseconds in virtual time: the ratio of two of them says nothing."""
    cells = {"0ms": (16, 26), "5ms": (10 * MS, 20 * MS)}
    runs_of = [
        replace(exact(2 * at + other, [time], delay), levels={"path.delay": delay, "workload.transport": "ab"[other]})
        for at, (delay, times) in enumerate(cells.items())
        for other, time in enumerate(times)
    ]
    faster = {
        "asks": "Faster?", "metric": "rtt", "factor": "workload.transport", "yes": "less", "scale": "ratio",
        "high": 1.0, "is_open": True, "cells": [0, 1, 2, 3],
        "compare": [{"level": "a", "cells": [0, 2]}, {"level": "b", "cells": [1, 3]}],
    }  # fmt: skip
    result = analyse(record(*runs_of, questions=[faster]))
    (answer,) = result.of(Answer)
    assert [case.fixed["path.delay"] for case in answer.cases] == ["5ms"]
    assert answer.instant == ["delay 0ms"]
    assert str(answer.sentence).endswith("delay 0ms: both take less than 1 µs, no ratio.")
    made = [each for each in result.comparisons if each.metric == "rtt" and each.factor == "workload.transport"]
    of_levels = {each.fixed["path.delay"]: each.ratio.value for each in made}
    assert of_levels == {"0ms": None, "5ms": pytest.approx(2)}
