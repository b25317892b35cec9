"""Comparisons against brute force, scipy, statistics' textbooks and each other."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import (
    TooFewSamples,
    cliffs_delta,
    difference_of_means,
    hodges_lehmann,
    holm,
    ratio_of_means,
    resample,
)

# Hollander & Wolfe, Nonparametric Statistical Methods, example 4.1: permeability of human chorioamnion.
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLY = [1.15, 0.88, 0.90, 0.74, 1.21]


def test_hodges_lehmann_of_the_textbook_example() -> None:
    found = hodges_lehmann(EARLY, AT_TERM, unit="1", level=0.95)
    assert found.estimate.value == pytest.approx(0.305)  # Hollander & Wolfe: 0.305
    assert (found.estimate.low, found.estimate.high) == pytest.approx((-0.15, 0.76))  # R: wilcox.test(conf.int = TRUE)
    assert found.p == pytest.approx(0.2544, abs=5e-5)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (19, 21), (50, 33), (250, 210)])
def test_hodges_lehmann_is_the_median_of_all_pairs(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 40, n), rng.integers(5, 60, m)
    pairs = np.sort((b[:, None] - a[None, :]).ravel())
    found = hodges_lehmann(a, b, unit="ns").estimate
    assert found.value == np.median(pairs)
    assert found.low in pairs
    assert found.high in pairs


def test_exact_ranks_are_those_of_the_mann_whitney_distribution() -> None:
    # Tabulated critical value of U for 5 and 8 samples, two-sided 5 %: 6; so the 7th smallest difference is the limit.
    a, b = np.arange(5) * 100.0, np.arange(8) * 7.0
    pairs = np.sort((b[:, None] - a[None, :]).ravel())
    found = hodges_lehmann(a, b, unit="ns").estimate
    assert (found.low, found.high) == (pairs[6], pairs[-7])


def test_a_shift_without_its_test_is_the_same_shift() -> None:
    tested, untested = (hodges_lehmann(EARLY, AT_TERM, unit="1", tested=choice) for choice in (True, False))
    assert untested.estimate == tested.estimate
    assert untested.p is None


def test_too_few_for_a_shift() -> None:
    with pytest.raises(TooFewSamples):
        hodges_lehmann([1, 2, 3], [4, 5, 6], unit="ns")


def test_cliffs_delta_by_counting() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 10, 30), rng.integers(2, 12, 25)
    wins = np.sign(b[:, None] - a[None, :])
    found = cliffs_delta(a, b)
    assert found.value == pytest.approx(wins.mean())
    rows, columns = wins.mean(axis=1), wins.mean(axis=0)
    n, m = 30, 25
    spread = np.mean((wins - wins.mean()) ** 2)
    variance = ((m - 1) * columns.var(ddof=1) + (n - 1) * rows.var(ddof=1) + spread) / (n * m)
    d, z = wins.mean(), 1.959963984540054
    half = z * math.sqrt(variance) * math.sqrt((1 - d**2) ** 2 + z**2 * variance)
    assert found.low == pytest.approx((d - d**3 - half) / (1 - d**2 + z**2 * variance))
    assert found.high == pytest.approx((d - d**3 + half) / (1 - d**2 + z**2 * variance))


def test_cliffs_delta_of_separate_sets_is_one() -> None:
    found = cliffs_delta([1, 2, 3], [4, 5, 6])
    assert (found.value, found.high) == (1.0, 1.0)


def test_small_sets_are_compared_by_welch() -> None:
    a, b = [10.1, 10.4, 9.8, 10.0], [11.0, 11.6, 12.1, 10.9, 11.4]
    found = difference_of_means(resample(a), resample(b), unit="ns")
    expected = stats.ttest_ind(b, a, equal_var=False)
    limits = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((limits.low, limits.high))
    assert found.estimate.method == "Welch's t"


def test_bootstrap_agrees_with_welch_where_both_hold() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(20, 1, 400), rng.normal(20.2, 2, 300)
    found = difference_of_means(resample(a), resample(b), unit="ns")
    limits = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    error = math.hypot(1 / 20, 2 / math.sqrt(300))
    # The same derivation as for one mean: 0.15 standard errors are over three of the resampled 2.5 % point's own.
    assert found.estimate.low == pytest.approx(limits.low, abs=0.15 * error)
    assert found.estimate.high == pytest.approx(limits.high, abs=0.15 * error)


def test_a_set_against_itself_shows_no_difference_and_has_an_interval() -> None:
    drawn = resample(np.random.default_rng(1).exponential(1, 200), seed=3)
    found = difference_of_means(drawn, drawn, unit="ns")
    assert found.estimate.value == 0
    assert found.estimate.low < -0.5 * drawn.error
    assert found.p > 0.9


@pytest.mark.parametrize("shift", [1.0, 2.0, 4.0])
def test_beyond_all_resamples_the_tail_goes_on(shift: float) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, 100), rng.normal(shift, 1, 100)
    found = difference_of_means(resample(a, seed=1), resample(b, seed=2), unit="ns")
    # An exponential tail falls more slowly than a normal one: p is above Welch's, and below what counting can say.
    assert stats.ttest_ind(b, a, equal_var=False).pvalue < found.p < 2 / 5000


def test_ratio_turned_round_is_its_inverse() -> None:
    rng = np.random.default_rng(12)
    a, b = resample(rng.normal(100, 5, 15)), resample(rng.normal(150, 9, 12))
    there, back = ratio_of_means(a, b).estimate, ratio_of_means(b, a).estimate
    assert there.value == pytest.approx(b.mean / a.mean)
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))


def test_no_ratio_to_nothing() -> None:
    with pytest.raises(TooFewSamples, match="above 0"):
        ratio_of_means(resample([-1.0, 1.0, 0.0]), resample([1.0, 2.0, 3.0]))


def test_holm_worked_by_hand() -> None:
    # Sorted .01 .03 .04 times 3 2 1 is .03 .06 .04; made monotone .03 .06 .06.
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])
