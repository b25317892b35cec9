"""Intervals of quantiles against tabulated and published ones, and against the shares they rest on."""

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.report.text.format import interval
from crosswind.stats.quantile import interpolated_ranks, quantile_interval, quantile_of, quantile_size, woodruff_shares
from crosswind.stats.repetitions import Repetitions


@pytest.mark.parametrize(("q", "size"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_fewest_independent_values(q: float, size: int) -> None:
    assert quantile_size(q) == size
    enough, too_few = (quantile_interval(Repetitions.of(np.arange(float(n))), q) for n in (size, size - 1))
    assert enough.high is not None
    assert too_few.high is None
    assert f"needs {size} repetitions, there are {size - 1}: 1 more" in too_few.reason


@pytest.mark.parametrize("n", [6, 9, 10, 12, 20, 25])
def test_ranks_of_the_median_are_those_of_hettmansperger_and_sheather(n: int) -> None:
    # Their 1986 formula, written down independently: between the order statistics d and d + 1 of the sign test.
    below = stats.binom(n, 0.5)
    d = max(k for k in range(1, n) if 1 - 2 * below.cdf(k - 1) >= 0.95)
    outer, inner = (1 - 2 * below.cdf(k - 1) for k in (d, d + 1))
    part = (outer - 0.95) / (outer - inner)
    weight = (n - d) * part / (d + (n - 2 * d) * part)
    assert interpolated_ranks(n, 0.5) == pytest.approx((d + weight, n + 1 - d - weight))


def test_the_ranks_of_an_upper_quantile_lie_between_the_exact_ones() -> None:
    for n, q in ((72, 0.95), (100, 0.95), (1000, 0.99)):
        low, high = interpolated_ranks(n, q)
        below = stats.binom(n, q)
        # An order statistic further out covers too much, one further in too little.
        assert below.cdf(math.floor(low) - 1) <= 0.025 <= below.cdf(math.floor(low))
        assert below.cdf(math.ceil(high) - 1) >= 0.975 >= below.cdf(math.ceil(high) - 2)


def test_woodruffs_shares_by_hand() -> None:
    # Four repetitions of ten, of which 3, 5, 5 and 7 are at most the median: shares .3, .5, .5, .7.
    values = np.concatenate([[0.0] * low + [2.0] * (10 - low) for low in (3, 5, 5, 7)])
    units = Repetitions.of(values, np.repeat(range(4), 10))
    half = stats.t.ppf(0.975, 3) * math.sqrt(0.08 / 3 / 4)
    assert woodruff_shares(units, 1.0, 0.5, 0.95) == pytest.approx((0.5 - half, 0.5 + half))


def test_the_upper_limit_has_the_error_at_the_limit() -> None:
    # One repetition of 60 has 12 of its 20 messages late, 1 % of all. At p95 repetitions are alike, beyond it not: of
    # repetitions of which 8 % are such, with 5 % of all messages late, 60 have one at most in 4 %.
    values = np.tile(40.0 + np.arange(20) / 100, (60, 1)) + (np.arange(60) % 2)[:, None] / 1000
    values[7, :12] = 240.0
    units = Repetitions.of(values.ravel(), np.repeat(np.arange(60), 20))
    made = quantile_interval(units, 0.95)
    assert made.value == pytest.approx(40.19)
    assert made.high == pytest.approx(240.0)


def test_the_lower_limit_of_a_median_beside_a_jump_has_the_error_at_the_limit() -> None:
    # Of 10 repetitions, 6 have 18 of 20 messages at the rate of the path, 4 have 2: the median is that rate, and
    # repetitions differ below it.
    values = np.tile(np.linspace(50.0, 55.0, 20), (10, 1))
    for repetition in range(10):
        values[repetition, 2 if repetition < 6 else 18 :] = 64.0
    units = Repetitions.of(values.ravel(), np.repeat(np.arange(10), 20))
    made = quantile_interval(units, 0.5)
    assert made.value == 64.0
    assert made.low is not None
    assert made.low < 55.0


def test_alike_messages_widen_the_interval() -> None:
    values = np.sort(np.random.default_rng(3).normal(0, 1, 1000))
    alike = quantile_interval(Repetitions.of(values, np.repeat(range(10), 100)), 0.5)
    dealt = quantile_interval(Repetitions.of(values, np.tile(np.arange(10), 100)), 0.5)
    assert alike.value == dealt.value
    assert alike.low < dealt.low < dealt.high < alike.high


def test_an_upper_quantile_of_few_repetitions_has_a_lower_limit() -> None:
    values = np.random.default_rng(3).exponential(1, 500)
    found = quantile_interval(Repetitions.of(values, np.repeat(range(5), 100)), 0.95)
    assert found.low < found.value
    assert (found.high, found.reason) == (None, "an interval of p95 needs 20 repetitions, there are 5: 15 more")


def test_a_quantile_of_all_exchanges_is_over_the_timeout() -> None:
    answered = np.repeat(np.arange(10.0), 9)
    units = Repetitions.of(answered, np.tile(np.arange(10), 9), keys=[(at, None) for at in range(10)],
                     censored=[1] * 10, limit=50.0)  # fmt: skip
    assert quantile_of(units, 0.5) == 5.0
    beyond = quantile_interval(units, 0.95)
    assert (beyond.value, beyond.low, beyond.high) == (None, 50.0, None)
    near = quantile_interval(
        Repetitions.of(np.arange(95.0), np.zeros(95), keys=[(0, 1)], censored=[5], limit=94.5), 0.9
    )
    assert near.value == pytest.approx(89.1)


def test_rank_zero_does_not_wrap_round() -> None:
    # The lowest quantile of few values has no lower order statistic: no interval, not the largest value.
    found = quantile_interval(Repetitions.of(np.arange(100.0)), 0.01)
    assert (found.low, found.high) == (None, None)


def test_a_quantile_is_inside_0_and_1() -> None:
    with pytest.raises(ValueError, match="not between"):
        quantile_interval(Repetitions.of([1.0] * 100), 1.0)


@pytest.mark.parametrize(("slow", "text"), [(0, "20.00 (in all 30 repetitions)"), (2, "20.00 [20.00, 20.00]")])
def test_an_interval_without_a_width_says_in_all_repetitions_where_they_are_the_same(slow: int, text: str) -> None:
    units = Repetitions.of([20.0] * (300 - 10 * slow) + [500.0] * 10 * slow, np.repeat(range(30), 10))
    assert interval(quantile_interval(units, 0.5)) == text
