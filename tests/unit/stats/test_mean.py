"""The mean's interval: its unit, known answers, and when the design does not support it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosswind.stats.design import Design, Tail
from crosswind.stats.linearised import UNBOUNDED, limits, mean_of
from crosswind.stats.mean import TRIMMED, mean_interval, trimmed_mean_interval, trimmed_mean_of
from crosswind.stats.repetitions import Repetitions

SKEWED = Design(Tail.SKEWED, 0.1)


def test_repetitions_of_one_value_get_students_t() -> None:
    samples = [9.8, 10.2, 10.4, 9.9]
    found = mean_interval(Repetitions.of(samples))
    expected = stats.ttest_1samp(samples, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.method, found.n, found.units) == ("Student's t over repetitions", 4, 4)


def test_messages_of_a_repetition_are_not_independent() -> None:
    # Every repetition repeats one value ten times: the information is that of 6 values, not 60.
    values = np.random.default_rng(7).normal(0, 1, 6)
    found = mean_interval(Repetitions.of(np.repeat(values, 10), np.repeat(range(6), 10)))
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.n, found.units) == (60, 6)


def test_repetitions_of_unequal_size_weigh_by_their_messages() -> None:
    # Cochran 1977, eq. 6.13, by hand: mean 23/7; residuals s - m n of 3, 11 and 9 with 1, 4 and 2 messages.
    units = Repetitions.of([3.0, 1.0, 2.0, 3.0, 5.0, 4.0, 5.0], [0, 1, 1, 1, 1, 2, 2])
    found = mean_of(units)
    mean = 23 / 7
    residuals = np.array([3 - mean, 11 - 4 * mean, 9 - 2 * mean])
    assert found.value == pytest.approx(mean)
    assert found.error == pytest.approx(math.sqrt(3 / 2 * float(residuals @ residuals)) / 7)


def test_a_large_offset_costs_no_digits() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0])
    near, far = mean_of(Repetitions.of(values)), mean_of(Repetitions.of(values + 1e12))
    assert far.error == pytest.approx(near.error, rel=1e-3)


def test_a_skewed_design_takes_the_wider_limit_at_each_end() -> None:
    units = Repetitions.of(np.random.default_rng(5).exponential(1, 4000), np.repeat(range(40), 100))
    mean = mean_of(units)
    t = stats.t.ppf(0.975, 39) * mean.error
    below, above = np.quantile(mean.resampled_t, [0.025, 0.975], method="inverted_cdf")
    expected = (
        min(mean.value - t, mean.value - above * mean.error),
        max(mean.value + t, mean.value - below * mean.error),
    )
    assert limits(mean, SKEWED, 0.95) == pytest.approx(expected)
    assert limits(mean, Design(), 0.95) == pytest.approx((mean.value - t, mean.value + t))


def test_resamples_are_the_same_every_time_and_near_students_t_for_normal_values() -> None:
    normal = mean_of(Repetitions.of(np.random.default_rng(1).normal(0, 1, 400)))
    t = normal.resampled_t
    assert np.array_equal(t, replace(normal).resampled_t)
    # 1999 resamples leave a standard error of 0.06 in the 2.5 % point; four of them.
    assert np.quantile(t, [0.025, 0.975]) == pytest.approx([-1.97, 1.97], abs=0.25)


@pytest.mark.parametrize(("unusual", "is_bounded"), [(3, False), (4, True)])
def test_what_a_few_repetitions_alone_show_is_bounded_below_alone(unusual: int, is_bounded: bool) -> None:
    """Of 20 repetitions some had a connection whose SYN was lost; the others differ by microseconds.

    No resample spreads without these: 0.85^20 = 3.9 % of resamples lack all of 3, and 0.8^20 = 1.2 % all of 4, where
    an upper limit leaves 2.5 % beyond.
    """
    connects = np.random.default_rng(1).normal(60e6, 1e3, (20, 10))
    connects[:unusual, 0] += 1e9
    found = mean_interval(Repetitions.of(connects.ravel(), np.repeat(range(20), 10)), design=Design(Tail.SKEWED))
    assert found.low is not None
    assert (found.high is not None) == is_bounded
    assert found.reason == (None if is_bounded else UNBOUNDED)
    # The mean of the slowest repetition.
    assert found.high is None or found.high < 160e6


def test_the_design_decides_and_not_the_values() -> None:
    rng = np.random.default_rng(2)
    for values in (rng.normal(100, 1, 900), rng.pareto(1.1, 900)):
        found = mean_interval(Repetitions.of(values, np.repeat(range(9), 100)), design=SKEWED)
        assert found.high is None
        assert found.low is not None
        assert found.reason.endswith("needs 10 repetitions, there are 9: 1 more")


@pytest.mark.parametrize(
    ("design", "repetitions", "messages", "needed"),
    [
        (Design(), 2, 100, 3),
        (SKEWED, 8, 100, 10),
        (Design(Tail.SKEWED), 4, 100, 5),  # all are delayed
        (Design(Tail.SKEWED), 8, 1, 50),
        (SKEWED, 100, 1, 500),  # 50 delayed exchanges at a tenth of them
        (Design(Tail.SKEWED, 0.001), 30, 100, 500),
        (Design(Tail.HEAVY), 30, 100, 100),
        (Design(Tail.HEAVY), 100, 1, 10_000),
    ],
)
def test_how_many_more_repetitions_it_takes(design: Design, repetitions: int, messages: int, needed: int) -> None:
    values = np.random.default_rng(1).exponential(1, repetitions * messages)
    found = mean_interval(Repetitions.of(values, np.repeat(range(repetitions), messages)), design=design)
    assert f"needs {needed} repetitions, there are {repetitions}: {needed - repetitions} more" in found.reason


def test_without_a_variance_there_is_no_mean() -> None:
    found = mean_interval(Repetitions.of(np.arange(500.0)), design=Design(Tail.INFINITE))
    assert (found.value, found.low, found.high) == (None, None, None)
    assert "without a finite variance" in found.reason


def test_a_rate_under_loss_has_no_one_sided_limit() -> None:
    # Its slow transfers are the small ones: a lower limit would not hold.
    design = Design(Tail.SKEWED, 0.1, is_wait=False)
    found = mean_interval(Repetitions.of([1.0, 2.0, 3.0, 4.0]), design=design)
    assert (found.value, found.low, found.high) == (2.5, None, None)


def test_a_trimmed_mean_is_scipys_with_the_winsorised_error() -> None:
    samples = np.random.default_rng(4).lognormal(0, 1, 50)
    found = trimmed_mean_of(Repetitions.of(samples))
    assert found.value == pytest.approx(stats.trim_mean(samples, TRIMMED))
    # Wilcox, section 3.3.2: winsorised standard deviation over (1 - 2 share) sqrt(n), n - 2g - 1 degrees of freedom.
    winsorised = stats.mstats.winsorize(samples, (TRIMMED, TRIMMED))
    assert found.error == pytest.approx(winsorised.std(ddof=1) / ((1 - 2 * TRIMMED) * math.sqrt(50)))
    assert found.freedom == 50 - 2 * 10 - 1


def test_a_trimmed_mean_ignores_what_timed_out() -> None:
    timed_out = Repetitions.of(np.arange(90.0), np.repeat(range(10), 9), keys=[(at, 0) for at in range(10)],
                         censored=[1] * 10, limit=1e6)  # fmt: skip
    found = trimmed_mean_interval(timed_out)
    assert found.value == pytest.approx(np.arange(20.0, 80.0).mean())
    many = Repetitions.of([1.0, 2.0, 3.0], [0, 1, 2], keys=[(at, 0) for at in range(3)], censored=[1, 1, 1], limit=9.0)
    assert trimmed_mean_interval(many).reason == "more exchanges timed out than are trimmed"


def test_a_trimmed_mean_without_an_interval_has_the_range_of_the_repetitions_own() -> None:
    """A tenth of the values are a thousand times as long: the means are far from the trimmed means."""
    repetitions = [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1000.0 + at] for at in range(4)]
    repetitions[0][:5] = [3.0] * 5
    values = [value for own in repetitions for value in own]
    found = trimmed_mean_interval(Repetitions.of(values, np.repeat(range(4), 10)))
    assert found.low is None
    # Two of ten values are left out at each end: 1 and 1, 3 and 1000.
    assert found.spread == (1.0, (2 * 1 + 4 * 3) / 6)
    assert found.spread[0] <= found.value <= found.spread[1]
