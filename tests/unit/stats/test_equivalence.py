"""Equivalence against Student's t and the binomial itself."""

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import Side, TooFewSamples, Units, difference, tost, tost_ratio, tost_shares

A, B = np.array([10.1, 10.4, 9.8, 10.0, 10.3]), np.array([10.2, 10.6, 10.1, 9.9, 10.4])


def side(values: np.ndarray, first: int = 0) -> Side:
    """Repetitions of one value each; `first`: the number of the first one."""
    return Side(Units.of(values, first + np.arange(len(values))))


def flags(events: int, trials: int, repetitions: int = 1, first: int = 0) -> Side:
    """Repetitions of so many trials, each with as many events."""
    own = [1.0] * events + [0.0] * (trials - events)
    return Side(Units.of(own * repetitions, first + np.repeat(range(repetitions), trials)))


def test_two_one_sided_tests_of_pairs_agree_with_scipy() -> None:
    found = tost(side(A), side(B), margin=0.5, unit="ms")
    lower = stats.ttest_1samp(B - A + 0.5, 0, alternative="greater").pvalue
    upper = stats.ttest_1samp(B - A - 0.5, 0, alternative="less").pvalue
    assert found.p == pytest.approx(max(lower, upper))
    limits = stats.ttest_rel(B, A).confidence_interval(0.90)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))
    assert found.estimate.level == pytest.approx(0.90)
    assert found.equivalent == (found.p < 0.05)
    beyond = tost(side(A), side(B + 3), margin=0.5, unit="ms")
    expected = stats.ttest_1samp(B - A + 2.5, 0, alternative="greater").pvalue
    assert beyond.p_beyond == pytest.approx(2 * expected)
    assert not beyond.equivalent


def test_two_one_sided_tests_of_other_seeds_agree_with_welch() -> None:
    found = tost(side(A), side(B, 100), margin=0.5, unit="ms")
    lower = stats.ttest_ind(B + 0.5, A, equal_var=False, alternative="greater").pvalue
    upper = stats.ttest_ind(B - 0.5, A, equal_var=False, alternative="less").pvalue
    assert found.p == pytest.approx(max(lower, upper))


@pytest.mark.parametrize("first", [0, 1000])
def test_the_interval_within_the_margin_and_p_below_alpha_are_one_thing(first: int) -> None:
    rng = np.random.default_rng(21)
    a, b = side(rng.normal(10, 0.5, 500)), side(rng.normal(10, 0.5, 500), first)
    assert tost(a, b, margin=0.2, unit="ns").equivalent
    edge = max(abs(end) for end in difference(a, b).limits(0.90))
    for margin in (0.97 * edge, 1.03 * edge):
        found = tost(a, b, margin=margin, unit="ns")
        assert found.equivalent == (margin > edge)
        assert (found.p < 0.05) == (margin > edge)


def test_a_margin_of_ratios_is_the_same_turned_round() -> None:
    rng = np.random.default_rng(3)
    a, b = side(rng.normal(100, 5, 15)), side(rng.normal(104, 9, 15))
    there, back = tost_ratio(a, b, margin=0.25), tost_ratio(b, a, margin=0.25)
    assert (there.low, there.high) == (0.8, 1.25)
    assert (there.p, there.p_beyond) == pytest.approx((back.p, back.p_beyond))
    assert there.equivalent
    assert not tost_ratio(a, b, margin=0.01).equivalent
    with pytest.raises(TooFewSamples, match="above 0"):
        tost_ratio(side(np.zeros(15)), b, margin=0.25)


@pytest.mark.parametrize("test", [tost_ratio, tost_shares, lambda a, b, margin: tost(a, b, margin=margin, unit="1")])
def test_a_margin_is_above_nothing(test) -> None:
    with pytest.raises(ValueError, match="margin"):
        test(side(A), side(B), margin=0)


def test_equal_values_prove_no_equality() -> None:
    with pytest.raises(TooFewSamples, match="do not differ at all"):
        tost(side(A), side(A), margin=0.5, unit="ms")


def test_none_of_few_is_not_equivalent_to_none_of_few() -> None:
    # None of 24 may be up to 1 - 0.05^(1/24) = 11.7 %, whatever does not spread in the samples.
    few = tost_shares(flags(0, 1, 24), flags(0, 1, 24), margin=0.04)
    edge = 1 - 0.05 ** (1 / 24)
    assert (few.estimate.low, few.estimate.value, few.estimate.high) == pytest.approx((-edge, 0, edge))
    assert not few.equivalent
    # p is where the limit meets the margin: (1 - 0.04)^24.
    assert few.p == pytest.approx(0.96**24, rel=1e-6)
    many = tost_shares(flags(0, 1, 200), flags(0, 1, 200), margin=0.04)
    assert many.equivalent
    assert many.p == pytest.approx(0.96**200, rel=1e-6)
    assert many.p_beyond == 1.0


def test_all_against_none_lies_beyond_the_margin() -> None:
    found = tost_shares(flags(0, 1, 100), flags(1, 1, 100), margin=0.5)
    # Both limits are 1 - q away, q = tail^(1/100), and legs of a right angle: they meet 0.5 at q = 1 - 0.5/sqrt 2.
    assert found.p_beyond == pytest.approx(2e-9)  # (1 - 0.354)^100 is 1e-19: below what is told apart
    assert found.p == 1.0
    assert not found.equivalent


def test_shares_of_two_repetitions_are_not_compared() -> None:
    with pytest.raises(TooFewSamples, match="needs 3 repetitions, there are 2"):
        tost_shares(flags(0, 50, 2), flags(0, 50, 2), margin=0.04)


def test_shares_that_differ_between_repetitions_are_compared_as_means() -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.random((10, 200)) < 0.19 for _ in range(2))
    repetitions = np.repeat(range(10), 200)
    found = tost_shares(Side(Units.of(a.ravel(), repetitions)), Side(Units.of(b.ravel(), repetitions)), margin=0.1)
    limits = stats.ttest_rel(b.mean(axis=1), a.mean(axis=1)).confidence_interval(0.90)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))
    assert found.equivalent
