"""Intervals and claims of a cell whose repetitions are drawn from many: the pool is the truth.

Every number comes from the functions behind a report, with the runs of a draw for its ledgers. Claims compare a
statistic with its truth, and two cells of which the second is larger by just the margin.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic
from crosswind.analysis.estimates import BoundedNumber, estimate_of_cell
from crosswind.analysis.samples import repetition_key
from crosswind.catalog.metrics import LOST, STATISTICS
from crosswind.cell.record import CellRun
from crosswind.decisions.judge import OfEffect
from crosswind.decisions.statement import Range
from crosswind.stats.arrays import Array
from crosswind.stats.differences import difference, ratio
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.quantile import quantile_of
from crosswind.stats.repetitions import Repetitions

MARGIN = 0.1
"""Of claims about two cells, and of the power of a threshold."""
LEVEL = 0.95
ROUNDED = 1e-6
"""By which a second cell is larger than the margin: pairs with the same effect each lie beyond it, not at it."""

Number = tuple[str, str]
"""A metric and a statistic."""


@dataclass
class Outcomes:
    """Counts over draws.

    Attributes:
        given: whole intervals. covered: of these, with the truth inside.
        above, below: claims with an upper limit below the truth, with a lower limit above it.
        farther: claims with an upper limit below two thirds of the truth.
        passed: claims with an upper limit below the truth and the margin.
        compared: pairs of cells. wrong: a second cell, larger by the margin, called no larger than that; of shares, an
            equal one called smaller. equal: equal cells called no larger than by the margin; of shares, by half.
    """

    draws: int = 0
    given: int = 0
    covered: int = 0
    above: int = 0
    below: int = 0
    farther: int = 0
    passed: int = 0
    compared: int = 0
    wrong: int = 0
    equal: int = 0

    def add(self, other: "Outcomes") -> None:
        """Add the counts of further draws."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)

    @property
    def coverage(self) -> float | None:
        """Covered intervals; None without one."""
        return self.covered / self.given if self.given else None

    @property
    def error(self) -> float:
        """The larger share of wrong limits."""
        return max(self.above, self.below) / max(self.draws, 1)


@dataclass(frozen=True)
class Pool:
    """All repetitions of a cell.

    Attributes: data: the cell with them. has_bursts: whether loss bursts have a minimum.
    """

    data: CellData
    has_bursts: bool = True

    @cached_property
    def _runs(self) -> Sequence[CellRun]:
        return [run for run in self.data.runs if run.finished is not None]

    @cached_property
    def _unseeded(self) -> Sequence[CellRun]:
        """The same without seeds: draws of two cells are pairs."""
        return [replace(run, parameters={**run.parameters, "seed": None}) for run in self._runs]

    @cached_property
    def _values(self) -> dict[str, list[tuple[Array, int] | None]]:
        """Of each metric the values of each run, and its censored exchanges; None without either."""
        found = {}
        for name, units in self.data.samples.items():
            of_key = dict(zip(units.keys, units.of_units(), strict=True))
            found[name] = [of_key.get(repetition_key(run)) for run in self._runs]
        return found

    def drawn(self, rng: np.random.Generator, count: int, names: Iterable[str]) -> CellData:
        """The cell with some repetitions, drawn with replacement."""
        picked = rng.integers(0, len(self._runs), count)
        runs = [replace(self._unseeded[index], repetition=at) for at, index in enumerate(picked)]
        samples = {name: self._units(name, picked, runs) for name in names if name in self.data.samples}
        cell = replace(self.data, runs=runs, samples={name: units for name, units in samples.items() if units.count})
        if not self.has_bursts:
            vars(cell)["least_of_bursts"] = 0
        return cell

    def _units(self, name: str, picked: Array, runs: Sequence[CellRun]) -> Repetitions:
        parts = [(at, self._values[name][index]) for at, index in enumerate(picked)]
        known = [(at, *part) for at, part in parts if part is not None]
        return Repetitions.of(
            np.concatenate([np.empty(0), *(values for _, values, _ in known)]),
            np.repeat([at for at, _, _ in known], [values.size for _, values, _ in known]),
            keys=[repetition_key(runs[at]) for at, _, _ in known],
            censored=[held for _, _, held in known],
            limit=self.data.samples[name].limit,
        )

    def truth(self, number: Number) -> float | None:
        """The statistic of all repetitions; None where it is a timeout."""
        name, statistic = number
        if name == LOST.name:
            return None if self.data.lost is None else self.data.lost.value
        units, quantile = self.data.samples[name], STATISTICS[statistic].quantile
        return float(units.values.mean()) if quantile is None else quantile_of(units, quantile)


def judged(
    pool: Pool, numbers: Sequence[Number], repetitions: int, *, draws: int, seed: int, pairs: int = 0
) -> dict[Number, Outcomes]:
    """What became of each number in draws of some repetitions. Args: pairs: draws with a second cell beside it."""
    rng = np.random.default_rng([seed, repetitions])
    truths = {number: truth for number in numbers if (truth := pool.truth(number))}
    names = sorted({name for name, _ in truths})
    found = {number: Outcomes() for number in truths}
    for draw in range(draws):
        cell = pool.drawn(rng, repetitions, names)
        other = pool.drawn(rng, repetitions, names) if draw < pairs else None
        for number, truth in truths.items():
            found[number].add(_of_cell(cell, number, truth))
            if other is not None:
                found[number].add(_of_two(cell, other, number))
    return found


def _of_cell(cell: CellData, number: Number, truth: float) -> Outcomes:
    made = estimate_of_cell(cell, *number, level=LEVEL)
    claim = BoundedNumber(cell, *number).at(LEVEL)
    low = -math.inf if claim.low is None else claim.low
    high = math.inf if claim.high is None else claim.high
    slack = 1e-9 * truth
    is_covered = made.is_whole and (made.low or 0.0) - slack <= truth <= (made.high or 0.0) + slack
    return Outcomes(
        draws=1,
        given=int(made.is_whole),
        covered=int(is_covered),
        above=int(high < truth - slack),
        below=int(low > truth + slack),
        farther=int(high < truth / 1.5),
        passed=int(high < truth * (1 + MARGIN)),
    )


def _of_two(cell: CellData, other: CellData, number: Number) -> Outcomes:
    name, statistic = number
    try:
        reference, second = cell.side(name), other.side(name)
        if reference.units.keys != second.units.keys:
            return Outcomes()
        if reference.is_share:
            effect, size = difference(reference, second), float(reference.units.values.mean())
            claims = [OfEffect(effect, Range(None, high)) for high in (0.0, size / 2)]
        else:
            compared = compared_statistic(statistic)
            larger = replace(second, units=_times(second.units, (1 + MARGIN) * (1 + ROUNDED)))
            effects = [ratio(reference, side, compared) for side in (larger, second)]
            claims = [OfEffect(effect, Range(None, 1 + MARGIN), math.log) for effect in effects]
    except TooFewSamples:
        return Outcomes()
    wrong, equal = (claim.shows(yes=True, alpha=0.05) for claim in claims)
    return Outcomes(compared=1, wrong=int(wrong), equal=int(equal))


def _times(units: Repetitions, factor: float) -> Repetitions:
    limit = None if units.limit is None else units.limit * factor
    return replace(units, values=units.values * factor, limit=limit)
