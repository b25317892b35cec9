"""Effects between repetitions, against scipy's t-tests and numbers worked by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import TooFewSamples
from crosswind.stats.summary_effect import How, UnitValues, effect_of

A = UnitValues(np.array([10.0, 12.0, 11.0, 13.0, 9.0]))
B = UnitValues(np.array([11.0, 14.0, 11.5, 15.0, 10.5]))


def test_a_paired_difference_is_the_paired_t_test() -> None:
    effect = effect_of(A, B, paired=True)
    expected = stats.ttest_rel(B.values, A.values)
    assert effect.value == pytest.approx(1.4)
    assert effect.p == pytest.approx(expected.pvalue)
    assert effect.limits(0.95) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert effect.how is How.PAIRED
    assert effect.spread == pytest.approx((B.values - A.values).std(ddof=1))
    above = stats.ttest_1samp(B.values - A.values, 0.5, alternative="greater")
    assert effect.p_at_most(0.5) == pytest.approx(above.pvalue)
    assert effect.p_at_least(0.5) == pytest.approx(1 - above.pvalue)


def test_an_unpaired_difference_is_welchs_t_test() -> None:
    other = UnitValues(np.array([14.0, 19.0, 12.0]))
    effect = effect_of(A, other, paired=False)
    expected = stats.ttest_ind(other.values, A.values, equal_var=False)
    assert effect.p == pytest.approx(expected.pvalue)
    assert effect.limits(0.9) == pytest.approx(tuple(expected.confidence_interval(0.9)))
    assert (effect.units, effect.how) == (3, How.UNPAIRED)


def test_an_exact_number_beside_repetitions_is_a_constant() -> None:
    effect = effect_of(UnitValues(np.array([10.0]), exact=True), B, paired=False)
    expected = stats.ttest_1samp(B.values, 10.0)
    assert effect.p == pytest.approx(expected.pvalue)
    assert (effect.units, effect.how) == (5, How.AGAINST_EXACT)
    turned = effect_of(B, UnitValues(np.array([10.0]), exact=True), paired=False)
    assert (turned.value, turned.error) == pytest.approx((-effect.value, effect.error))


def test_two_exact_numbers_have_an_exact_difference_and_no_test() -> None:
    sides = [UnitValues(np.array([value]), exact=True) for value in (20.0, 22.0)]
    effect = effect_of(*sides, paired=False, is_ratio=True)
    assert effect.value == pytest.approx(math.log(1.1))
    assert effect.p is None
    assert effect.is_known
    assert effect.p_at_most(math.log(1.05)) == 0.0
    assert effect.p_at_most(math.log(1.2)) == 1.0


def test_the_error_of_a_ratio_is_that_of_its_pairs() -> None:
    effect = effect_of(A, B, paired=True, is_ratio=True)
    parts = B.values / B.values.mean() - A.values / A.values.mean()
    assert effect.value == pytest.approx(math.log(B.values.mean() / A.values.mean()))
    assert effect.error == pytest.approx(parts.std(ddof=1) / math.sqrt(5))
    doubled = effect_of(A, UnitValues(2 * A.values), paired=True, is_ratio=True)
    assert (doubled.value, doubled.error) == (pytest.approx(math.log(2)), 0.0)


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_repetitions_say_nothing_of_how_sure_it_is(count: int) -> None:
    effect = effect_of(UnitValues(A.values[:count]), UnitValues(B.values[:count]), paired=True)
    assert not effect.is_known
    assert effect.p is None


def test_pairs_that_all_differ_by_the_same_leave_no_doubt() -> None:
    effect = effect_of(A, UnitValues(A.values + 2), paired=True)
    assert (effect.value, effect.error, effect.p) == (pytest.approx(2), 0.0, 0.0)
    least = effect_of(A, UnitValues(A.values + 2), paired=True, least_error=1.0)
    assert least.error == 1.0


def test_what_has_no_number_or_no_ratio_is_refused() -> None:
    with pytest.raises(TooFewSamples, match="no repetition with a number"):
        effect_of(A, UnitValues(np.empty(0)), paired=False)
    with pytest.raises(TooFewSamples, match="two numbers above 0"):
        effect_of(A, UnitValues(np.zeros(5)), paired=True, is_ratio=True)


@pytest.mark.parametrize("units", [3, 8, 20])
def test_a_ratio_of_paired_lognormal_repetitions_covers_its_truth(units: int) -> None:
    random = np.random.default_rng(units)
    trials, covered = 3000, 0
    for _ in range(trials):
        shared = random.normal(0, 0.3, units)
        sides = [UnitValues(np.exp(shared + random.normal(0, 0.1, units))) for _ in range(2)]
        low, high = effect_of(*sides, paired=True, is_ratio=True).limits(0.95)
        covered += low <= 0 <= high
    # Within 4 standard deviations of the binomial at 95 %.
    assert covered / trials == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / trials))
