"""Comparisons against scipy, textbooks and brute force, paired and not."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.stats.design import Design, Tail
from crosswind.stats.differences import Side, difference, pairs_of, ratio
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.multiplicity import benjamini_hochberg, holm
from crosswind.stats.permutation import permutation_p
from crosswind.stats.quantile import repetition_quantile_interval
from crosswind.stats.ranks import _theta_limit, cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.repetitions import Repetitions

# Hollander & Wolfe, Nonparametric Statistical Methods, example 4.1: permeability of human chorioamnion.
AT_TERM = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
EARLY = np.array([1.15, 0.88, 0.90, 0.74, 1.21])
# Example 3.1: a depression scale at two visits.
FIRST = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
SECOND = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])


def sides(a: np.ndarray, b: np.ndarray, *, design: Design | None = None) -> tuple[Side, Side]:
    """Cells of repetitions of one value each, with the same seeds where they have as many."""
    return Side(Repetitions.of(a), design or Design()), Side(Repetitions.of(b), design or Design())


def apart(b: np.ndarray) -> Side:
    """A cell with other seeds."""
    return Side(Repetitions.of(b, 1000 + np.arange(len(b))))


def test_a_repetition_without_an_answer_is_never_paired_with_another_repetition() -> None:
    keys = [(0, 1), (1, 1), (2, 1), (3, 1)]
    a = Repetitions.of([10, 20, 30], [1, 2, 3], keys=keys, censored=[2, 0, 0, 0], limit=99)
    b = Repetitions.of([11, 22, 33], [0, 2, 3], keys=keys, censored=[0, 2, 0, 0], limit=99)
    with pytest.raises(TooFewSamples, match="in a repetition of one of the cells no exchange succeeded"):
        difference(Side(a), Side(b))
    c = Repetitions.of([12, 21, 33], [1, 2, 3], keys=keys, censored=[2, 0, 0, 0], limit=99)
    found = difference(Side(a), Side(c))
    assert (found.value, found.units) == (2, 3)
    with pytest.raises(TooFewSamples, match="in a repetition no exchange succeeded"):
        difference(Side(a), Side(c), "trimmed")
    with pytest.raises(TooFewSamples, match="in a repetition no exchange succeeded"):
        difference(Side(a), Side(Repetitions.of([5.0] * 4), exact=True), "trimmed")


def test_pairs_get_the_paired_t() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(10, 3, 8)
    b = a + rng.normal(1, 0.2, 8)
    made = difference(*sides(a, b))
    expected = stats.ttest_rel(b, a)
    limits = expected.confidence_interval(0.95)
    assert made.p == pytest.approx(expected.pvalue)
    assert made.limits(0.95) == pytest.approx((limits.low, limits.high))
    assert estimate_of(made, level=0.95).method == "Student's t over repetitions, paired by repetition"


def test_the_logarithm_of_a_ratio_of_means_is_linearised() -> None:
    a, b = np.array([10.0, 12.0, 11.0, 14.0]), np.array([20.0, 25.0, 21.0, 30.0])
    made = ratio(*sides(a, b))
    parts = b / b.mean() - a / a.mean()
    half = stats.t.ppf(0.975, 3) * parts.std(ddof=1) / 2
    estimate = estimate_of(made, level=0.95)
    middle = math.log(b.mean() / a.mean())
    assert (estimate.low, estimate.value, estimate.high) == pytest.approx(
        (math.exp(middle - half), math.exp(middle), math.exp(middle + half))
    )


def test_a_ratio_needs_means_above_zero() -> None:
    with pytest.raises(TooFewSamples, match="above 0"):
        ratio(*sides(np.array([-1.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0])))


def test_other_seeds_get_welch_and_permutations() -> None:
    a, b = np.array([10.1, 10.4, 9.8, 10.0]), np.array([11.0, 11.6, 12.1, 10.9, 11.4])
    made = difference(sides(a, a)[0], apart(b))
    limits = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
    assert made.limits(0.95) == pytest.approx((limits.low, limits.high))
    assert made.how == "Welch's t over repetitions"
    # Of the 126 divisions none is as far apart: the observed one alone, for the sets are unequal in number.
    assert made.p == pytest.approx(1 / 126)


def test_permutations_against_scipy() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.exponential(1, 6), rng.exponential(1.5, 7)

    def welch(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        spread = x.var(axis=axis, ddof=1) / x.shape[axis] + y.var(axis=axis, ddof=1) / y.shape[axis]
        return np.abs(x.mean(axis=axis) - y.mean(axis=axis)) / np.sqrt(spread)

    expected = stats.permutation_test((a, b), welch, vectorized=True, n_resamples=np.inf, alternative="greater")
    assert difference(sides(a, a)[0], apart(b)).p == pytest.approx(expected.pvalue)


def test_divisions_that_do_not_differ_count_as_no_difference() -> None:
    # Two of the six divisions of 1, 1, 2, 2 differ by 1 without a spread, four not at all.
    alike, apart_by_one = np.array([1.0, 2.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0, 2.0])
    assert permutation_p(alike[:2], alike[2:]) == 1
    assert permutation_p(apart_by_one[:2], apart_by_one[2:]) == pytest.approx(2 / 6)


def test_many_repetitions_with_other_seeds_are_tested_by_welch() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.exponential(1, 300), rng.exponential(1.1, 300)
    expected = stats.ttest_ind(b, a, equal_var=False).pvalue
    assert difference(sides(a, a)[0], apart(b)).p == pytest.approx(expected)


def test_cells_pair_where_one_has_no_other_repetitions() -> None:
    keys = [(at, 100 + at) for at in range(6)]
    whole = Repetitions.of(np.arange(6.0), range(6), keys=keys)
    part = Repetitions.of(np.arange(4.0), range(4), keys=keys[:4])
    other_seeds = Repetitions.of(np.arange(6.0), range(6), keys=[(at, at) for at in range(6)])
    assert pairs_of(whole, part) == keys[:4]
    assert pairs_of(whole, other_seeds) is None
    assert difference(Side(whole), Side(part)).units == 4


def test_repetitions_that_do_not_differ_prove_nothing() -> None:
    made = difference(*sides(np.arange(5.0), np.arange(5.0)))
    assert (made.value, made.p) == (0.0, None)
    estimate = estimate_of(made, level=0.95)
    assert (estimate.value, estimate.low, estimate.high) == (0.0, None, None)
    assert "do not differ at all" in estimate.reason


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_pairs_have_a_value_and_no_test(n: int) -> None:
    made = difference(*sides(np.arange(float(n)), np.arange(float(n)) ** 2 + 1))
    assert made.p is None
    assert estimate_of(made, level=0.95).low is None


def test_a_skewed_design_has_no_test_of_a_mean_before_it_has_an_interval() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.exponential(1, 10), rng.exponential(1, 10)
    made = difference(*sides(a, b, design=Design(Tail.SKEWED)))
    assert made.p is None
    assert estimate_of(made, level=0.95).low is None


@pytest.mark.parametrize("statistic", [0.5, 0.95, "trimmed"])
def test_other_statistics_of_repetitions_can_be_compared(statistic: object) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.exponential(1, (6, 200)), rng.exponential(2, (6, 200))
    repetitions = np.repeat(range(6), 200)
    made = difference(
        Side(Repetitions.of(a.ravel(), repetitions)), Side(Repetitions.of(b.ravel(), repetitions)), statistic
    )
    low, high = made.limits(0.95)
    assert low < made.value < high
    if statistic != "trimmed":
        own = np.quantile(b, statistic, axis=1) - np.quantile(a, statistic, axis=1)
        expected = stats.ttest_1samp(own, 0)
        assert (made.value, made.p) == pytest.approx((own.mean(), expected.pvalue))


def test_a_quantile_of_few_messages_is_not_compared() -> None:
    with pytest.raises(TooFewSamples, match="each repetition needs 100 messages, one has 1"):
        difference(*sides(np.arange(9.0), np.arange(9.0)), 0.95)


def test_a_trimmed_mean_takes_100_values_to_compare_too() -> None:
    made = difference(*sides(np.arange(9.0), np.arange(9.0) ** 2), "trimmed")
    assert made.shortage == "an interval of a trimmed mean needs 100 repetitions, there are 9: 91 more"
    assert made.p is None


@pytest.mark.parametrize(("repetitions", "design", "has_one"), [
    (3, Design(), True), (9, Design(Tail.SKEWED), False), (10, Design(Tail.SKEWED), True),
    (29, Design(Tail.HEAVY), False), (30, Design(Tail.HEAVY), True), (30, Design(Tail.INFINITE), True),
])  # fmt: skip
def test_the_quantiles_of_a_cell_take_repetitions_where_losses_delay(
    repetitions: int, design: Design, has_one: bool
) -> None:
    needed = repetitions + 1
    values = np.random.default_rng(1).exponential(1, (repetitions, 20))
    units = Repetitions.of(values.ravel(), np.repeat(range(repetitions), 20))
    made = repetition_quantile_interval(units, 0.5, design=design)
    assert (made.low is not None) == has_one
    assert has_one or made.reason == (
        f"an interval of the median where losses delay exchanges needs {needed} repetitions, "
        f"there are {repetitions}: 1 more"
    )


def test_the_paired_shift_of_the_textbook_example() -> None:
    found = paired_shift(SECOND - FIRST, n=18)
    # R: wilcox.test(y, x, paired = TRUE, conf.int = TRUE)
    assert found.value == pytest.approx(-0.46)
    assert (found.low, found.high) == pytest.approx((-0.786, -0.010))


@pytest.mark.parametrize("n", [6, 9, 40, 210, 300])
def test_the_paired_shift_is_the_median_of_all_averages(n: int) -> None:
    x = np.random.default_rng(n).normal(1, 2, n)
    averages = np.sort([(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)])
    found = paired_shift(x, n=n)
    assert found.value == pytest.approx(float(np.median(averages)))
    assert np.isclose(averages, found.low, rtol=1e-12).any()
    assert np.isclose(averages, found.high, rtol=1e-12).any()


def test_five_pairs_are_too_few_for_a_shift() -> None:
    with pytest.raises(TooFewSamples, match="needs 6 pairs of repetitions, there are 5"):
        paired_shift(np.arange(5.0), n=5)
    assert paired_shift(np.arange(6.0), n=6).low == 0


def test_the_unpaired_shift_of_the_textbook_example() -> None:
    found = unpaired_shift(EARLY, AT_TERM, n=15)
    assert found.value == pytest.approx(0.305)  # Hollander & Wolfe: 0.305
    assert (found.low, found.high) == pytest.approx((-0.15, 0.76))  # R: wilcox.test(conf.int = TRUE)


@pytest.mark.parametrize(("n", "m"), [(5, 7), (19, 21), (50, 33), (250, 210)])
def test_the_unpaired_shift_is_the_median_of_all_differences(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 40, n).astype(float), rng.integers(5, 60, m).astype(float)
    pairs = np.sort((b[:, None] - a[None, :]).ravel())
    found = unpaired_shift(a, b, n=n + m)
    assert found.value == np.median(pairs)
    assert found.low in pairs
    assert found.high in pairs


def test_cliffs_delta_by_counting() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 10, 30).astype(float), rng.integers(2, 12, 25).astype(float)
    found = cliffs_delta(a, b, n=55)
    assert found.value == pytest.approx(np.sign(b[:, None] - a[None, :]).mean())


def test_the_limits_of_cliffs_delta_solve_newcombes_equation() -> None:
    theta, n, m, z = 0.7, 12, 9, 1.959964
    for end in (0.0, 1.0):
        place = _theta_limit(theta, n, m, z, end)
        size = (n + m) / 2
        variance = place * (1 - place) * (2 * size - 1 - (3 * size - 3) / ((2 - place) * (1 + place))) / (n * m)
        assert abs(place - theta) == pytest.approx(z * math.sqrt(variance), rel=1e-6)


def test_complete_separation_is_not_certainty() -> None:
    found = cliffs_delta(np.arange(5.0), np.arange(5.0) + 10, n=10)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0 < found.low < 0.8
    with pytest.raises(TooFewSamples, match="needs 5 repetitions"):
        cliffs_delta(np.arange(4.0), np.arange(5.0) + 10, n=9)


def test_holm_and_benjamini_hochberg_by_hand() -> None:
    given = [0.01, 0.04, 0.03, 0.005]
    assert holm(given) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(given) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert benjamini_hochberg(given) == pytest.approx(stats.false_discovery_control(given))
    assert benjamini_hochberg([]) == []
    with pytest.raises(ValueError, match="not between 0 and 1"):
        benjamini_hochberg([1.5])
