"""Where one more repetition lies: how often it does, and against a calculation by hand."""

import numpy as np
import pytest

from crosswind.stats.prediction import FEWEST, next_value


@pytest.mark.parametrize(("n", "level"), [(5, 0.95), (10, 0.95), (10, 0.994), (100, 0.95)])
def test_one_more_run_lies_inside_as_often_as_it_says(n: int, level: float) -> None:
    trials, draw = 4000, np.random.default_rng(52)
    values = np.exp(draw.normal(3.0, 0.4, (trials, n + 1)))
    made = [next_value(row[:-1], level=level) for row in values]
    inside = sum(one.low <= row[-1] <= one.high for one, row in zip(made, values, strict=True)) / trials
    # Four standard errors of the share.
    assert abs(inside - level) < 4 * np.sqrt(level * (1 - level) / trials)


def test_it_is_student_s_interval_on_logarithms() -> None:
    # Logarithms 1 to 5: mean 3, deviation sqrt(2.5), t of 4 degrees of freedom 2.776445; half = t sqrt(2.5 * 6 / 5).
    made = next_value(np.exp(np.arange(1.0, 6.0)), level=0.95)
    half = 2.776445 * np.sqrt(3.0)
    assert (made.low, made.value, made.high) == pytest.approx(tuple(np.exp([3 - half, 3.0, 3 + half])), rel=1e-5)


def test_few_values_and_equal_ones_have_no_spread_to_go_by() -> None:
    assert next_value(np.ones(FEWEST - 1), level=0.95).reason == "a prediction takes 5 repetitions with values above 0"
    assert next_value(np.zeros(FEWEST), level=0.95).value is None
    same = next_value(np.full(FEWEST, 7.0), level=0.95)
    assert (same.is_exact, same.value) == (True, 7.0)
