"""Equivalence against Student's t, the binomial itself, and coverage by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import (
    TooFewSamples,
    clopper_pearson,
    difference_of_means,
    resample,
    share_interval,
    share_of,
    tost,
    tost_ratio,
    tost_shares,
)

# Four and five samples are too few to resample, so that Welch's t is exact.
A, B = [10.1, 10.4, 9.8, 10.0], [10.2, 10.6, 10.1, 9.9, 10.4]


def test_two_one_sided_tests_agree_with_scipy() -> None:
    found = tost(resample(A), resample(B), margin=0.5, unit="ms")
    lower = stats.ttest_ind(np.array(B) + 0.5, A, equal_var=False, alternative="greater").pvalue
    upper = stats.ttest_ind(np.array(B) - 0.5, A, equal_var=False, alternative="less").pvalue
    assert found.p == pytest.approx(max(lower, upper))
    limits = stats.ttest_ind(B, A, equal_var=False).confidence_interval(0.90)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))
    assert found.estimate.level == pytest.approx(0.90)
    assert found.equivalent == (found.p < 0.05)
    beyond = tost(resample(A), resample(np.array(B) + 3), margin=0.5, unit="ms")
    expected = stats.ttest_ind(np.array(B) + 2.5, A, equal_var=False, alternative="greater").pvalue
    assert beyond.p_beyond == pytest.approx(2 * expected)
    assert not beyond.equivalent


def test_the_interval_within_the_margin_and_p_below_alpha_are_one_thing() -> None:
    rng = np.random.default_rng(21)
    a, b = resample(rng.normal(10, 0.5, 500), seed=1), resample(rng.normal(10, 0.5, 500), seed=2)
    assert tost(a, b, margin=0.2, unit="ns").equivalent
    interval = difference_of_means(a, b, unit="ns", level=0.90).estimate
    edge = max(-interval.low, interval.high)
    for margin in (0.97 * edge, 1.03 * edge):
        found = tost(a, b, margin=margin, unit="ns")
        assert found.equivalent == (margin > edge)
        assert (found.p < 0.05) == (margin > edge)


def test_a_margin_of_ratios_is_the_same_turned_round() -> None:
    rng = np.random.default_rng(3)
    a, b = resample(rng.normal(100, 5, 15)), resample(rng.normal(104, 9, 12))
    there, back = tost_ratio(a, b, margin=0.25), tost_ratio(b, a, margin=0.25)
    assert (there.low, there.high) == (0.8, 1.25)
    assert there.estimate.value == pytest.approx(b.mean / a.mean)
    assert (there.p, there.p_beyond) == pytest.approx((back.p, back.p_beyond))
    assert there.equivalent
    assert not tost_ratio(a, b, margin=0.01).equivalent
    with pytest.raises(TooFewSamples, match="above 0"):
        tost_ratio(resample([0.0, 0.0, 0.0]), b, margin=0.25)


@pytest.mark.parametrize("test", [tost_ratio, tost_shares, lambda a, b, margin: tost(a, b, margin=margin, unit="1")])
def test_a_margin_is_above_nothing(test) -> None:
    with pytest.raises(ValueError, match="margin"):
        test(resample(A), resample(B), margin=0)


def test_a_share_of_independent_exchanges_is_exact() -> None:
    share = share_of([1, 0, 0, 1] * 5)
    found, expected = share_interval(share), clopper_pearson(10, 20)
    assert (found.value, found.low, found.high, found.method) == (0.5, expected.low, expected.high, expected.method)
    with pytest.raises(TooFewSamples):
        share_of([])


def test_a_share_within_connections_that_are_alike_counts_connections() -> None:
    # 20 connections, each all ones or all zeros: 600 exchanges are worth about 20.
    flags, connections = np.repeat([1, 0] * 10, 30), np.repeat(np.arange(20), 30)
    share = share_of(flags, connections)
    assert share.worth == pytest.approx(20, rel=0.06)  # n / (n - 1) of the variance between 20 units
    found = share_interval(share)
    assert found.method == "Clopper-Pearson (binomial, 19 effective samples)"
    assert found.high - found.low > 0.4


def test_none_of_few_is_not_equivalent_to_none_of_few() -> None:
    # None of 24 may be up to 1 - 0.05^(1/24) = 11.7 %, whatever does not spread in the samples.
    few = tost_shares(share_of([0] * 24), share_of([0] * 24), margin=0.04)
    edge = 1 - 0.05 ** (1 / 24)
    assert (few.estimate.low, few.estimate.value, few.estimate.high) == pytest.approx((-edge, 0, edge))
    assert not few.equivalent
    # p is where the limit meets the margin: (1 - 0.04)^24.
    assert few.p == pytest.approx(0.96**24, rel=1e-6)
    many = tost_shares(share_of([0] * 200), share_of([0] * 200), margin=0.04)
    assert many.equivalent
    assert many.p == pytest.approx(0.96**200, rel=1e-6)
    assert many.p_beyond == 1.0


def test_all_against_none_lies_beyond_the_margin() -> None:
    found = tost_shares(share_of([0] * 100), share_of([1] * 100), margin=0.5)
    # Both limits are 1 - q away, q = tail^(1/100), and legs of a right angle: they meet 0.5 at q = 1 - 0.5/sqrt 2.
    assert found.p_beyond == pytest.approx(2e-9)  # (1 - 0.354)^100 is 1e-19: below what is told apart
    assert found.p == 1.0
    assert not found.equivalent


def test_shares_at_the_margin_are_called_equivalent_rarely() -> None:
    """At a true difference of the margin, the chance is at most alpha: 5 % of 1000 and three of its standard errors."""
    rng = np.random.default_rng(8)
    n, wrong = 300, 0
    for a, b in zip(rng.binomial(n, 0.19, 1000), rng.binomial(n, 0.29, 1000), strict=True):
        shares = [share_of(np.arange(n) < count) for count in (a, b)]
        wrong += tost_shares(*shares, margin=0.1).equivalent
    assert wrong <= 50 + 3 * math.sqrt(1000 * 0.05 * 0.95)


def test_shares_that_are_the_same_are_called_equivalent_mostly() -> None:
    # The interval is wider than the normal one, whose half width is 1.645 sqrt(2 x .19 x .81 / 2000) = 2.0 points.
    rng = np.random.default_rng(9)
    found = 0
    for a, b in rng.binomial(2000, 0.19, (100, 2)):
        found += tost_shares(*(share_of(np.arange(2000) < count) for count in (a, b)), margin=0.06).equivalent
    assert found >= 95
