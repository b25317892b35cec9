"""Intervals under repeated looks, against published critical values and simulated coverage."""

import math

import numpy as np
import pytest
from scipy import special, stats

from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.sequential import look_at_which, repeated_interval, tails, width_factor
from crosswind.study.precision import look_schedule


def critical(looks: list[int]) -> list[float]:
    return [float(-special.ndtri(tail)) for tail in tails(looks)]


def test_a_single_look_is_the_usual_interval() -> None:
    assert tails([7]) == pytest.approx((0.025,))
    values = np.array([3.0, 5.0, 4.0, 6.0, 2.0, 4.5, 3.5])
    found = repeated_interval(values, 0, [7])
    expected = stats.t.interval(0.95, 6, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)


def test_critical_values_of_five_equal_looks_are_the_published_ones() -> None:
    # Lan & DeMets' Pocock-type spending, two-sided 5 %, 5 looks: R's ldbounds and SAS's SEQDESIGN print these.
    assert critical([1, 2, 3, 4, 5]) == pytest.approx([2.4380, 2.4268, 2.4101, 2.3966, 2.3859], abs=2e-3)


def test_all_looks_together_miss_a_normal_mean_in_5_percent() -> None:
    looks = [5, 10, 20, 40]
    bounds = critical(looks)
    random = np.random.default_rng(1)
    trials = 40_000
    sums = np.cumsum(random.normal(size=(trials, 40)), axis=1)[:, np.array(looks) - 1] / np.sqrt(looks)
    missed = np.mean(np.any(np.abs(sums) > bounds, axis=1))
    assert missed == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / trials))


@pytest.mark.parametrize(
    ("sigma", "is_positive"), [(0.0, False), (0.0, True), (0.5, False), (0.5, True), (1.0, True)],
)  # fmt: skip
@pytest.mark.parametrize("needed", [5, 20])
@pytest.mark.parametrize("every", [4, 40], ids=["growing steps", "every repetition"])
def test_the_interval_covers_where_its_own_width_stopped_it(
    sigma: float, is_positive: bool, needed: int, every: int
) -> None:
    """93 % is what is asked for. sigma: of lognormal repetitions; 0: of normal ones. `needed`: repetitions that a fixed
    design would take for this width."""
    cap, trials = 44, 1500
    looks = look_schedule(5, cap) if every == 4 else tuple(range(5, cap + 1))
    assert len(looks) <= 40
    random = np.random.default_rng(needed)
    drawn = random.normal(size=(trials, cap))
    values, truth, spread = (
        (np.exp(sigma * drawn), math.exp(sigma**2 / 2), math.exp(sigma**2 / 2) * math.sqrt(math.expm1(sigma**2)))
        if sigma
        else (1 + 0.2 * drawn, 1.0, 0.2)
    )
    target = 1.96 * spread / truth / math.sqrt(needed)
    sizes, factors = np.array(looks), np.array([width_factor(n, at, looks) for at, n in enumerate(looks)])
    means = np.cumsum(values, axis=1)[:, sizes - 1] / sizes
    squares = np.cumsum(values**2, axis=1)[:, sizes - 1]
    halves = factors * np.sqrt((squares - sizes * means**2) / (sizes - 1))
    low, high = means - halves, means + halves
    if is_positive:
        low, high = means * np.exp(-halves / means), means * np.exp(halves / means)
    stops = (high - low) / 2 <= target * np.abs(means)
    stops[:, -1] = True
    at = np.arange(trials), stops.argmax(axis=1)
    assert np.mean((low[at] <= truth) & (truth <= high[at])) >= 0.93
    # These are the limits that are tested.
    run, look = at[0][0], int(at[1][0])
    found = repeated_interval(values[run, : looks[look]], look, looks, is_positive=is_positive)
    assert (found.low, found.high) == pytest.approx((low[run, look], high[run, look]))


def test_the_first_look_that_is_narrow_enough_is_forecast() -> None:
    looks = look_schedule(5, 100)
    at = look_at_which(1.0, 0.5, looks, mean=3.0)
    assert at is not None
    assert width_factor(looks[at], at, looks) <= 0.5 < width_factor(looks[at - 1], at - 1, looks)
    assert look_at_which(1.0, 0.01, looks, mean=3.0) is None
    # Of a mean that is small beside its error, an interval on the logarithm is wider.
    later = look_at_which(1.0, 0.5, looks, mean=0.4, is_positive=True)
    assert later is not None
    assert later > at


def test_limits_of_what_is_positive_are_those_of_its_logarithm() -> None:
    values = np.array([1.0, 2.0, 4.0, 9.0])
    flat, found = (repeated_interval(values, 0, [4], is_positive=is_positive) for is_positive in (False, True))
    half = flat.high - flat.value
    assert (found.low, found.high) == pytest.approx((4 * math.exp(-half / 4), 4 * math.exp(half / 4)))
    nothing = repeated_interval(np.zeros(4), 0, [4], is_positive=True)
    assert (nothing.low, nothing.high) == (0, 0)


def test_what_has_no_interval_is_refused() -> None:
    with pytest.raises(TooFewSamples, match="needs 3 repetitions with a value, there are 2"):
        repeated_interval(np.ones(2), 0, [5])
    for looks in ([], [3, 3], [5, 4], [0, 2]):
        with pytest.raises(ValueError, match="no looks"):
            tails(looks)
