"""The exponential against curves known beforehand and against scipy's general least squares."""

import math

import numpy as np
import pytest
from scipy import optimize

from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.exponential import aicc, fit_exponential

LOSSES = np.array([0, 0.01, 0.02, 0.05, 0.08, 0.1])


@pytest.mark.parametrize(
    ("a", "b", "c"), [(1.0, 0.2, 25.5), (160.0, 7.0, 30.5), (0.01, 0.04, 21.0), (5.0, -2.0, -30.0), (3.0, 0.5, 90.0)]
)
def test_a_known_curve_is_found_again(a: float, b: float, c: float) -> None:
    found = fit_exponential(LOSSES, [a + b * np.exp(c * LOSSES)], np.full(6, 20))
    assert (found.a[0], found.b[0], found.c[0]) == pytest.approx((a, b, c), rel=1e-9)
    assert not found.at_end[0]
    assert found.unexplained[0] < 1e-18 * found.total[0]


def test_places_need_not_begin_at_nothing() -> None:
    places = LOSSES + 0.05
    found = fit_exponential(places, [1 + 0.2 * np.exp(25 * places)], np.ones(6))
    assert (found.a[0], found.b[0], found.c[0]) == pytest.approx((1, 0.2, 25), rel=1e-9)


def test_means_with_weights_give_the_curve_through_all_samples() -> None:
    rng = np.random.default_rng(7)
    counts = [5, 8, 20, 11, 9, 30]
    x = np.repeat(LOSSES, counts)
    t = 1 + 0.2 * np.exp(25 * x) + rng.normal(0, 0.1, x.size)
    means = [t[x == place].mean() for place in LOSSES]
    found = fit_exponential(LOSSES, [means], counts)
    expected, _ = optimize.curve_fit(lambda p, a, b, c: a + b * np.exp(c * p), x, t, p0=(1, 0.3, 20))
    # curve_fit stops at a relative change of 1e-8 in the squares, which is 1e-4 in coefficients at their least.
    assert (found.a[0], found.b[0], found.c[0]) == pytest.approx(tuple(expected), rel=1e-4)


def test_curves_fitted_together_are_those_fitted_alone() -> None:
    rows = np.random.default_rng(2).normal(1, 0.3, (20, 6)) + np.exp(20 * LOSSES)
    together = fit_exponential(LOSSES, rows, np.ones(6))
    for index, row in enumerate(rows):
        alone = fit_exponential(LOSSES, [row], np.ones(6))
        assert alone.c[0] == pytest.approx(together.c[index], rel=1e-9)


def test_of_a_straight_line_the_exponential_is_the_limit() -> None:
    found = fit_exponential(LOSSES, [3 + 2 * LOSSES], np.ones(6))
    assert found.straight[0] < 1e-14 * found.total[0]
    assert found.unexplained[0] < 1e-12 * found.total[0]
    assert abs(found.c[0]) < 1e-3
    assert found.b[0] * found.c[0] == pytest.approx(2, rel=1e-3)  # the slope, whatever the two may be


@pytest.mark.parametrize("step", [[0, 0, 0, 0, 0, 1], [0, 1, 1, 1, 1, 1]])
def test_a_step_bounds_no_exponential(step: list[float]) -> None:
    assert fit_exponential(LOSSES, [step], np.ones(6)).at_end[0]


def test_three_places_are_too_few() -> None:
    with pytest.raises(TooFewSamples, match="needs 4, there are 3"):
        fit_exponential([0, 0.1, 0.1, 0.2], [[1, 2, 2, 3]], np.ones(4))


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="one column"):
        fit_exponential(LOSSES, [[1, 2, 3]], np.ones(6))


def test_aicc_worked_by_hand() -> None:
    # Ten samples, squares of 20, two parameters and the variance: 10 ln 2 + 6 + 24/6.
    assert aicc(20, 10, 2) == pytest.approx(10 * math.log(2) + 10)
    assert aicc(20, 4, 2) == math.inf
