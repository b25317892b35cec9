"""Equivalence against Student's t and the binomial itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import Design, Side, Tail, TooFewSamples, Units, difference, tost, tost_ratio, tost_shares
from crosswind.stats.design import LIGHT
from crosswind.stats.differences import independent_at_best

A, B = np.array([10.1, 10.4, 9.8, 10.0, 10.3]), np.array([10.2, 10.6, 10.1, 9.9, 10.4])


def side(values: np.ndarray, first: int = 0, design: Design = LIGHT) -> Side:
    """Repetitions of one value each; `first`: the number of the first one."""
    return Side(Units.of(values, first + np.arange(len(values))), design)


def flags(events: int, trials: int, repetitions: int = 1, first: int = 0) -> Side:
    """Repetitions of so many trials, each with as many events."""
    own = [1.0] * events + [0.0] * (trials - events)
    units = Units.of(own * repetitions, first + np.repeat(range(repetitions), trials))
    return Side(units, is_share=True)


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


@pytest.mark.parametrize(
    ("pairs", "apart", "p", "p_beyond", "equivalent"),
    [
        # Within ±0.5: as many heads in a row as there are pairs.
        (5, 0.0, 1 / 32, 1.0, True),
        (5, 0.25, 1 / 32, 1.0, True),
        (5, -0.25, 1 / 32, 1.0, True),
        (4, 0.0, 1 / 16, 1.0, False),
        (2, 0.0, 1 / 4, 1.0, False),
        # Beyond it, two-sided.
        (6, 0.75, 1.0, 2 / 64, False),
        (6, -0.75, 1.0, 2 / 64, False),
        # Just at it neither is shown by any number of pairs.
        (1000, 0.5, 1.0, 1.0, False),
        (1000, -0.5, 1.0, 1.0, False),
    ],
)
def test_a_difference_that_is_the_same_every_time_has_sign_tests(
    pairs: int, apart: float, p: float, p_beyond: float, equivalent: bool
) -> None:
    values = 10 + np.arange(pairs) / 8
    found = tost(side(values), side(values + apart), margin=0.5, unit="ms")
    assert (found.is_constant, found.p, found.p_beyond, found.equivalent) == (True, p, p_beyond, equivalent)
    assert (found.estimate.value, found.estimate.units) == (pytest.approx(apart, abs=1e-12), pairs)
    assert "sign test" in found.estimate.method or pairs < 5


def test_a_ratio_that_is_the_same_every_time_is_held_against_the_margin_either_way() -> None:
    values = 10 + np.arange(6) / 8
    within, outside, edge = (tost_ratio(side(values), side(values * by), margin=0.25) for by in (1.2, 1.3, 1.25))
    assert (within.equivalent, within.p, within.p_beyond) == (True, 1 / 64, 1.0)
    assert (outside.equivalent, outside.p, outside.p_beyond) == (False, 1.0, 2 / 64)
    assert (edge.equivalent, edge.p, edge.p_beyond) == (False, 1.0, 1.0)
    back = tost_ratio(side(values * 1.25), side(values), margin=0.25)
    assert (back.p, back.p_beyond) == (1.0, 1.0)


def test_a_single_pair_and_unpaired_constants_prove_nothing() -> None:
    with pytest.raises(TooFewSamples):
        tost(side(A[:1]), side(A[:1]), margin=0.5, unit="ms")
    # Of other seeds nothing says that the cells would be the same in the same block.
    with pytest.raises(TooFewSamples, match="do not differ at all"):
        tost(side(np.full(9, 10.0)), side(np.full(9, 10.0), 100), margin=0.5, unit="ms")


@pytest.mark.parametrize("pairs", [5, 6, 8, 12])
def test_half_of_the_repetitions_outside_the_margin_are_seldom_called_equivalent(pairs: int) -> None:
    """The effect of half of the repetitions is 0, of the others twice the margin: mean and middle lie just at it.

    In a skewed design so few pairs have no interval, and the sign test alone decides. 1000 runs: 5 %, and three
    standard errors of it.
    """
    rng, design = np.random.default_rng(pairs), Design(Tail.SKEWED, 0.05)
    reference, equivalent = side(10 + np.arange(pairs) / 8, design=design), 0
    for effects in rng.integers(0, 2, (1000, pairs)):
        found = tost(reference, side(reference.units.values + effects, design=design), margin=0.5, unit="ms")
        assert found.of_most
        equivalent += found.equivalent
    assert equivalent <= 1000 * 0.05 + 3 * np.sqrt(1000 * 0.05 * 0.95)
    # Heads so often that the sign test has 5 %, and four standard errors of it.
    often = float(stats.binom.sf(stats.binom.isf(0.05, pairs, 0.5), pairs, 0.5))
    assert equivalent == pytest.approx(1000 * often, abs=4 * np.sqrt(1000 * often))


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
    # Events come together: repetitions differ by more than independent exchanges would.
    a, b = (rng.random((10, 200)) < rng.beta(6, 24, (10, 1)) for _ in range(2))
    repetitions = np.repeat(range(10), 200)
    found = tost_shares(Side(Units.of(a.ravel(), repetitions)), Side(Units.of(b.ravel(), repetitions)), margin=0.2)
    limits = stats.ttest_rel(b.mean(axis=1), a.mean(axis=1)).confidence_interval(0.90)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))
    assert found.equivalent


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
