"""Every interval and every test that a report prints, tried on repetitions whose truth is known."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from coverage.tally import Tally
from coverage.worlds import Size, World, scores
from crosswind.decisions.judge import OfEffect
from crosswind.decisions.statement import range_of
from crosswind.stats.arrays import Array
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import Interval, TooFewSamples
from crosswind.stats.majority import repetitions_in_a_row
from crosswind.stats.mean import TRIMMED, mean_interval, trimmed_mean_interval
from crosswind.stats.quantile import quantile_interval
from crosswind.stats.ranks import cliffs_delta, paired_shift, unpaired_shift
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share, share_interval
from crosswind.stats.significance import is_sign_test

FACTOR = 1.2
"""How many times the values of the other cell are larger, where there is a difference to find."""
MARGIN = 0.2
"""Of the equivalence test: exactly what the other cell differs by."""
COMMON, RARE = 0.1, 0.01
"""Shares whose intervals are tried."""
LEVEL = 0.95
PERMUTED = 4
"""Every so many runs have their permutation tests too, which take longest."""
_MESSAGES_AT_ONCE = 2_000_000


def tallies(world: World, size: Size, *, trials: int, seed: int) -> dict[str, Tally]:
    """What came of every procedure in `trials` runs."""
    rng = np.random.default_rng([seed, size.units, size.messages, round(100 * size.icc)])
    found: dict[str, Tally] = {}
    truths = _truths(world)
    step = max(1, _MESSAGES_AT_ONCE // (size.units * size.messages))
    for start in range(0, trials, step):
        drawn = [world.of_score(part) for part in scores(rng, min(step, trials - start), size)]
        for index, values in enumerate(zip(*drawn, strict=True)):
            permuted = (start + index) % PERMUTED == 0
            for name, act in _procedures(world, truths, *values, permuted=permuted):
                act(found.setdefault(name, Tally()))
    return found


def _truths(world: World) -> dict[str, float]:
    return {
        "trimmed": world.trimmed(TRIMMED),
        **{name: world.quantile(q) for name, q in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "common": world.quantile(1 - COMMON),
        "rare": world.quantile(1 - RARE),
    }


def _units(values: Array, first: int = 0) -> Repetitions:
    """Repetitions from an array of shape (units, messages); `first`: the number of the first one."""
    return Repetitions.of(values.ravel(), np.repeat(first + np.arange(values.shape[0]), values.shape[1]))


def _procedures(
    world: World, truths: dict[str, float], own: Array, same: Array, apart: Array, *, permuted: bool
) -> Iterator[tuple[str, Callable[[Tally], None]]]:
    design = world.design
    cell = _units(own)
    a, b, c = Side(cell, design), Side(_units(FACTOR * same), design), Side(_units(FACTOR * apart, 10_000), design)
    same_as, apart_from = Side(_units(same), design), Side(_units(apart, 10_000), design)
    effect, unpaired, log_ratio = difference(a, b), difference(a, c), ratio(a, b)
    n = 2 * own.size
    more = (FACTOR - 1) * world.mean
    intervals: dict[str, tuple[Callable[[], Interval], float]] = {
        "mean": (lambda: mean_interval(cell, design=design), world.mean),
        "trimmed": (lambda: trimmed_mean_interval(cell, design=design), truths["trimmed"]),
        "median": (lambda: quantile_interval(cell, 0.5), truths["median"]),
        "p95": (lambda: quantile_interval(cell, 0.95), truths["p95"]),
        "p99": (lambda: quantile_interval(cell, 0.99), truths["p99"]),
        "share 10 %": (lambda: share_interval(_share(own, truths["common"])), COMMON),
        "share 1 %": (lambda: share_interval(_share(own, truths["rare"])), RARE),
        "difference": (lambda: estimate_of(effect, level=LEVEL), more),
        "unpaired": (lambda: estimate_of(unpaired, level=LEVEL), more),
        "ratio": (lambda: estimate_of(log_ratio, level=LEVEL), FACTOR),
        "median, paired": (lambda: _compared(a, same_as, 0.5), 0.0),
        "p95, paired": (lambda: _compared(a, same_as, 0.95), 0.0),
        "shift": (lambda: paired_shift(same_as.units.means - cell.means, n=n), 0.0),
        "shift, unpaired": (lambda: unpaired_shift(cell.means, apart_from.units.means, n=n), 0.0),
        "Cliff": (lambda: cliffs_delta(cell.means, apart_from.units.means, n=n), 0.0),
    }
    for name, (make, truth) in intervals.items():
        made = _made(make)
        yield name, lambda tally, made=made, truth=truth: tally.add(made, truth)  # type: ignore[misc]
    tests: dict[str, float | None] = {
        "false alarm": difference(a, same_as).p,
        "power": effect.p,
        "TOST error": _equivalence(a, b),
    }
    if permuted:
        tests |= {"false alarm, unpaired": difference(a, apart_from).p, "power, unpaired": unpaired.p}
    for name, p in tests.items():
        yield name, lambda tally, p=p: tally.add_test(p, below=0.05)  # type: ignore[misc]


def _share(values: Array, place: float) -> Share:
    return Share.of(np.sum(values > place, axis=1), np.full(values.shape[0], values.shape[1]))


def _compared(reference: Side, other: Side, q: float) -> Interval:
    return estimate_of(difference(reference, other, q), level=LEVEL)


def _equivalence(reference: Side, other: Side) -> float | None:
    """The p-value of two one-sided tests; None where not even a sign test could show anything."""
    effect = ratio(reference, other)
    if is_sign_test(effect) and effect.units < repetitions_in_a_row(0.05):
        return None
    within = range_of("same", MARGIN, is_ratio=True)
    p = OfEffect(effect, within, math.log).p(yes=True)
    return None if p is None else p / 2


def _made(make: Callable[[], Interval]) -> Interval:
    try:
        return make()
    except TooFewSamples as error:
        return Interval(None, None, None, 0, LEVEL, "none", error.message)
