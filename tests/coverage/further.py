"""Intervals that are printed beside those of `procedures`: of questions, claims, comparisons by other statistics."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special

from coverage.procedures import FACTOR, LEVEL
from coverage.tally import Tally
from coverage.worlds import Size, World, scores
from crosswind.stats.arrays import Array
from crosswind.stats.differences import Side, difference, independent_at_best, ratio
from crosswind.stats.effect import Effect, estimate_of
from crosswind.stats.estimate import Interval, TooFewSamples
from crosswind.stats.mean import TRIMMED
from crosswind.stats.quantile import repetition_quantile_interval
from crosswind.stats.repetitions import Repetitions

SHARES = {"10 and 20 %": (0.1, 0.2), "1 and 2 %": (0.01, 0.02)}
"""Shares of exchanges whose difference is tried: of the reference and of the other cell."""
COMPARED = (
    "median of each", "p95 of each", "trimmed", "ratio of trimmed", "ratio of medians", "ratio of p95",
    "ratio, unpaired", "median, unpaired", "p95, unpaired",
)  # fmt: skip
"""Columns of the table: what a question prints of one cell, and effects of two."""
_DRAWN = 20_000
"""Repetitions from which the truth of a repetition's own quantile is drawn."""
_OTHERS = 10_000
"""The first repetition of a cell that shares no seed with another."""

_Tried = tuple[Callable[[], Interval], float]


def compared(world: World, size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of each statistic of a cell, and of two of which the other is FACTOR times as long."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    many = world.of_score(scores(rng, 1, Size(_DRAWN, size.messages, size.icc))[0][0])
    median, p95 = (float(np.quantile(many, q, axis=1).mean()) for q in (0.5, 0.95))
    more, trimmed = FACTOR - 1, world.trimmed(TRIMMED)
    found: dict[str, Tally] = {}
    for own, same, apart in _runs(rng, trials, size):
        a, b, c = (
            Side(_units(times * world.of_score(score), first), world.design)
            for score, times, first in ((own, 1, 0), (same, FACTOR, 0), (apart, FACTOR, _OTHERS))
        )
        intervals: dict[str, _Tried] = {
            "median of each": (lambda a=a: _of_each(a, 0.5), median),
            "p95 of each": (lambda a=a: _of_each(a, 0.95), p95),
            "trimmed": (lambda a=a, b=b: _shown(difference(a, b, "trimmed")), more * trimmed),
            "ratio of trimmed": (lambda a=a, b=b: _shown(ratio(a, b, "trimmed")), FACTOR),
            "ratio of medians": (lambda a=a, b=b: _shown(ratio(a, b, 0.5)), FACTOR),
            "ratio of p95": (lambda a=a, b=b: _shown(ratio(a, b, 0.95)), FACTOR),
            "ratio, unpaired": (lambda a=a, c=c: _shown(ratio(a, c)), FACTOR),
            "median, unpaired": (lambda a=a, c=c: _shown(difference(a, c, 0.5)), more * median),
            "p95, unpaired": (lambda a=a, c=c: _shown(difference(a, c, 0.95)), more * p95),
        }
        for name, (make, truth) in intervals.items():
            found.setdefault(name, Tally()).add(_made(make), truth)
    return found


def shares(size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of the difference of two shares, of cells with the same seeds and with others."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    found: dict[str, Tally] = {}
    for own, same, apart in _runs(rng, trials, size):
        for name, (low, high) in SHARES.items():
            first = Side(_units(own > special.ndtri(1 - low)))
            others = {name: _units(same > special.ndtri(1 - high)),
                      f"{name}, unpaired": _units(apart > special.ndtri(1 - high), _OTHERS)}  # fmt: skip
            for column, other in others.items():
                second = Side(other)
                made = _shown(independent_at_best(difference(first, second), first, second))
                found.setdefault(column, Tally()).add(made, high - low)
    return found


def _runs(rng: np.random.Generator, trials: int, size: Size) -> Iterator[tuple[Array, Array, Array]]:
    """The normal scores of three cells in each run, of shape (units, messages)."""
    for _ in range(trials):
        first, same, apart = (part[0] for part in scores(rng, 1, size))
        yield first, same, apart


def _units(values: Array, first: int = 0) -> Repetitions:
    return Repetitions.of(values.ravel(), np.repeat(first + np.arange(values.shape[0]), values.shape[1]))


def _of_each(side: Side, q: float) -> Interval:
    return repetition_quantile_interval(side.units, q, design=side.design)


def _shown(effect: Effect) -> Interval:
    return estimate_of(effect, level=LEVEL)


def _made(make: Callable[[], Interval]) -> Interval:
    try:
        return make()
    except TooFewSamples as error:
        return Interval(None, None, None, 0, LEVEL, "none", error.message)
