"""Intervals of shares against scipy, and what repetitions that differ do to them."""

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import Share, TooFewSamples, clopper_pearson, share_interval
from crosswind.stats.share import difference_limits


@pytest.mark.parametrize(("lost", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 500), (57, 1000)])
def test_against_scipy(lost: int, n: int) -> None:
    expected = stats.binomtest(lost, n).proportion_ci(0.95, method="exact")
    assert clopper_pearson(lost, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
    single = share_interval(Share.of([1] * lost + [0] * (n - lost), [1] * n))
    assert (single.low, single.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_none_lost_of_a_hundred_is_the_rule_of_three_exactly() -> None:
    assert clopper_pearson(0, 100)[1] == pytest.approx(1 - 0.025 ** (1 / 100))


def test_the_effective_number_of_trials() -> None:
    # Shares .1, .2, .3, .2 of 100 each: variance of the mean .0066667/4; p q / that = 96, times (1.96 / 3.18)^2.
    share = Share.of([10, 20, 30, 20], [100] * 4)
    effective = 0.2 * 0.8 / (0.02 / 3 / 4)
    t = stats.t.ppf(0.975, 3)
    worth = effective * (stats.norm.ppf(0.975) / t) ** 2
    found = share_interval(share)
    assert (found.low, found.high) == pytest.approx(clopper_pearson(0.2 * worth, worth))


def test_repetitions_that_agree_better_than_chance_are_worth_no_more_than_their_trials() -> None:
    share = Share.of([20] * 5, [100] * 5)
    assert share.worth(0.95) == pytest.approx(500 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 4)) ** 2)


def test_too_few_repetitions() -> None:
    found = share_interval(Share.of([1, 3], [10, 10]))
    assert (found.value, found.low, found.spread) == (0.2, None, (0.1, 0.3))
    assert found.reason == "an interval of a share needs 3 repetitions, there are 2: 1 more"


def test_impossible_counts() -> None:
    with pytest.raises(TooFewSamples):
        Share.of([0, 0], [0, 0])
    with pytest.raises(ValueError, match="0 <= events <= trials"):
        Share.of([11], [10])
    with pytest.raises(ValueError, match="not a proportion"):
        clopper_pearson(11, 10)


def test_none_against_none_still_has_an_interval() -> None:
    # Newcombe 1998, method 10, with exact limits: 1 - 0.05^(1/24) on either side.
    none = Share.of([0] * 24, [1] * 24)
    end = 1 - 0.05 ** (1 / 24)
    assert difference_limits(none, none, 0.05) == pytest.approx((-end, end))
    assert np.isclose(end, 0.117, atol=5e-4)
