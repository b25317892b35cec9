"""On which side of a place an effect lies: exact answers, and how often equal cells seem to differ."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosswind.stats.chance import Chance, share_limit
from crosswind.stats.design import LIGHT, Design, Tail
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.effect import Effect
from crosswind.stats.estimate import MOST
from crosswind.stats.majority import median_estimate, repetitions_of_most, sign_p
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.significance import (
    Significance,
    effect_estimate,
    significance,
    two_sided_p,
)

SKEWED = Design(Tail.SKEWED, 0.05)


def side(values, *, design: Design = SKEWED, exact: bool = False) -> Side:
    return Side(Repetitions.of(values, keys=[(at, at) for at in range(len(values))]), design, exact)


def test_a_light_difference_is_student_of_the_pairs() -> None:
    a, b = [10.0, 11.0, 12.0, 13.0, 9.0], [9.5, 10.0, 11.9, 12.0, 8.0]
    found = significance(difference(side(a, design=Design()), side(b, design=Design())), -0.5)
    below = stats.ttest_1samp(np.subtract(b, a), -0.5, alternative="less").pvalue
    assert found is not None
    assert (found.below, found.above) == pytest.approx((below, 1 - below))
    assert found.at == 1.0


@pytest.mark.parametrize(
    ("a", "b", "place", "expected"),
    [
        (10.0, 10.0, 0.0, Significance(1.0, 1.0, 0.0, 0.0, 0.0)),
        (10.0, 12.0, 0.0, Significance(0.0, 1.0, 0.0, 1.0, 1.0)),
        (10.0, 12.0, 3.0, Significance(1.0, 0.0, 1.0, 0.0, 1.0)),
        # What rounding leaves is none.
        (0.1 + 0.2, 0.3, 0.0, Significance(1.0, 1.0, 0.0, 0.0, 0.0)),
    ],
)
def test_exact_numbers_need_no_test(a: float, b: float, place: float, expected: Significance) -> None:
    assert significance(difference(side([a], exact=True), side([b], exact=True)), place) == expected


def test_what_is_the_same_every_time_has_the_sign_test() -> None:
    same = difference(*(side([10.0, 11.0, 12.0], design=LIGHT) for _ in range(2)))
    assert same.is_constant
    assert significance(same, 0.0) == Significance(1.0, 1.0, 0.125, 0.125, 0.125, of_most=True)
    assert significance(same, -1.0) == Significance(0.125, 1.0, 0.125, 1.0, 1.0, of_most=True)
    tenth = ratio(side([10.0, 11.0, 13.0]), side([9.0, 9.9, 11.7]))
    assert tenth.is_constant
    assert significance(tenth, 0.0) == Significance(
        1.0, 0.125, 1.0, 0.125, 1.0, of_most=True, not_less=1.0, not_more=0.125
    )
    beside = difference(side([10.0], exact=True), side([10.0, 10.0, 10.0], design=LIGHT))
    assert significance(beside, 0.0) == Significance(1.0, 1.0, 0.125, 0.125, 0.125, of_most=True)
    assert not difference(side([10.0]), side([10.0])).is_constant  # a single repetition shows nothing


def eventful(values, **chance) -> Side:
    made = Chance(**chance)
    return Side(side(values).units, replace(SKEWED, seen=made.seen_from(len(values))), event=lambda *_: made)


@pytest.mark.parametrize(("cost", "needed"), [(25.0, 8), (50.0, 17), (200.0, 72)])
def test_where_nothing_was_seen_a_limit_allows_for_what_an_event_costs(cost: float, needed: int) -> None:
    """A margin of 10 of 100, and an event that none of the repetitions had."""

    def apart(units: int) -> Effect:
        same = eventful([100.0] * units, touched=0, more=cost, less=0.0)
        return difference(same, same)

    for units, is_shown in ((needed - 1, False), (needed, True)):
        found = significance(apart(units), 10.0)
        assert found is not None
        assert (found.not_above <= 0.025) == is_shown
        # Nothing is known of what costs nobody knows how much, and the sign test shows no absence.
        unknown = eventful([100.0] * units, touched=0)
        assert significance(difference(unknown, unknown), 10.0).not_above == 1.0
    few = apart(5)
    assert few.claim_limit(0.025, upper=True) == pytest.approx((1 - 0.025 ** (1 / 5)) * cost)
    assert few.repetitions_to_show(10.0, above=False, alpha=0.025) == needed


def test_a_ratio_allows_for_events_of_both_cells() -> None:
    reference = eventful([100.0] * 10, touched=0, more=50.0, less=0.0)
    other = eventful([120.0] * 10, touched=0, more=60.0, less=0.0)
    share = 1 - 0.025 ** (1 / 10)
    made = ratio(reference, other)
    assert np.exp(made.claim_limit(0.025, upper=True)) == pytest.approx((120 + share * 60) / 100)
    assert np.exp(made.claim_limit(0.025, upper=False)) == pytest.approx(120 / (100 + share * 50))


@pytest.mark.parametrize("touched", [14, 15])
def test_fifteen_repetitions_that_chance_touched_bound_it(touched: int) -> None:
    values = np.where(np.arange(100) < touched, 300.0, 100.0)
    made = difference(*(eventful(values + shift, touched=touched) for shift in (0.0, np.arange(100) / 50)))
    assert made.is_claimable == made.is_bounded == (touched == 15)
    assert made.repetitions_to_show(0.0, above=True, alpha=0.025) is not None


@pytest.mark.parametrize(("units", "most"), [(1, 0.95), (6, 1 - 0.05 ** (1 / 6)), (59, 0.0495)])
def test_the_share_of_exceptions_is_the_binomial_limit(units: int, most: float) -> None:
    assert share_limit(units) == pytest.approx(most, abs=1e-4)
    # So many exceptions would have shown none with a chance of 5 %.
    assert stats.binom.pmf(0, units, share_limit(units)) == pytest.approx(0.05)


def test_where_a_design_has_no_interval_signs_tell_what_most_repetitions_do() -> None:
    a = np.array([10.0, 11.0, 12.0, 13.0, 9.0, 10.0, 11.0, 12.0])
    b = a - np.array([1.0, 2.0, 1.0, 3.0, 2.0, 1.0, 2.0, -40.0])  # seven are faster, and the mean is slower
    found = difference(side(a), side(b))
    assert found.value > 0
    less = significance(found, 0.0)
    assert less is not None
    assert less.of_most
    assert (less.below, less.above) == pytest.approx(
        (stats.binomtest(7, 8, alternative="greater").pvalue, 1 - 1 / 2**8)
    )
    made = effect_estimate(found, level=0.95)
    assert (made.value, made.method) == (-1.5, MOST)
    assert (made.low, made.high) == (-3.0, 40.0)  # of eight, the smallest and the largest
    # Below six pairs there is neither an interval nor a p-value.
    few = difference(side(a[:5]), side(b[:5]))
    assert two_sided_p(few) is None
    assert effect_estimate(few, level=0.95).low is None
    # A ratio has the same signs; a pair that does not differ counts against either side, and shows no absence.
    tied = ratio(side(a), side(np.where(np.arange(8) < 7, 0.9, 1.0) * a))
    place = significance(tied, 0.0)
    assert place is not None
    assert (place.below, place.not_below) == (sign_p(7, 8), 1.0)


def test_cells_with_other_seeds_have_no_signs() -> None:
    rng = np.random.default_rng(1)
    apart = Side(Repetitions.of(rng.lognormal(size=9), 100 + np.arange(9)), SKEWED)
    found = difference(side(rng.lognormal(size=9)), apart)
    assert significance(found, 0.0) is None
    assert two_sided_p(found) is None


@pytest.mark.parametrize("units", [6, 8, 12, 20, 101])
def test_the_interval_of_a_median_is_that_of_its_sign_test(units: int) -> None:
    """At an end of the interval the test has more than half of 5 %; beyond it, it has less."""
    values = np.random.default_rng(units).lognormal(size=units)
    made = median_estimate(values, n=units, level=0.95)
    assert made.value == np.median(values)
    assert made.low is not None
    assert sign_p(int((values >= made.low).sum()), units) <= 0.025 < sign_p(int((values > made.low).sum()), units)
    assert stats.quantile_test(values, q=np.median(values)).confidence_interval(0.95).low <= made.low
    inside = stats.binom.cdf(np.count_nonzero(values < made.low), units, 0.5)
    assert inside <= 0.025


def test_as_many_repetitions_as_a_sign_test_takes() -> None:
    assert [repetitions_of_most(units, units, p=0.025) for units in (1, 5, 50)] == [6, 6, 6]
    assert repetitions_of_most(3, 6, p=0.025) is None
    needed = repetitions_of_most(8, 10, p=0.025)
    assert needed is not None
    critical = next(k for k in range(needed + 1) if sign_p(k, needed) <= 0.025)
    assert stats.binom.sf(critical - 1, needed, 0.8) == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("units", [6, 10, 20])
def test_equal_means_of_unequal_tails_are_seldom_answered_wrongly(units: int) -> None:
    """40 ms and a tenth of 200 ms more, beside a steady 60 ms: both means are 60 ms, and most repetitions of one value
    are faster. What is printed is about most repetitions, and is wrong in 2.5 % on either side at most."""
    rng, wrong = np.random.default_rng(units), 0
    for _ in range(1000):
        waits = 40 + rng.exponential(200, (units, 240)) * (rng.random((units, 240)) < 0.1)
        numbers = np.repeat(np.arange(units), 240)
        reference = Side(Repetitions.of(waits.ravel(), numbers), Design(Tail.SKEWED, 0.01))
        other = Side(Repetitions.of(60 + rng.normal(0, 1, (units, 240)).ravel(), numbers), LIGHT)
        found = significance(difference(reference, other), 0.0)
        assert found is not None
        assert found.of_most
        # The mean of 240 is skewed: the steady one is the slower one in 54 % of repetitions, so that "less" is wrong.
        wrong += found.below < 0.025
    assert wrong <= stats.binom(1000, 0.025).ppf(1 - 1e-4)
