"""Repetitions needed for a precision, from the spread in an earlier run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.designs import design_of
from crosswind.analysis.precision import (
    AskedPrecision,
    AskedTarget,
    Support,
    beyond_the_most,
    first_look,
    is_alike,
    support_of,
)
from crosswind.analysis.two_runs.matching import match_cells
from crosswind.analysis.units import NO_VALUE, units_of
from crosswind.catalog.metrics import METRICS, metric_named
from crosswind.catalog.path_effect import PathEffect
from crosswind.cell.record import CellRun, RunRecord
from crosswind.stats.arrays import Array
from crosswind.stats.design import Tail
from crosswind.stats.sample_size import FEWEST, repetitions_for_width, spread_limits
from crosswind.stats.sequential import look_at_which, repetitions_alike

LEVEL = 0.8
"""For the range of needed repetitions, from the spread's range."""


@dataclass(frozen=True)
class NeededRepetitions:
    """The repetitions needed for a precision in a cell.

    Attributes: pilot_cell: in the earlier run; None without one. pilot_units: its repetitions. value, spread: their
        mean and standard deviation, in `unit`; None without values. wanted: the half-width in `unit`. needed: probably
        sufficient repetitions; low, high: its range with 80 %. None: beyond `most`. has_range: whether it has one;
        under random losses or delays an earlier run may have missed rare long ones, and its spread's distribution is
        unknown. fixed: for a design without looks. reason: why nothing is known.
    """

    cell: int
    metric: str
    statistic: str
    unit: str
    target: str
    most: int
    pilot_cell: int | None = None
    pilot_units: int = 0
    value: float | None = None
    spread: float | None = None
    wanted: float | None = None
    needed: int | None = None
    low: int | None = None
    high: int | None = None
    has_range: bool = True
    fixed: int | None = None
    reason: str | None = None


def needed_repetitions(
    asked: Mapping[str, Any],
    cells: Mapping[int, tuple[Mapping[str, str], Mapping[str, Any], PathEffect]],
    pilot: RunRecord,
) -> list[NeededRepetitions]:
    """Each precision's needs in each of its study's cells.

    Args: asked: from a manifest. cells: each study cell's levels, parameters and effect, by index. pilot: the earlier
        run, with cells matched like two runs'.
    """
    read = AskedPrecision.model_validate(asked)
    looks = {cell: look.repetitions for look in read.looks for cell in look.cells}
    pairs = match_cells([_planned(cell, *of) for cell, of in cells.items()], collect(pilot)).pairs
    matches = {pair.a.cell: pair.b for pair in pairs}
    wanted = sorted((cell, number) for number, target in enumerate(read.targets) for cell in target.cells)
    return [_needed(cell, read.targets[number], looks[cell], matches.get(cell)) for cell, number in wanted]


def _planned(cell: int, levels: Mapping[str, str], parameters: Mapping[str, Any], effect: PathEffect) -> CellData:
    run = CellRun(f"c{cell:03d}", cell, 0, 0, dict(levels), dict(parameters), effect, None, None)
    return CellData(cell, dict(levels), [run], {})


def _needed(cell: int, target: AskedTarget, looks: Sequence[int], pilot: CellData | None) -> NeededRepetitions:
    metric = metric_named(target.metric)
    assert metric is not None  # The study was checked.
    made = NeededRepetitions(
        cell, target.metric, target.statistic, metric.unit.name, target.target, looks[-1],
        pilot_cell=None if pilot is None else pilot.cell,
    )  # fmt: skip
    if pilot is None:
        return replace(made, reason="the earlier run has no such cell")
    units = list(units_of(pilot, metric, target.statistic))
    values = np.array([unit.value for unit in units if unit.value is not None])
    reasons = [unit.reason for unit in units if unit.reason not in (None, NO_VALUE)]
    if reasons or not values.size:
        return replace(made, reason=next(iter(reasons), "no repetition has a value"))
    # A median of each repetition has nothing of its rare long waits.
    has_range = target.statistic == "median" or design_of(metric, pilot.settings).tail is Tail.LIGHT
    made = replace(made, pilot_units=values.size, has_range=has_range)
    support = support_of(pilot, target.metric, target.statistic)
    if support.least > looks[-1]:
        return replace(made, reason=beyond_the_most(support.least, looks[-1]))
    made = replace(made, value=float(values.mean()))
    if pilot.is_exact:
        return replace(made, spread=0.0, wanted=0.0, needed=1, low=1, high=1, fixed=1)
    if values.size < FEWEST:
        there = "is 1" if values.size == 1 else f"are {values.size}"
        return replace(made, reason=f"a spread needs {FEWEST} repetitions, there {there}")
    return _from_spread(made, target, looks, values, support)


def _from_spread(
    made: NeededRepetitions, target: AskedTarget, looks: Sequence[int], values: Array, support: Support
) -> NeededRepetitions:
    value, spread, least = float(values.mean()), float(values.std(ddof=1)), support.least
    wanted = target.bound * (abs(value) if target.is_relative else 1.0)
    fixed = repetitions_for_width(spread, wanted, unseen=support.half_width)
    is_positive = METRICS[target.metric].is_positive
    low, middle, high = (
        look_at_which(size, wanted, looks, mean=value, is_positive=is_positive, unseen=support.half_width)
        for size in sorted((spread, *spread_limits(spread, values.size, level=LEVEL)))
    )
    fixed = None if fixed is None else max(fixed, least)
    if is_alike(spread, value):
        least = max(least, repetitions_alike(looks) or looks[-1] + 1)
    return replace(
        made,
        spread=spread,
        wanted=wanted,
        needed=_at(looks, middle, least),
        low=_at(looks, low, least) if made.has_range else None,
        high=_at(looks, high, least) if made.has_range else None,
        fixed=fixed,
    )


def _at(looks: Sequence[int], look: int | None, least: int) -> int | None:
    return None if look is None else first_look(looks, max(looks[look], least))
