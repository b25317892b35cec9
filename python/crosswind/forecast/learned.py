"""What runs on this machine really took, and forecasts corrected by it.

Learned from every session is how long it took, which is what the same plan will take again; how long each cell took;
for cells that were never run here, by which factor cells of their kind took longer than their parameters say. Of the
session's time each repetition has a share: while several run side by side, each has its part of that time, and attempts
that did not count are part of it. What a plan takes is the sum of these shares and what a session takes to start, and
what a command takes around it, with the report. The shares of cells that were never run are computed, and corrected by
how much longer or shorter sessions took than so computed: by how many cells this machine runs at a time, and how many
attempts they need.

Other work on the machine makes everything longer and nothing shorter, and how much longer cannot be told from how busy
the machine was. So of the last sessions with the same cell or plan not the mean counts but one of the shortest. Of a
kind, whose cells differ from session to session, the median counts, each session by how many repetitions it had; of how
long cells are under way together that of all sessions.

Without anything learned every forecast stays as it was computed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import accumulate
from statistics import median
from typing import Any, Self, TypeVar

from crosswind.forecast.kinds import CellTime

SCHEMA = "crosswind.durations/4"

MOST_CELLS = 10_000
MOST_STARTS = 30
MOST_PLANS = 500
REMEMBERED, REMEMBERED_FACTORS = 5, 20
"""Of a cell and a plan, and of each factor, the figures of so many sessions are kept, the latest ones."""
AROUND_S = 3.0
"""What a command takes around its session where nothing was learned: 2.5 to 4.5 s on a virtual machine."""
SMALLEST_FACTOR, LARGEST_FACTOR = 0.05, 50.0
T = TypeVar("T")
_DIGITS = 4
"""Of a second, in the file."""


@dataclass(frozen=True)
class Taken:
    """What the repetitions of a cell took in a session.

    Attributes: seconds: their mean, each from its start to its end. share_s: their mean share of the session's time,
        with the attempts that did not count. repetitions: how many.
    """

    cell: CellTime
    seconds: float
    share_s: float
    repetitions: int = 1


@dataclass(frozen=True)
class Factor:
    """By which factor the cells of a kind took longer in a session than predicted. repetitions: how many."""

    factor: float
    repetitions: float

    @property
    def weight(self) -> float:
        """How much is known by it: the error of a mean falls with the root of its number."""
        return math.sqrt(self.repetitions)


@dataclass
class Durations:
    """What was learned.

    Attributes:
        runs: sessions in all. cells: of each cell's key and the last sessions with it, a repetition's seconds and its
            share of the session's. kinds: of each kind of cell, and of all with the same peers that may have others
            beside them or none, what they took in the last sessions. companies: by how many times longer repetitions
            were under way together in the last sessions than computed, as `company` names them. starts: by clock, what
            the latest sessions took beside their repetitions' shares, in seconds. around: of the latest commands, the
            seconds before and after their sessions. plans: of each plan's key, the seconds of the last sessions that
            ran all of it. around_plans: the same of what their commands took around the sessions.
    """

    runs: int = 0
    cells: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    kinds: dict[str, list[Factor]] = field(default_factory=dict)
    companies: dict[str, list[float]] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=dict)
    around: list[float] = field(default_factory=list)
    plans: dict[str, list[float]] = field(default_factory=dict)
    around_plans: dict[str, list[float]] = field(default_factory=dict)

    def around_s(self, key: str) -> float:
        """What a command takes around its session, with the report, in seconds.

        Args: key: of its plan.
        """
        return undisturbed(self.around_plans.get(key) or self.around or [AROUND_S])

    def cell_s(self, cell: CellTime) -> tuple[float, bool]:
        """What a run of a cell will take in seconds, and whether this very cell was measured."""
        if cell.key in self.cells:
            return undisturbed([seconds for seconds, _ in self.cells[cell.key]]), True
        factors = self.kinds.get(cell.kind.name) or self.kinds.get(cell.sort) or []
        return cell.predicted_s * _typical(factors), False

    def share_s(self, cell: CellTime) -> float | None:
        """How many seconds of a session a run of a cell will take for itself; None for a cell that was never run."""
        if cell.key not in self.cells:
            return None
        return undisturbed([share_s for _, share_s in self.cells[cell.key]])

    def company_factor(self, name: str) -> float:
        """By which factor repetitions that were never run will be longer under way together than computed."""
        return median(self.companies.get(name, [1.0]))

    def plan_s(self, key: str) -> float | None:
        """What a plan will take in seconds that was run here before; None for another one."""
        return undisturbed(self.plans[key]) if key in self.plans else None

    def session_s(self, clock: str, shares_s: float) -> float:
        """What a session will take in seconds. Args: shares_s: the sum of its repetitions' shares."""
        return shares_s + undisturbed(self.starts.get(clock) or [0.0]) if shares_s > 0 else 0.0

    def learn_cells(self, taken: Sequence[Taken]) -> None:
        """Learns from one session: what the repetitions of each of its cells took."""
        if not taken:
            return
        self.runs += 1
        for one in taken:
            _add(self.cells, one.cell.key, (one.seconds, one.share_s))
        for name in {name for one in taken for name in (one.cell.kind.name, one.cell.sort)}:
            own = [one for one in taken if name in (one.cell.kind.name, one.cell.sort)]
            predicted_s = sum(one.repetitions * one.cell.predicted_s for one in own)
            seconds = sum(one.repetitions * one.seconds for one in own)
            if predicted_s > 0 and seconds > 0:
                factor = Factor(_factor(seconds, predicted_s), sum(one.repetitions for one in own))
                _add(self.kinds, name, factor, most=REMEMBERED_FACTORS)
        _forget_oldest(self.cells, MOST_CELLS)

    def learn_session(self, clock: str, shares_s: float, wall_s: float) -> None:
        """Learns how long a session took whose repetitions' shares add up to so much."""
        self.starts[clock] = [*self.starts.get(clock, []), max(0.0, wall_s - shares_s)][-MOST_STARTS:]

    def learn_company(self, name: str, shares_s: float, computed_s: float) -> None:
        """Learns how long repetitions of a session were under way together: the sum of their shares of its time.

        Args: name: as `company` gives it. computed_s: what they take side by side as computed.
        """
        if shares_s > 0 and computed_s > 0:
            _add(self.companies, name, _factor(shares_s, computed_s), most=REMEMBERED_FACTORS)

    def learn_plan(self, key: str, seconds: float) -> None:
        """Learns what a session took that ran a whole plan. Args: key: as `plan_key` gives it."""
        _add(self.plans, key, seconds)
        _forget_oldest(self.plans, MOST_PLANS)

    def learn_around(self, key: str, seconds: float) -> None:
        """Learns what a command took before and after its session. Args: key: of its plan."""
        self.around = [*self.around, seconds][-MOST_STARTS:]
        _add(self.around_plans, key, seconds)
        _forget_oldest(self.around_plans, MOST_PLANS)

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "schema": SCHEMA,
            "runs": self.runs,
            "around": _rounded(self.around),
            "starts": {clock: _rounded(starts) for clock, starts in self.starts.items()},
            "kinds": {kind: [_rounded(astuple(one)) for one in factors] for kind, factors in self.kinds.items()},
            "companies": {name: _rounded(factors) for name, factors in self.companies.items()},
            "plans": {key: _rounded(plan) for key, plan in self.plans.items()},
            "around_plans": {key: _rounded(plan) for key, plan in self.around_plans.items()},
            "cells": {key: [_rounded(pair) for pair in pairs] for key, pairs in self.cells.items()},
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """What was stored. Raises: KeyError, TypeError, ValueError, AttributeError when it is something else."""
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise ValueError(f"it is not of schema {SCHEMA}")
        return cls(
            runs=int(data["runs"]),
            plans=_read(data["plans"], float),
            around_plans=_read(data["around_plans"], float),
            cells=_read(data["cells"], _pair),
            kinds=_read(data["kinds"], lambda one: Factor(*map(float, one))),
            companies=_read(data["companies"], float),
            around=[float(seconds) for seconds in data["around"]],
            starts=_read(data["starts"], float),
        )


def undisturbed(seconds: Sequence[float]) -> float:
    """Of what the same thing has taken the shortest; of five and more the one that a quarter of them is not above.

    Other work on the machine only makes it longer.
    """
    return sorted(seconds)[(len(seconds) - 1) // 4]


def _typical(factors: Sequence[Factor]) -> float:
    return _weighted_median((one.factor, one.weight) for one in factors) if factors else 1.0


def _weighted_median(values: Iterable[tuple[float, float]]) -> float:
    """The smallest value that has half of all weight at or below it. Args: values: with their weights."""
    ranked = sorted(values)
    half = sum(weight for _, weight in ranked) / 2
    below = accumulate(weight for _, weight in ranked)
    return next(value for (value, _), weight in zip(ranked, below, strict=True) if weight >= half)


def _read(data: Mapping[str, Any], read: Callable[[Any], T]) -> dict[str, list[T]]:
    found = {str(key): [read(value) for value in values] for key, values in data.items()}
    if not all(found.values()):
        raise ValueError("a list is empty")
    return found


def _pair(data: Any) -> tuple[float, float]:
    first, second = data
    return float(first), float(second)


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, _DIGITS) for value in values]


def _add(known: dict[str, list[T]], key: str, value: T, *, most: int = REMEMBERED) -> None:
    """Adds to what is remembered of the last sessions, and puts it last."""
    known[key] = [*known.pop(key, []), value][-most:]


def _factor(seconds: float, computed_s: float) -> float:
    return min(LARGEST_FACTOR, max(SMALLEST_FACTOR, seconds / computed_s))


def _forget_oldest(known: dict[str, Any], most: int) -> None:
    for key in list(known)[: max(0, len(known) - most)]:
        del known[key]
