"""Repetitions that are alike and that are not, and what messages of one are worth."""

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from crosswind.findings.pipeline import analyse
from crosswind.stats.diagnostics import diagnostics_of, intraclass_correlation
from crosswind.stats.repetitions import Repetitions
from records import echoes, record, runs


def test_drift_is_spearmans_correlation_with_the_order() -> None:
    means = np.random.default_rng(1).normal(0, 1, 12) + np.arange(12) / 4
    found = diagnostics_of(Repetitions.of(means))
    expected = stats.spearmanr(means, np.arange(12))
    assert found.drift == pytest.approx(expected.statistic)


@pytest.mark.parametrize(
    "means",
    [
        [3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0],
        [1.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.0],
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0, 9.0],
        list(range(8)),
    ],
    ids=["mixed", "two values", "rare", "ascending"],
)
def test_of_eight_repetitions_small_p_values_are_those_of_all_orders(means: list[float]) -> None:
    found = diagnostics_of(Repetitions.of(means))

    def drift(order: np.ndarray) -> float:
        return abs(float(stats.spearmanr(order, np.arange(8)).statistic))

    ranks = stats.rankdata(means) - 4.5
    orders = np.array(list(permutations(ranks)))
    rho = orders @ (np.arange(8) - 3.5) / np.sqrt((ranks @ ranks) * 42)
    lag = np.sum(orders[:, 1:] * orders[:, :-1], axis=1) / (ranks @ ranks) + 1 / 8
    exact = (
        np.mean(np.abs(rho) >= drift(np.array(means)) - 1e-9),
        np.mean(np.abs(lag) >= abs(found.lag1 + 1 / 8) - 1e-9),
    )
    # What is not small is drawn: of a thousand orders within four standard deviations.
    for p, expected in zip((found.drift_p, found.lag1_p), exact, strict=True):
        assert p == pytest.approx(expected, rel=1e-9 if expected < 0.01 else 0, abs=0 if expected < 0.01 else 0.064)


def test_eight_ascending_repetitions_are_two_orders_of_all() -> None:
    assert diagnostics_of(Repetitions.of(np.arange(8.0))).drift_p == pytest.approx(2 / math.factorial(8))


def test_neighbours_that_alternate_and_neighbours_that_are_alike() -> None:
    alternating = diagnostics_of(Repetitions.of([float(at % 2 * 10 + at * 7 % 20 / 100) for at in range(20)]))
    slow = diagnostics_of(Repetitions.of(np.sin(np.arange(40) / 6)))
    assert alternating.lag1 < -0.7
    assert alternating.lag1_p < 0.01
    assert slow.lag1 > 0.8
    assert slow.lag1_p < 0.001


def test_the_intraclass_correlation_of_a_textbook() -> None:
    # Shrout & Fleiss (1979), table 2: four judges of six targets; ICC(1,1) = .17.
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    units = Repetitions.of(np.ravel(ratings).astype(float), np.repeat(range(6), 4))
    assert intraclass_correlation(units) == pytest.approx(0.166, abs=5e-4)


def test_copies_of_a_value_are_worth_one() -> None:
    values = np.random.default_rng(2).normal(0, 1, 20)
    found = diagnostics_of(Repetitions.of(np.repeat(values, 50), np.repeat(range(20), 50)))
    assert found.icc == pytest.approx(1)
    assert found.effective_n == pytest.approx(19)  # n - 1 of n: the variance of n values divides by n
    assert intraclass_correlation(Repetitions.of(values)) is None


def test_constant_and_few_values_say_nothing() -> None:
    constant = diagnostics_of(Repetitions.of([1.0] * 30, np.repeat(range(10), 3)))
    assert (constant.drift, constant.lag1, constant.icc, constant.effective_n) == (None, None, None, None)
    assert diagnostics_of(Repetitions.of([1.0, 2.0])).drift is None


def test_a_run_that_drifts_is_warned_of_and_one_that_does_not_is_not() -> None:
    rng = np.random.default_rng(3)

    def cell_of(rtts: np.ndarray):
        return analyse(record(*runs(0, [echoes([round(rtt) for rtt in own]) for own in rtts]))).cells[0]

    steady = cell_of(rng.normal(20e6, 1e5, (20, 10)))
    drifting = cell_of(rng.normal(20e6, 1e5, (20, 10)) + 1e5 * np.arange(20)[:, None])
    assert steady.warnings == []
    (warning,) = drifting.warnings
    assert warning.name == "drift"
    assert warning.text.startswith("Round-trip time drifts over the repetitions: its rank correlation with their ")
    assert drifting.estimates["rtt"].diagnostics.drift_p < 2e-5
