"""Exact quantile intervals against tabulated ranks and against the binomial they rest on."""

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import TooFewSamples, median_interval, quantile_interval, quantile_ranks, quantile_size


@pytest.mark.parametrize(("q", "ranks"), [(0.5, (469, 532)), (0.95, (936, 964)), (0.99, (983, 997))])
def test_ranks_of_a_thousand_samples(q: float, ranks: tuple[int, int]) -> None:
    assert quantile_ranks(1000, q) == ranks


@pytest.mark.parametrize(
    ("n", "ranks"),
    # Conover, Practical Nonparametric Statistics, table A3: ranks of the 95 % sign-test interval for the median.
    [(6, (1, 6)), (9, (2, 8)), (10, (2, 9)), (12, (3, 10)), (20, (6, 15)), (25, (8, 18))],
)
def test_median_ranks_of_the_sign_test(n: int, ranks: tuple[int, int]) -> None:
    assert quantile_ranks(n, 0.5) == ranks


@pytest.mark.parametrize(("q", "size"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_fewest_samples(q: float, size: int) -> None:
    assert quantile_size(q) == size
    assert quantile_ranks(size, q)[1] == size
    with pytest.raises(TooFewSamples) as refusal:
        quantile_ranks(size - 1, q)
    assert refusal.value.needed == size
    assert f"needs {size}" in refusal.value.message


def test_ranks_cover_at_least_what_they_promise_and_are_tight() -> None:
    for n in (72, 100, 368, 1000):
        for q in (0.25, 0.5, 0.95):
            low, high = quantile_ranks(n, q)
            below = stats.binom(n, q)
            assert below.cdf(low - 1) <= 0.025 < below.cdf(low)
            assert below.sf(high - 1) <= 0.025 < below.sf(high - 2)


def test_interval_of_known_samples() -> None:
    found = median_interval(np.arange(1000, 0, -1), unit="ns")
    assert (found.value, found.low, found.high, found.n) == (500.5, 469.0, 532.0, 1000)
    assert found.method == "order statistics (exact binomial)"


def test_a_quantile_is_inside_0_and_1() -> None:
    with pytest.raises(ValueError, match="not between"):
        quantile_interval([1.0] * 100, 1.0, unit="ns")


def test_coverage_is_the_exact_one() -> None:
    # P(ranks enclose p95) is a known number c; of 2000 trials the count is Binomial(2000, c): 99.99 % bounds.
    rng = np.random.default_rng(11)
    n, q, trials = 200, 0.95, 2000
    low, high = quantile_ranks(n, q)
    exact = float(stats.binom.cdf(high - 1, n, q) - stats.binom.cdf(low - 1, n, q))
    ordered = np.sort(rng.exponential(1.0, size=(trials, n)), axis=1)
    truth = -np.log(1 - q)
    covered = int(np.sum((ordered[:, low - 1] <= truth) & (truth <= ordered[:, high - 1])))
    bounds = stats.binom(trials, exact).ppf([0.00005, 0.99995])
    assert bounds[0] <= covered <= bounds[1]
