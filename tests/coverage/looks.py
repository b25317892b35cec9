"""Intervals of a run that looks at them again and again, and ends where one is narrow enough (`precision = "5%"`).

Each run has the looks of a study that says nothing of them, and wants the width that a fixed design reaches with so
many repetitions. What is tried is the interval at its end.
"""

from dataclasses import dataclass

import numpy as np

from coverage.tally import Tally
from coverage.worlds import Size, World, scores
from crosswind.analysis.precision import is_alike
from crosswind.stats.arrays import Array
from crosswind.stats.design import mean_shortage
from crosswind.stats.estimate import Interval
from crosswind.stats.sequential import METHOD, repeated_interval
from crosswind.study.precision import look_schedule

LOOKS = look_schedule(5, 100)
STATISTICS = ("mean", "median", "p95")
_LEVEL = 0.95
_DRAWN = 20_000
"""Repetitions from which the truth of a repetition's own quantile is drawn."""


@dataclass(frozen=True)
class _Asked:
    """A statistic of each repetition. truth: its expectation. wanted: relative half-width. least: repetitions below
    which a cell does not end."""

    name: str
    truth: float
    wanted: float
    least: int


def looked_at(world: World, size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of each statistic. Args: size: its units are those of the fixed design."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    many = world.of_score(scores(rng, 1, Size(_DRAWN, size.messages, size.icc))[0][0])
    asked = [_asked(name, world, size, _of_each(many, name)) for name in STATISTICS]
    found = {name: Tally() for name in STATISTICS}
    for _ in range(trials):
        values = world.of_score(scores(rng, 1, Size(LOOKS[-1], size.messages, size.icc))[0][0])
        for one in asked:
            found[one.name].add(_at_end(_of_each(values, one.name), one, size), one.truth)
    return found


def _asked(name: str, world: World, size: Size, drawn: Array) -> _Asked:
    truth = world.mean if name == "mean" else float(drawn.mean())
    wanted = 1.96 * float(drawn.std()) / truth / size.units**0.5
    short = mean_shortage(world.design, 1, size.messages) if name == "mean" else None
    return _Asked(name, truth, wanted, 0 if short is None else short.needed or 0)


def _of_each(values: Array, name: str) -> Array:
    """The statistic of each repetition. Args: values: shape (units, messages)."""
    if name == "mean":
        return np.asarray(values.mean(axis=1))
    return np.asarray(np.quantile(values, {"median": 0.5, "p95": 0.95}[name], axis=1))


def _at_end(units: Array, asked: _Asked, size: Size) -> Interval:
    """The interval with which a run ends; none where the design supports none, or all repetitions are the same."""
    nothing = Interval(None, None, None, 0, _LEVEL, "none", "none by design")
    if asked.least > LOOKS[-1] or (asked.name != "mean" and size.messages == 1):
        return nothing
    for look, repetitions in enumerate(LOOKS):
        made = repeated_interval(units[:repetitions], look, LOOKS, is_positive=True, level=_LEVEL)
        is_reached = repetitions >= asked.least and made.half_width <= asked.wanted * made.value
        # What is the same every time goes on until a sign test ends it, and is about most repetitions.
        if (is_reached and not is_alike(made.spread, made.value)) or repetitions == LOOKS[-1]:
            break
    if is_alike(made.spread, made.value):
        return nothing
    return Interval(made.value, made.low, made.high, made.units, _LEVEL, METHOD)
