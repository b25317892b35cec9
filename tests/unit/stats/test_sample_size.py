"""How many repetitions it takes, against scipy's noncentral t, textbook numbers and the intervals themselves."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from crosswind.stats.sample_size import (
    FEWEST,
    MOST,
    more_to_decide,
    repetitions_for_width,
    repetitions_needed,
    spread_limits,
)


@pytest.mark.parametrize(
    ("effect", "needed"),
    [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)],
    ids=["small", "medium", "large", "1 sd"],
)
def test_a_two_sided_test_of_5_percent_needs_what_tables_say_for_80_percent_power(effect: float, needed: int) -> None:
    # G*Power 3.1, "difference between two dependent means (matched pairs)": 199, 34, 15 and 10 pairs.
    assert repetitions_needed(1.0, effect) == needed


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("effect", [0.07, 0.4, 1.3])
def test_the_number_is_the_fewest_whose_power_is_enough(effect: float, sides: int) -> None:
    needed = repetitions_needed(2.0, 2.0 * effect, alpha=0.05, sides=sides, power=0.9)
    assert needed is not None

    def power(n: int) -> float:
        critical = stats.t.isf(0.05 / sides, n - 1)
        return float(stats.nct.sf(critical, n - 1, effect * math.sqrt(n)))

    assert power(needed) >= 0.9 > power(needed - 1)


@pytest.mark.parametrize(("pilot", "needed"), [(3, 22), (5, 15), (10, 12), (20, 11), (1000, 10)])
def test_a_spread_from_few_repetitions_needs_more_and_has_the_power_on_average(pilot: int, needed: int) -> None:
    """Of a distance of one standard deviation, for which a spread that is known takes 10 pairs."""
    assert repetitions_needed(1.0, 1.0, freedom=pilot - 1) == needed

    def power(n: int) -> float:
        def at(u: float) -> float:
            away = math.sqrt(n * stats.chi2.isf(u, pilot - 1) / (pilot - 1))
            return float(stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, away))

        return float(integrate.quad(at, 0, 1, limit=200)[0])

    assert power(needed) >= 0.8 > power(needed - 1)
    # Of a spread that is estimated again and again: the power of the number that follows from each.
    spreads = np.sqrt(stats.chi2.ppf((np.arange(50) + 0.5) / 50, pilot - 1) / (pilot - 1))
    numbers = [repetitions_needed(spread, 0.5, freedom=pilot - 1) for spread in spreads]
    powers = [stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, 0.5 * math.sqrt(n)) for n in numbers if n is not None]
    assert len(powers) == 50
    assert 0.79 <= np.mean(powers) <= 0.83


def test_an_effect_without_spread_needs_the_fewest_and_none_at_all_needs_for_ever() -> None:
    assert repetitions_needed(0.0, 1.0) == FEWEST
    assert repetitions_needed(1.0, 1e6) == FEWEST
    assert repetitions_needed(1.0, 0.0) is None
    assert repetitions_needed(1.0, 1e-9) is None
    assert repetitions_for_width(1.0, 0.0) is None
    assert repetitions_for_width(1.0, 1e-6) is None


@pytest.mark.parametrize("half_width", [0.05, 0.3, 1.0])
def test_an_interval_has_the_width_for_the_first_time_at_that_number(half_width: float) -> None:
    needed = repetitions_for_width(1.0, half_width)
    assert needed is not None

    def half(n: int) -> float:
        return float(stats.t.isf(0.025, n - 1)) / math.sqrt(n)

    assert half(needed) <= half_width < half(needed - 1)
    assert needed < MOST


def test_a_spread_has_the_interval_of_the_chi_squared_distribution() -> None:
    low, high = spread_limits(2.0, 10, level=0.95)
    assert low == pytest.approx(2.0 * math.sqrt(9 / stats.chi2.ppf(0.975, 9)))
    assert high == pytest.approx(2.0 * math.sqrt(9 / stats.chi2.ppf(0.025, 9)))
    drawn = np.random.default_rng(1).normal(size=(4000, 6)).std(axis=1, ddof=1)
    covered = np.mean([bounds[0] <= 1 <= bounds[1] for bounds in (spread_limits(s, 6) for s in drawn)])
    # Of 4000 trials at 80 %, within 4 standard deviations of the binomial.
    assert covered == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 4000))


def test_what_is_no_spread_or_distance_is_refused() -> None:
    for spread, distance in ((-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (math.inf, 1.0)):
        with pytest.raises(ValueError, match="no sizes"):
            repetitions_needed(spread, distance)
    with pytest.raises(ValueError, match="two repetitions"):
        spread_limits(1.0, 1)


def test_an_interval_becomes_narrow_enough_for_a_bound() -> None:
    # Half-width 2 has to become 1 / (1 + z(80 %) / z(97.5 %)): (2 x 1.4294)^2 x 8 = 65.4 units.
    assert 1 + stats.norm.ppf(0.8) / stats.norm.ppf(0.975) == pytest.approx(1.42941, abs=1e-4)
    assert more_to_decide(10, 12, 11, 8) == 66 - 8
    assert more_to_decide(10, 8, 9, 8) == 66 - 8
    assert more_to_decide(10, 10.1, 11, 8) == 1
    assert more_to_decide(10, None, 11, 8) is None
    assert more_to_decide(10, 12, 10, 8) is None
    assert more_to_decide(10, 12, 10 + 1e-9, 8) is None
