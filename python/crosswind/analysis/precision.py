"""Whether a run's intervals are as narrow as requested, and the cells to continue.

A cell is looked at after its scheduled numbers of repetitions. Each repetition counts by one number, its metric's
statistic; the interval for their mean is valid under all looks together (crosswind.stats.sequential). It allows for
unseen events (crosswind.stats.chance): without a rare event so far, a narrow interval beside the truth would end the
cell early. A cell goes on until it reaches all its precisions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.designs import INFINITE_LOSS
from crosswind.analysis.samples import read_samples
from crosswind.analysis.settings import CellSettings
from crosswind.analysis.units import Unit, units_of, values_needed
from crosswind.catalog.metrics import METRICS, STATISTICS
from crosswind.catalog.path_effect import PathEffect
from crosswind.catalog.precision import CellPrecision, Ended
from crosswind.cell.record import CellRun, RunRecord
from crosswind.decisions.statement import Stored
from crosswind.stats.chance import NO_CHANCE, TOUCHED, Chance, expected_allowance
from crosswind.stats.design import mean_shortage, repetition_quantile_shortage
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.sequential import look_at_which, repeated_interval, repetitions_alike

_ROUNDING = 1e-12
"""Relative spread left by rounding in a constant number."""

_NO_TABLES: dict[str, Any] = dict.fromkeys(("samples", "probes", "spent", "intervals", "objects"), pl.DataFrame())
"""For a repetition with known values: a long run's tables would not fit into memory."""

_UNSEEN_ALPHA = 0.025
"""For unseen events. Looks do not add to it: from some number of repetitions on, a larger share of repetitions with an
event than allowed for stays unseen with at most this probability."""


class AskedTarget(Stored):
    """A half-width to reach in some cells. target: as written. bound: its number, relative to the mean or a size."""

    metric: str
    statistic: str
    target: str
    is_relative: bool
    bound: float
    cells: frozenset[int]


class AskedLooks(Stored):
    """Some cells' numbers of repetitions to look at."""

    cells: tuple[int, ...]
    repetitions: tuple[int, ...]


class AskedPrecision(Stored):
    """A manifest's `precision`."""

    targets: tuple[AskedTarget, ...]
    looks: tuple[AskedLooks, ...]


class PrecisionRule:
    """Judges a run as it goes on. Args: asked: from the manifest."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        read = AskedPrecision.model_validate(asked)
        self._targets = [(cell, target) for target in read.targets for cell in sorted(target.cells)]
        self._by_cell: dict[int, dict[tuple[str, str], None]] = {}
        for cell, target in self._targets:
            self._by_cell.setdefault(cell, {})[target.metric, target.statistic] = None
        self._looks = {cell: looks.repetitions for looks in read.looks for cell in looks.cells}
        self._units: dict[tuple[int, str, str], dict[int, Unit]] = {}
        self._parts: dict[int, list[CellData]] = {}
        self._done: dict[int, int] = {}
        self._exact: set[int] = set()

    def add(self, run: CellRun) -> None:
        """A repetition has ended, well or not."""
        self.add_cell(CellData(run.cell, run.levels, [run], read_samples([run], undisturbed_ns=None)))

    def add_cell(self, data: CellData) -> None:
        """Adds some finished repetitions to a cell."""
        self._done[data.cell] = self._done.get(data.cell, 0) + len(data.runs)
        if data.is_exact:
            self._exact.add(data.cell)
        asked_of_cell = self._by_cell.get(data.cell, {})
        for asked in asked_of_cell:
            units = {unit.repetition: unit for unit in units_of(data, METRICS[asked[0]], asked[1])}
            self._units.setdefault((data.cell, *asked), {}).update(units)
        if asked_of_cell:
            runs = [replace(run, **_NO_TABLES) for run in data.runs if run.failure is None]
            samples = {name: data.samples[name] for name, _ in asked_of_cell if name in data.samples}
            self._parts.setdefault(data.cell, []).append(replace(data, runs=runs, samples=samples))

    def next_counts(self) -> dict[int, int]:
        """For each cell still running, its total repetitions before the next look.

        Half-way to its precision's probable end: looks in between cost time, and none is needed, since the interval is
        valid at any of them.
        """
        likely: dict[int, int] = {}
        for state in self.state():
            if state.ended is None:
                most = self._looks[state.cell][-1]
                likely[state.cell] = max(likely.get(state.cell, 0), state.likely or most)
        return {cell: self._next_look(cell, repetitions) for cell, repetitions in likely.items()}

    def _next_look(self, cell: int, likely: int) -> int:
        _, done = self._look(cell)
        ahead = [n for n in self._looks[cell] if n > done]
        return max((n for n in ahead if n <= (done + likely) // 2), default=ahead[0])

    def state(self) -> list[CellPrecision]:
        """Every precision in every cell, by cell."""
        states = [self._state(cell, target) for cell, target in self._targets]
        by_cell: dict[int, list[CellPrecision]] = {}
        for state in states:
            by_cell.setdefault(state.cell, []).append(state)
        return [state for cell in sorted(by_cell) for state in self._with_end(cell, by_cell[cell])]

    def _look(self, cell: int) -> tuple[int, int]:
        """A cell's last reached look: its index, and its repetitions; (-1, 0) before the first."""
        looks, done = self._looks[cell], self._done.get(cell, 0)
        passed = [n for n in looks if n <= done]
        return len(passed) - 1, passed[-1] if passed else 0

    def _state(self, cell: int, target: AskedTarget) -> CellPrecision:
        look, repetitions = self._look(cell)
        units = self._units.get((cell, target.metric, target.statistic), {})
        at_look = [
            unit for repetition, unit in sorted(units.items()) if repetition < repetitions or cell in self._exact
        ]
        values = np.array([unit.value for unit in at_look if unit.value is not None])
        nothing = CellPrecision(
            cell=cell, metric=target.metric, statistic=target.statistic, unit=METRICS[target.metric].unit.name,
            units=values.size, value=None, low=None, high=None, target=target.target, wanted=None, ended=None,
            reason=None,
        )  # fmt: skip
        if cell in self._exact and values.size:
            return replace(nothing, value=float(values[0]), ended=Ended.EXACT)
        if look < 0:
            return nothing
        looks, is_positive = self._looks[cell], METRICS[target.metric].is_positive
        reason = next((unit.reason for unit in at_look if unit.reason is not None), None)
        try:
            if reason:
                raise TooFewSamples(reason)
            interval = repeated_interval(values, look, looks, is_positive=is_positive)
        except TooFewSamples as error:
            return replace(nothing, ended=Ended.NO_VALUE, reason=error.message)
        support = support_of(self._at_look(cell, target.metric, repetitions), target.metric, target.statistic)
        if support.least > looks[-1] and support.touched is None:
            return replace(nothing, ended=Ended.NO_VALUE, reason=beyond_the_most(support.least, looks[-1]))
        wanted = target.bound * (abs(interval.value) if target.is_relative else 1.0)
        at = look_at_which(
            interval.spread, wanted, looks, mean=interval.value, is_positive=is_positive, unseen=support.half_width
        )
        likely = None if at is None else first_look(looks, max(looks[at], repetitions, support.least))
        alike = is_alike(interval.spread, interval.value)
        if alike:
            interval = replace(interval, low=interval.value, high=interval.value)
        less, more = support.allowance(support.units)
        interval = interval.widened(less, more, is_positive=is_positive)
        is_bounded = math.isfinite(interval.half_width)
        state = replace(
            nothing,
            value=interval.value,
            low=interval.low if is_bounded else None,
            high=interval.high if is_bounded else None,
            wanted=wanted,
            reason=support.why_unsure if less + more else None,
            least=support.least,
            likely=likely,
        )
        return _of_alike(state, looks) if alike else state

    def _at_look(self, cell: int, metric: str, repetitions: int) -> CellData:
        """A cell at a look: the repetitions before it, with a metric's values."""
        parts = self._parts[cell]
        runs = [run for part in parts for run in part.runs if run.repetition < repetitions]
        units = joined([part.samples[metric] for part in parts if metric in part.samples])
        known = [key for key in units.keys if key[0] < repetitions]
        return replace(parts[0], runs=runs, samples={metric: units.chosen(known)} if known else {})

    def _with_end(self, cell: int, states: Sequence[CellPrecision]) -> list[CellPrecision]:
        """A cell's end, if any: it goes on until it reaches all its precisions."""
        look, _ = self._look(cell)
        open_states = [state for state in states if state.ended is None and not state.is_reached]
        at_cap = look == len(self._looks[cell]) - 1
        if open_states and not at_cap:
            return list(states)
        return [state if state.ended else _ended(state) for state in states]


def is_alike(spread: float, value: float) -> bool:
    """Whether repetitions with this standard deviation and this mean are all the same, but for rounding."""
    return spread <= _ROUNDING * abs(value)


def _of_alike(state: CellPrecision, looks: Sequence[int]) -> CellPrecision:
    """For equal repetitions: no interval until a sign test shows most to be equal."""
    alike = repetitions_alike(looks)
    if alike is not None and state.units >= alike:
        return state
    reason = f"the same in all {state.units} repetitions, which says little below {alike or looks[-1] + 1}"
    likely = None if alike is None or state.likely is None else first_look(looks, max(alike, state.likely))
    return replace(state, low=None, high=None, reason=reason, likely=likely)


def _ended(state: CellPrecision) -> CellPrecision:
    if state.is_reached:
        return replace(state, ended=Ended.PRECISION, likely=None, reason=None)
    return replace(state, ended=Ended.CAP, likely=None)


@dataclass(frozen=True)
class Support:
    """A statistic's interval, by the cell's design and its repetitions so far.

    Attributes: least: needed by design, at the present number of values in each; 0 if no number suffices. units:
        repetitions so far. touched: those with enough lost packets to move the statistic; None where none can be lost,
        or uncounted. chance: its unseen events.
    """

    least: int = 0
    units: int = 0
    touched: int | None = None
    chance: Chance = NO_CHANCE

    def allowance(self, repetitions: int) -> tuple[float, float]:
        """The statistic's possible deviation below and above, beyond the repetitions' evidence."""
        return expected_allowance(self.chance, self.units, repetitions, _UNSEEN_ALPHA)

    def half_width(self, repetitions: int) -> float:
        """Its share of the interval's half-width."""
        return sum(self.allowance(repetitions)) / 2

    @property
    def why_unsure(self) -> str:
        """Why the interval allows for more than repetitions show."""
        if self.touched is None:
            return f"below {TOUCHED} repetitions rare delays may be missing"
        moved = f"losses can have moved it in {self.touched} of {self.units} repetitions"
        return f"{moved}, {TOUCHED} such are needed to bound what they do"


def support_of(data: CellData, metric: str, statistic: str) -> Support:
    """A cell's support. Args: data: its repetitions so far."""
    units, quantile = data.samples.get(metric), STATISTICS[statistic].quantile
    if units is None or not units.count:
        return Support()
    design = data.design(METRICS[metric])
    if quantile is None:
        short = mean_shortage(design, 1, max(round(units.n / units.count), 1))
    else:
        short = repetition_quantile_shortage(design, quantile, 1, of="cell")
    least = 0 if short is None or short.needed is None else short.needed
    chance = data.side(metric).chance("mean" if quantile is None else quantile)
    touched = data.touched if quantile is None or chance == NO_CHANCE else chance.touched
    return Support(least, units.count, touched, chance)


def joined(parts: Sequence[Repetitions]) -> Repetitions:
    """A cell's repetitions, one part below the other."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.count for part in parts)])
    return Repetitions(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.member + start for part, start in zip(parts, starts, strict=False)]),
        np.concatenate([part.connections for part in parts]),
        tuple(key for part in parts for key in part.keys),
        np.concatenate([part.censored for part in parts]),
        parts[0].limit,
    )


def first_look(looks: Sequence[int], repetitions: int) -> int | None:
    """The first look at so many repetitions or more; None beyond the last."""
    return next((n for n in looks if n >= repetitions), None)


def beyond_the_most(least: int, most: int) -> str:
    """Why waiting for a narrow interval is pointless."""
    return f"its interval takes {least} repetitions by design, and {most} are the most"


def precision_of(record: RunRecord, data: Sequence[CellData] | None = None) -> list[CellPrecision]:
    """A run's precisions; empty if none was requested. Args: data: its cells, if known."""
    if record.precision is None:
        return []
    rule = PrecisionRule(record.precision)
    for cell in collect(record) if data is None else data:
        rule.add_cell(cell)
    return rule.state()


def why_unreachable(asked: Mapping[str, Any], cells: Mapping[int, tuple[Mapping[str, Any], PathEffect]]) -> str | None:
    """Why a precision is unreachable by design in some cell, else None.

    Args: asked: from the manifest. cells: each one's parameters, as sent to crosswind-cell, and its effect.
    """
    for target in AskedPrecision.model_validate(asked).targets:
        for cell in sorted(target.cells):
            if why := _why_not(target, CellSettings.of(*cells[cell])):
                return f"{target.statistic} of {target.metric}: {why}"
    return None


def _why_not(target: AskedTarget, settings: CellSettings) -> str | None:
    metric, quantile = METRICS[target.metric], STATISTICS[target.statistic].quantile
    if not metric.applies(settings.workload):
        return f"a cell of kind {settings.kind} has none with these settings"
    if quantile is None:
        infinite = metric.is_wait and settings.repeated_loss >= INFINITE_LOSS
        why = (
            "where 25 % of retransmissions are lost too, waits for them have no finite variance; "
            "no number of repetitions narrows it"
        )
        return why if infinite else None
    exchanges = next((n for key in ("messages", "count") if (n := settings.number(key)) is not None), None)
    needed = values_needed(quantile)
    if exchanges is not None and exchanges < needed:
        return f"a repetition needs {needed} exchanges for that, and has {exchanges:g}"
    return None
