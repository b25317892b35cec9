"""Intervals of shares and of their differences against scipy, and what repetitions that differ do to them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosswind.stats.differences import Side, difference, independent_at_best
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share, clopper_pearson, difference_limits, share_interval


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


def flags(events: int, trials: int, repetitions: int, first: int = 0) -> Side:
    """Repetitions of so many trials, each with as many events."""
    own = [1.0] * events + [0.0] * (trials - events)
    units = Repetitions.of(own * repetitions, first + np.repeat(range(repetitions), trials))
    return Side(units, is_share=True)


def test_shares_that_differ_between_repetitions_are_compared_as_means() -> None:
    rng = np.random.default_rng(9)
    # Events come together: repetitions differ by more than independent exchanges would.
    a, b = (rng.random((10, 200)) < rng.beta(6, 24, (10, 1)) for _ in range(2))
    sides = [Side(Repetitions.of(events.ravel(), np.repeat(range(10), 200)), is_share=True) for events in (a, b)]
    expected = stats.ttest_rel(b.mean(axis=1), a.mean(axis=1)).confidence_interval(0.90)
    assert difference(*sides).limits(0.90) == pytest.approx((expected.low, expected.high))


def test_a_difference_of_shares_is_never_surer_than_that_of_independent_exchanges() -> None:
    # 20 of 100 in every repetition, and 20 or 21: that spreads less than any 100 independent exchanges do.
    a, b = flags(20, 100, 4), flags(20, 100, 4)
    values = b.units.values.copy()
    values[20] = 1.0
    b = replace(b, units=replace(b.units, values=values))
    found = difference(a, b)
    of_each = [(1 + events) / 402 for events in (80, 81)]
    error = math.sqrt(sum(share * (1 - share) / 402 for share in of_each))
    assert (found.value, found.error) == (pytest.approx(0.0025), pytest.approx(error))
    low, high = found.limits(0.95)
    assert (high - low) / 2 == pytest.approx(stats.t.ppf(0.975, 3) * error)
    assert found.p == pytest.approx(2 * stats.t.sf(0.0025 / error, 3))
    apart = difference(a, flags(21, 100, 4, first=10))
    assert (apart.p or 0) > 0.05 and apart.limits(0.95)[0] < 0  # though every repetition has one more
    # None of 4 repetitions has an event: that is left as it is, unless one asks for an interval.
    none = flags(0, 100, 4)
    same = difference(none, none)
    assert same.shortage is not None
    assert independent_at_best(same, none, none).shortage is None
