"""What runs on this machine really took, and forecasts corrected by it.

Learned from every run is how long it took, which is what the same plan will take again; how long each cell took; for
cells that were never run here, by which factor cells of their kind took longer than their parameters say; how much
longer a session takes than its cells: the start, and what running them side by side does not save; and what a command
takes around its session, with the report.

Without anything learned every forecast stays as it was computed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from crosswind.ends import peers_of

SCHEMA = "crosswind.durations/1"

MOST_CELLS = 10_000
MOST_SESSIONS = 30
MOST_PLANS = 500
REMEMBERED = 20
"""A cell's mean is that of about its last so many repetitions, so that another machine load is learned soon."""
REMEMBERED_PLANS = 3
"""The same of a whole plan."""
FORGETTING = 0.9
"""By how much what a kind of cell took counts less after each further session with such cells."""
SMALLEST_FACTOR, LARGEST_FACTOR = 0.05, 50.0
_OF_ONE_RUN = ("schema", "id", "seed", "output", "deadline_ns")


@dataclass(frozen=True)
class CellTime:
    """One run of a cell: which cell, of which kind, and what it takes in seconds of the machine's time.

    Attributes: key, kind: as `key_of` and `kind_of` give them. predicted_s: computed from its parameters.
    """

    key: str
    kind: str
    predicted_s: float

    @property
    def clock(self) -> str:
        """`real` or `virtual`."""
        return self.kind.partition(" ")[0]


def key_of(parameters: Mapping[str, Any]) -> str:
    """What tells a cell from every other, whatever its study, repetition and seed."""
    kept = {name: value for name, value in parameters.items() if name not in _OF_ONE_RUN}
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kind_of(parameters: Mapping[str, Any]) -> str:
    """The kind of a cell: its clock, workload, transport and whether its path loses packets: "real echo tcp loss".

    And the names of its peers, if it has any: "real echo tcp loss chromium node".
    """
    workload, path = parameters.get("workload", {}), parameters.get("path", {})
    clock = "virtual" if parameters.get("host", {}).get("clock") == "virtual" else "real"
    lossy = any((path.get(way) or {}).get("loss") for way in ("forward", "reverse"))
    peers = "".join(f" {name}" for name in peers_of(parameters).values())
    return f"{clock} {workload.get('kind')} {workload.get('transport') or '-'} {'loss' if lossy else 'clean'}{peers}"


def plan_key(cells: Iterable[str]) -> str:
    """What tells a plan from others: which cells it runs and how often. Args: cells: the key of each of its runs."""
    return hashlib.sha256(" ".join(sorted(cells)).encode()).hexdigest()[:16]


@dataclass
class _Ratio:
    """How long some runs took in all, and what was predicted of them."""

    measured_s: float = 0.0
    predicted_s: float = 0.0

    @property
    def factor(self) -> float | None:
        """Measured by predicted; None where nothing was predicted."""
        if self.predicted_s <= 0:
            return None
        return min(LARGEST_FACTOR, max(SMALLEST_FACTOR, self.measured_s / self.predicted_s))


@dataclass
class Durations:
    """What was learned.

    Attributes:
        runs: sessions in all. cells: of each cell's key, how many repetitions count and their mean in seconds.
        kinds: of each kind of cell. sessions: by clock, of the latest ones [what their cells take side by side, by how
            long these really took; what the session took], in seconds. around: of the latest commands, the seconds
            before and after their sessions. plans: of each plan's key, how many sessions that ran all of it count, and
            their mean in seconds. around_plans: the same of what their commands took around the sessions.
    """

    runs: int = 0
    cells: dict[str, tuple[int, float]] = field(default_factory=dict)
    kinds: dict[str, _Ratio] = field(default_factory=dict)
    sessions: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    around: list[float] = field(default_factory=list)
    plans: dict[str, tuple[int, float]] = field(default_factory=dict)
    around_plans: dict[str, tuple[int, float]] = field(default_factory=dict)

    def around_s(self, key: str) -> float:
        """What a command takes around its session, with the report, in seconds; 0 where nothing was learned.

        Args: key: of its plan.
        """
        if key in self.around_plans:
            return self.around_plans[key][1]
        return median(self.around) if self.around else 0.0

    def cell_s(self, cell: CellTime) -> tuple[float, bool]:
        """What a run of a cell will take in seconds, and whether this very cell was measured."""
        if cell.key in self.cells:
            return self.cells[cell.key][1], True
        factor = self._of_kind(cell.kind) or self._of_clock(cell.clock) or 1.0
        return cell.predicted_s * factor, False

    def plan_s(self, key: str) -> float | None:
        """What a plan will take in seconds that was run here before; None for another one."""
        return self.plans[key][1] if key in self.plans else None

    def session_s(self, clock: str, cells_s: float) -> float:
        """What a session will take in seconds whose cells take so long side by side."""
        sessions = self.sessions.get(clock)
        if not sessions or cells_s <= 0:
            return cells_s
        # The start shows best where there is little else; what is left is in proportion to the cells.
        start_s = max(0.0, min(wall - cells for cells, wall in sessions))
        stretch = median((wall - start_s) / cells for cells, wall in sessions)
        return start_s + max(SMALLEST_FACTOR, stretch) * cells_s

    def learn_cells(self, taken: Sequence[tuple[CellTime, float]]) -> None:
        """Learns from the runs of one session: each cell, and the seconds that it took."""
        if not taken:
            return
        self.runs += 1
        for kind in {cell.kind for cell, _ in taken}:
            earlier = self.kinds.get(kind, _Ratio())
            self.kinds[kind] = _Ratio(earlier.measured_s * FORGETTING, earlier.predicted_s * FORGETTING)
        for cell, measured_s in taken:
            _add(self.cells, cell.key, measured_s, REMEMBERED)
            self.kinds[cell.kind].measured_s += measured_s
            self.kinds[cell.kind].predicted_s += cell.predicted_s
        _forget_oldest(self.cells, MOST_CELLS)

    def learn_plan(self, key: str, wall_s: float) -> None:
        """Learns what a session took that ran all of a plan, in seconds."""
        _add(self.plans, key, wall_s, REMEMBERED_PLANS)
        _forget_oldest(self.plans, MOST_PLANS)

    def learn_session(self, clock: str, cells_s: float, wall_s: float) -> None:
        """Learns how much longer a session took than its cells. All times in seconds."""
        if cells_s > 0:
            self.sessions[clock] = [*self.sessions.get(clock, ()), (cells_s, wall_s)][-MOST_SESSIONS:]

    def learn_around(self, key: str, seconds: float) -> None:
        """Learns what a command took before and after its session. Args: key: of its plan."""
        self.around = [*self.around, seconds][-MOST_SESSIONS:]
        _add(self.around_plans, key, seconds, REMEMBERED_PLANS)
        _forget_oldest(self.around_plans, MOST_PLANS)

    def _of_kind(self, kind: str) -> float | None:
        return self.kinds[kind].factor if kind in self.kinds else None

    def _of_clock(self, clock: str) -> float | None:
        ratios = [ratio for kind, ratio in self.kinds.items() if kind.partition(" ")[0] == clock]
        return _Ratio(sum(one.measured_s for one in ratios), sum(one.predicted_s for one in ratios)).factor

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "schema": SCHEMA,
            "runs": self.runs,
            "around": self.around,
            "sessions": {clock: [list(one) for one in sessions] for clock, sessions in self.sessions.items()},
            "kinds": {kind: [ratio.measured_s, ratio.predicted_s] for kind, ratio in self.kinds.items()},
            "plans": {key: list(plan) for key, plan in self.plans.items()},
            "around_plans": {key: list(plan) for key, plan in self.around_plans.items()},
            "cells": {key: list(cell) for key, cell in self.cells.items()},
        }

    @classmethod
    def from_json(cls, data: object) -> Self:
        """What was stored. Raises: KeyError, TypeError, ValueError, AttributeError when it is something else."""
        if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
            raise ValueError(f"it is not of schema {SCHEMA}")
        return cls(
            runs=int(data["runs"]),
            plans=_means(data["plans"]),
            around_plans=_means(data["around_plans"]),
            cells=_means(data["cells"]),
            kinds={str(kind): _Ratio(float(took), float(said)) for kind, (took, said) in data["kinds"].items()},
            around=[float(seconds) for seconds in data["around"]],
            sessions={
                str(clock): [(float(cells), float(wall)) for cells, wall in sessions]
                for clock, sessions in data["sessions"].items()
            },
        )


def _means(data: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    return {str(key): (int(count), float(mean)) for key, (count, mean) in data.items()}


def _add(known: dict[str, tuple[int, float]], key: str, seconds: float, most: int) -> None:
    """Adds to a mean over about the last so many, and puts it last."""
    count, mean_s = known.pop(key, (0, 0.0))
    count = min(count + 1, most)
    known[key] = (count, mean_s + (seconds - mean_s) / count)


def _forget_oldest(known: dict[str, tuple[int, float]], most: int) -> None:
    for key in list(known)[: max(0, len(known) - most)]:
        del known[key]
