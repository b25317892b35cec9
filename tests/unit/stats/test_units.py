"""What belongs to which repetition, and what every other module sums up from it."""

import numpy as np
import pytest

from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.mean import mean_interval, trimmed_mean_interval
from crosswind.stats.quantile import quantile_interval
from crosswind.stats.repetitions import Repetitions


def test_values_are_put_in_the_order_of_their_repetitions() -> None:
    units = Repetitions.of([5.0, 1.0, 3.0, 2.0], [7, 2, 7, 2])
    assert units.keys == ((2, None), (7, None))
    assert units.values.tolist() == [1.0, 2.0, 5.0, 3.0]
    assert units.repetitions.tolist() == [2, 2, 7, 7]
    assert (units.sizes.tolist(), units.means.tolist()) == ([2, 2], [1.5, 4.0])
    assert units.below(2.5).tolist() == [2, 0]
    assert units.quantiles(0.5).tolist() == [1.5, 4.0]
    assert units.spread() == (1.5, 4.0)


def test_repetitions_without_an_answer_count_in_quantiles_alone() -> None:
    units = Repetitions.of([1.0, 2.0], [1, 1], keys=[(0, 5), (1, 6)], censored=[3, 0], limit=10.0)
    assert (units.count, units.n) == (2, 5)
    assert units.means.tolist() == [1.5]
    assert units.quantiles(0.5).tolist() == [np.inf, 1.5]


def test_some_repetitions_in_another_order() -> None:
    units = Repetitions.of([1, 2, 3, 4, 5, 6.0], [0, 0, 1, 1, 2, 2], keys=[(0, 9), (1, 8), (2, 7)], censored=[1, 2, 3])
    chosen = units.chosen([(2, 7), (0, 9)])
    assert chosen.values.tolist() == [5, 6, 1, 2]
    assert (chosen.keys, chosen.censored.tolist()) == (((2, 7), (0, 9)), [3, 1])
    assert chosen.means.tolist() == [5.5, 1.5]


@pytest.mark.parametrize(
    ("values", "repetitions", "message"),
    [
        ([1.0, np.nan], [0, 1], "not a finite number"),
        ([1.0, np.inf], [0, 1], "not a finite number"),
        ([1.0, 2.0], [0], "one repetition and one connection"),
    ],
)
def test_what_is_no_set_of_values(values: list[float], repetitions: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Repetitions.of(values, repetitions)


def test_a_value_of_an_unknown_repetition() -> None:
    with pytest.raises(ValueError, match="has no key"):
        Repetitions.of([1.0], [3], keys=[(0, None)])


def test_no_values_at_all() -> None:
    nothing = Repetitions.of([])
    with pytest.raises(TooFewSamples, match="no exchange succeeded"):
        mean_interval(nothing)
    with pytest.raises(TooFewSamples, match="no exchange succeeded"):
        trimmed_mean_interval(nothing)
    assert quantile_interval(nothing, 0.5).reason == "there is no exchange"


def test_all_timed_out() -> None:
    lost = Repetitions.of([], [], keys=[(0, 1), (1, 2)], censored=[5, 5], limit=7.0)
    found = quantile_interval(lost, 0.5)
    assert (found.value, found.low, found.high) == (None, 7.0, None)


@pytest.mark.parametrize("values", [[4.0], [4.0, 4.0]])
def test_one_or_two_repetitions_have_a_value_and_no_interval(values: list[float]) -> None:
    for made in (
        mean_interval(Repetitions.of(values)),
        quantile_interval(Repetitions.of(values), 0.5),
    ):
        assert (made.value, made.low, made.high) == (4.0, None, None)
        assert made.reason
        assert made.units == len(values)


def test_constant_repetitions_have_a_mean_and_no_interval() -> None:
    found = mean_interval(Repetitions.of([7.0] * 50, np.repeat(range(10), 5)))
    assert (found.value, found.low, found.high) == (7.0, None, None)
    assert "do not differ at all" in found.reason
