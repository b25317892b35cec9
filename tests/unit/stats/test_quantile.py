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


def test_repeated_samples_are_worth_as_many_as_there_are_clusters() -> None:
    # 100 clusters of 10 equal samples: the design effect of an indicator is 10 · 100/99: worth 99.
    values = np.repeat(np.arange(100.0), 10)
    clusters = np.repeat(np.arange(100), 10)
    found = quantile_interval(values, 0.5, clusters, unit="ns")
    assert found.method == "order statistics (binomial, 99 effective samples)"
    low, high = quantile_ranks(99, 0.5)
    assert (found.low, found.high) == (values[(low - 1) * 1000 // 99], values[-(-high * 1000 // 99) - 1])
    with pytest.raises(TooFewSamples, match="neighbours are alike") as refusal:
        quantile_interval(values, 0.99, clusters, unit="ns")
    assert refusal.value.needed > 3000


def test_independent_samples_on_one_connection_stay_exact() -> None:
    samples = np.random.default_rng(5).exponential(1, 1000)
    assert quantile_interval(samples, 0.5, np.zeros(1000), unit="ns") == quantile_interval(samples, 0.5, unit="ns")


def test_coverage_of_correlated_samples() -> None:
    # AR(1) with correlation 0.5: the design effect of the median's indicator is 2.3 (arcsine law: 1 + twice the sum
    # of (2/pi)·asin(0.5^k)), of which blocks of 9 see 2.0: a coverage of 0.93, less 0.02 for an estimated effect. Fewer
    # of 400 trials than the bound are then covered once in 10,000. Without the correction 0.80 would be.
    rng = np.random.default_rng(77)
    n, trials = 700, 400
    covered = 0
    for _ in range(trials):
        noise = rng.normal(0, 1, n + 50)
        series = np.empty(n + 50)
        series[0] = noise[0]
        for at in range(1, n + 50):
            series[at] = 0.5 * series[at - 1] + noise[at]
        found = quantile_interval(series[50:], 0.5, np.zeros(n), unit="ns")
        covered += found.low <= 0 <= found.high
    assert covered >= stats.binom(trials, 0.91).ppf(0.0001)
