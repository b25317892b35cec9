"""Binomial intervals against scipy, which computes them by other means."""

import pytest
from scipy import stats

from crosswind.stats import TooFewSamples, clopper_pearson, wilson


@pytest.mark.parametrize(("lost", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 500), (57, 1000)])
@pytest.mark.parametrize(("ours", "theirs"), [(clopper_pearson, "exact"), (wilson, "wilson")])
def test_against_scipy(lost: int, n: int, ours, theirs: str) -> None:
    found = ours(lost, n)
    expected = stats.binomtest(lost, n).proportion_ci(0.95, method=theirs)
    assert found.low == pytest.approx(expected.low, abs=1e-12)
    assert found.high == pytest.approx(expected.high, abs=1e-12)
    assert found.value == lost / n


def test_none_lost_of_a_hundred_is_the_rule_of_three_exactly() -> None:
    assert clopper_pearson(0, 100).high == pytest.approx(1 - 0.025 ** (1 / 100))


def test_impossible_counts() -> None:
    with pytest.raises(TooFewSamples):
        clopper_pearson(0, 0)
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(11, 10)
