"""Exponential curves through the cells of a run."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.findings.fit.curves import average_coefficients
from crosswind.findings.fit.result import Fit
from crosswind.findings.pipeline import analyse
from crosswind.stats.exponential import Exponential
from records import path, record, run, table, timed

LOSSES = (0.0, 0.01, 0.02, 0.05, 0.08, 0.1)
TRANSFER = {"workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}}


def curve_cells(a: float, b: float, c: float, *, first: int = 0, rate: str = "6mbit", noise: float = 0.0, **changes):
    """Cells of one size and rate whose repetitions lie on t = a + b e^(c p), or about it."""
    repetitions, losses = changes.get("repetitions", 4), changes.get("losses", LOSSES)
    rng = np.random.default_rng(first + 1)
    runs = []
    for index, loss in enumerate(losses):
        levels = {"path.loss": f"{loss:.0%}", "path.rate": rate, "workload.size": changes.get("size", "1MB")}
        parameters = TRANSFER | {"path": path(loss=loss)}
        for at in range(repetitions):
            seconds = a + b * math.exp(c * loss) + noise * float(rng.normal())
            samples = timed([round(1e9 * seconds)])
            runs.append(run(first + index, samples, levels, repetition=at, parameters=parameters))
    return runs


def fitted(*runs, published: tuple = ()):
    asked = {
        "title": "Table II", "model": "caia-exponential", "metric": "transfer_time", "x": "path.loss",
        "by": "workload.size", "over": "path.rate", "cells": sorted({repetition.cell for repetition in runs}),
        "published": published,
    }  # fmt: skip
    (fit,) = analyse(record(*runs, fits=[asked])).of(Fit)
    return fit


def test_a_fit_recovers_the_coefficients_of_exact_data() -> None:
    fit = fitted(*curve_cells(1.0, 0.6, 27.0, repetitions=60))
    (row,) = fit.rows
    assert (row.level, fit.unit, row.shape) == ("1MB", "s", "exponential")
    assert (row.a.value, row.b.value, row.c.value) == pytest.approx((1.0, 0.6, 27.0), rel=1e-6)
    # Repetitions that are all alike leave nothing to resample.
    assert (row.c.low, row.c.high) == pytest.approx((27.0, 27.0), rel=1e-6)
    assert row.c.n == 360
    assert row.r_squared == pytest.approx(1)


def test_a_coefficient_has_an_interval_where_the_means_of_its_cells_have_one() -> None:
    (row,) = fitted(*curve_cells(1.0, 0.6, 27.0)).rows
    assert (row.c.value, row.c.low, row.c.high) == (pytest.approx(27.0, rel=1e-6), None, None)
    assert row.c.reason == (
        "a coefficient has an interval where the means of its cells have one: an interval of a mean where losses delay "
        "exchanges needs 51 repetitions, there are 4: 47 more"
    )


def test_limits_of_few_repetitions_are_as_much_further_away_as_students_t() -> None:
    fits = Exponential(*(np.full(1, 10.0) for _ in range(3)), np.array([False]), *(np.ones(1) for _ in range(3)))
    drawn = 10 + np.arange(-499, 500) / 1000
    again = Exponential(drawn, drawn, drawn, np.zeros(999, dtype=bool), *(np.ones(999) for _ in range(3)))
    made = average_coefficients([fits], [again], 30, 0.95, units=5)["c"]
    wider = stats.t.ppf(0.975, 4) / stats.norm.ppf(0.975)
    assert (made.low, made.high) == pytest.approx((10 - wider * 0.47405, 10 + wider * 0.47405))


def test_each_size_has_a_row_and_its_own_published_coefficients() -> None:
    theirs = ({"source": "S", "level": "5kB", "b": 0.04, "c": 21.0},)
    small = curve_cells(0.1, 0.04, 21, first=6, size="5kB", repetitions=60)
    fit = fitted(*curve_cells(1, 0.6, 27), *small, published=theirs)
    assert [(row.level, len(row.published)) for row in fit.rows] == [("1MB", 0), ("5kB", 1)]
    assert fit.rows[1].published[0].b_inside is not None


def empty_cell(cell: int):
    levels = {"path.rate": "6mbit", "workload.size": "1MB"}
    return run(cell, table(0), levels, parameters=TRANSFER | {"path": path(loss=0.1)})


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (curve_cells(1, 0.6, 27, losses=(0.0, 0.02, 0.05)), "an exponential needs 4, there are 3"),
        (curve_cells(1, 0.6, 27, repetitions=2), "an interval needs 3 repetitions of each cell, one has 2"),
        ([*curve_cells(1, 0.6, 27)[:-4], empty_cell(5)], "1 of 6 cells have no samples"),
        (curve_cells(1, 0.6, 27) + curve_cells(1, 0.6, 27, first=6), "cells of the same loss differ"),
        (curve_cells(1, 0.0, 27), "the times are the same at every loss"),
    ],
)  # fmt: skip
def test_a_fit_is_refused_with_its_reason(runs: list, reason: str) -> None:
    (row,) = fitted(*runs).rows
    for coefficient in (row.a, row.b, row.c):
        assert (coefficient.value, coefficient.low, coefficient.high) == (None, None, None)
        assert reason in coefficient.reason
    assert (row.r_squared, row.shape) == (None, None)


def test_one_curve_that_cannot_be_fitted_refuses_the_average_and_is_named() -> None:
    some = curve_cells(1, 0.6, 27)
    few = curve_cells(1, 0.6, 27, first=6, rate="15mbit", losses=(0.0, 0.02, 0.05))
    (row,) = fitted(*some, *few).rows
    assert row.c.reason == "15mbit: not enough places: an exponential needs 4, there are 3"
    assert row.series[0].c.value == pytest.approx(27, rel=1e-6)


def test_a_straight_line_is_called_so_and_has_no_b() -> None:
    runs = curve_cells(1.0, 0.0, 0.0, noise=0.02, repetitions=60)
    for repetition in runs:
        loss = repetition.parameters["path"]["forward"]["loss"]
        longer = repetition.samples.with_columns(wire_ns=repetition.samples["wire_ns"] + round(10e9 * loss))
        object.__setattr__(repetition, "samples", longer)
    (row,) = fitted(*runs).rows
    assert row.shape != "exponential"
    assert row.c.low < 0 < row.c.high
    assert row.b.reason == "c may be 0: the curve is then a straight line, for which a and b are not defined"


def test_a_step_bounds_no_c() -> None:
    (row,) = fitted(*curve_cells(1.0, 1e-9, 207.0)).rows  # 16 ms at 8 %, 1 s at 10 %
    assert row.c.reason.startswith("the samples do not bound c")
