"""The mean's interval: what is resampled, known answers, coverage, and when it is refused."""

import numpy as np
import pytest
from scipy import stats

from crosswind.stats import TooFewSamples, mean_interval, resample


def test_a_few_independent_samples_get_students_t() -> None:
    samples = [9.8, 10.2, 10.4, 9.9]
    found = mean_interval(samples, unit="ns")
    expected = stats.ttest_1samp(samples, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.method == "Student's t"


def test_one_sample_has_no_interval() -> None:
    with pytest.raises(TooFewSamples) as refusal:
        mean_interval([1.0], unit="ns")
    assert refusal.value.needed == 2


def test_the_unit_of_resampling_follows_the_connections() -> None:
    samples = np.random.default_rng(1).normal(10, 1, 96)
    assert resample(samples).method == "studentised bootstrap over exchanges"
    assert resample(samples, np.repeat(np.arange(8), 12)).method == "studentised bootstrap over connections"
    assert resample(samples, np.repeat(np.arange(7), [14] * 6 + [12])).method.endswith("(blocks of 5)")


def test_a_short_series_on_one_connection_is_refused() -> None:
    with pytest.raises(TooFewSamples, match="24 exchanges on a kept connection"):
        mean_interval(np.arange(23.0), np.zeros(23), unit="ns")


def test_normal_samples_agree_with_students_t() -> None:
    # With 4999 resamples the 2.5 % point has a standard error of 0.04 in t, and n = 400 leaves t within 0.02 of normal;
    # 0.15 standard errors of the mean are more than three of those.
    samples = np.random.default_rng(3).normal(50, 4, 400)
    found, t = mean_interval(samples, unit="ns"), stats.ttest_1samp(samples, 0).confidence_interval(0.95)
    error = samples.std(ddof=1) / 20
    assert found.low == pytest.approx(t.low, abs=0.15 * error)
    assert found.high == pytest.approx(t.high, abs=0.15 * error)


def test_the_same_seed_gives_the_same_interval() -> None:
    samples = np.random.default_rng(5).exponential(1, 200)
    assert mean_interval(samples, unit="ns", seed=9) == mean_interval(samples, unit="ns", seed=9)
    assert mean_interval(samples, unit="ns", seed=9) != mean_interval(samples, unit="ns", seed=10)


def test_correlated_clusters_widen_the_interval_by_their_design_effect() -> None:
    # Every cluster repeats one value ten times: the information is that of 50 samples, not 500.
    rng = np.random.default_rng(7)
    values = rng.normal(0, 1, 50)
    repeated, clusters = np.repeat(values, 10), np.repeat(np.arange(50), 10)
    assert resample(repeated, clusters).error == pytest.approx(values.std(ddof=1) / np.sqrt(50))


def test_blocks_show_a_correlation_that_single_samples_do_not() -> None:
    rng = np.random.default_rng(8)
    # A moving average over 5: the mean's variance is 5 times the naive one.
    noise = rng.normal(0, 1, 4000)
    series = np.convolve(noise, np.ones(5), mode="valid")
    blocks = resample(series, np.zeros(series.size)).error
    naive = series.std(ddof=1) / np.sqrt(series.size)
    # Blocks of 16 see 1 - 2·(sum of lag·weight)/(16·5) = 0.9 of the inflation of 5; 500 blocks blur it by 10 %.
    assert 1.8 < blocks / naive < 2.4


def test_batches_keep_the_standard_error() -> None:
    # 1000 batch means estimate a variance within 2/sqrt(2·999) = 4.5 % (two standard errors of a standard deviation).
    samples = np.random.default_rng(2).normal(0, 1, 20_000)
    assert resample(samples).error == pytest.approx(1 / np.sqrt(20_000), rel=0.07)


def test_samples_without_spread_have_an_interval_without_width() -> None:
    found = mean_interval([7.0] * 50, unit="ns")
    assert (found.low, found.value, found.high) == (7.0, 7.0, 7.0)


def test_a_mean_that_rests_on_one_sample_is_refused_with_what_would_help() -> None:
    samples = np.full(100, 20.0) + np.linspace(-0.1, 0.1, 100)
    samples[50] = 224.0
    with pytest.raises(TooFewSamples, match="rests on about 1 of them") as refusal:
        mean_interval(samples, unit="ms")
    assert refusal.value.needed == 500


def test_no_mean_where_the_variance_is_infinite() -> None:
    with pytest.raises(TooFewSamples, match="without a finite variance"):
        mean_interval(np.arange(100.0), unit="ns", retransmitted_loss=0.25)
    assert mean_interval(np.arange(100.0), unit="ns", retransmitted_loss=0.2).value == 49.5


def test_coverage_on_lossy_round_trips() -> None:
    # 10 % loss each way on a doubling timer of 204. Measured pools gave a coverage of 0.94 for n = 100. If it is at
    # least 0.90, 600 trials fall below the bound once in 10,000; one of 0.80 falls below it in 999 of 1000.
    rng = np.random.default_rng(2024)
    p, n, trials = 0.1, 100, 600
    truth = 1 + 2 * 204 * p / (1 - 2 * p)
    covered = 0
    for trial in range(trials):
        lost = rng.geometric(1 - p, size=(2, n)) - 1
        samples = 1 + (204 * (2.0**lost - 1)).sum(axis=0) + rng.normal(0, 0.05, n)
        found = mean_interval(samples, unit="ms", seed=trial, resamples=799)
        covered += found.low <= truth <= found.high
    assert covered >= stats.binom(trials, 0.90).ppf(0.0001)
