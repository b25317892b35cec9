"""On which side of a place an effect lies: exact answers, and how often equal cells seem to differ."""

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import Design, Side, Tail, Units, difference, ratio
from crosswind.stats.beyond import Beyond, beyond, beyond_nothing, is_constant, share_limit, without_rounding

SKEWED = Design(Tail.SKEWED, 0.05)


def side(values, *, design: Design = SKEWED, exact: bool = False) -> Side:
    return Side(Units.of(values, keys=[(at, at) for at in range(len(values))]), design, exact)


def test_a_light_difference_is_student_of_the_pairs() -> None:
    a, b = [10.0, 11.0, 12.0, 13.0, 9.0], [9.5, 10.0, 11.9, 12.0, 8.0]
    found = beyond(difference(side(a, design=Design()), side(b, design=Design())), -0.5, size=10)
    below = stats.ttest_1samp(np.subtract(b, a), -0.5, alternative="less").pvalue
    assert found is not None
    assert (found.below, found.above) == pytest.approx((below, 1 - below))
    assert found.at == 1.0


@pytest.mark.parametrize(
    ("a", "b", "place", "expected"),
    [
        (10.0, 10.0, 0.0, Beyond(1.0, 1.0, 0.0)),
        (10.0, 12.0, 0.0, Beyond(0.0, 1.0)),
        (10.0, 12.0, 3.0, Beyond(1.0, 0.0)),
        # What rounding leaves is none.
        (0.1 + 0.2, 0.3, 0.0, Beyond(1.0, 1.0, 0.0)),
    ],
)
def test_exact_numbers_need_no_test(a: float, b: float, place: float, expected: Beyond) -> None:
    assert beyond(difference(side([a], exact=True), side([b], exact=True)), place, size=a) == expected


def test_what_is_the_same_every_time_has_the_sign_test() -> None:
    same = difference(side([10.0, 11.0, 12.0]), side([10.0, 11.0, 12.0]))
    assert is_constant(same, size=10)
    assert beyond(same, 0.0, size=10) == Beyond(1.0, 1.0, 0.125)
    assert beyond(same, -1.0, size=10) == Beyond(0.125, 1.0)
    tenth = ratio(side([10.0, 11.0, 13.0]), side([9.0, 9.9, 11.7]))
    assert is_constant(tenth, size=1)
    assert beyond(tenth, 0.0, size=1) == Beyond(1.0, 0.125)
    beside = difference(side([10.0], exact=True), side([10.0, 10.0, 10.0]))
    assert beyond(without_rounding(beside, size=10), 0.0, size=10) == Beyond(1.0, 1.0, 0.125)
    assert not is_constant(difference(side([10.0]), side([10.0])), size=10)  # a single repetition shows nothing


@pytest.mark.parametrize(("units", "most"), [(1, 0.95), (6, 1 - 0.05 ** (1 / 6)), (59, 0.0495)])
def test_the_share_of_exceptions_is_the_binomial_limit(units: int, most: float) -> None:
    assert share_limit(units) == pytest.approx(most, abs=1e-4)
    # So many exceptions would have shown none with a chance of 5 %.
    assert stats.binom.pmf(0, units, share_limit(units)) == pytest.approx(0.05)


def test_few_repetitions_of_a_skewed_wait_have_no_place_but_nothing() -> None:
    rng = np.random.default_rng(1)
    few = difference(side(rng.lognormal(size=5)), side(rng.lognormal(size=5)))
    assert beyond(few, 0.0, size=1) is None
    assert beyond_nothing(few, is_other_exact=False) is not None
    assert beyond_nothing(difference(side([1.0, 2.0]), side([3.0, 5.0])), is_other_exact=False) is None


@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_equal_skewed_cells_seldom_seem_to_differ(sigma: float) -> None:
    """Of 2000 pairs of five repetitions each: at most 5 % with two-sided 5 %, and three standard errors of it."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(2000):
        found = beyond_nothing(difference(side(rng.lognormal(0, sigma, 5)), side(rng.lognormal(0, sigma, 5))),
                               is_other_exact=False)  # fmt: skip
        wrong += found is not None and min(found.above, found.below) < 0.025
    assert wrong <= 100 + 3 * np.sqrt(2000 * 0.05 * 0.95)


def test_beside_an_exact_number_a_wait_is_only_shown_to_be_longer() -> None:
    rng = np.random.default_rng(6)
    mean = float(np.exp(2.0))  # of a lognormal with sigma 2
    exact = side([mean], exact=True)
    longer = 0
    for _ in range(2000):
        waits = side(rng.lognormal(0, 2.0, 5))
        found = beyond_nothing(difference(exact, waits), is_other_exact=False)
        turned = beyond_nothing(difference(waits, exact), is_other_exact=True)
        assert found is not None
        assert turned is not None
        assert (found.below, turned.above) == (1.0, 1.0)
        assert turned.below == pytest.approx(found.above)
        longer += found.above < 0.025
    assert longer <= 50 + 3 * np.sqrt(2000 * 0.025 * 0.975)
    rates = side(rng.lognormal(0, 2.0, 5), design=Design(Tail.SKEWED, 0.05, is_wait=False))
    assert beyond_nothing(difference(exact, rates), is_other_exact=False) is None
