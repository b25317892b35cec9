"""Two runs' common cells, and the differences between their settings.

Cells are matched by all parameters; the rest by all but the clock; and the last by their levels as
written. A cell with two candidates is matched to neither.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crosswind.analysis.cells import CellData
from crosswind.analysis.two_runs.result import Differing
from crosswind.cell.record import RunRecord

By = Literal["parameters", "parameters but the clock", "levels"]

_OF_A_REPETITION = ("schema", "id", "seed", "deadline_ns", "output", "budget")
"""Keys without influence on the measurement."""


@dataclass(frozen=True, eq=False)
class Pair:
    """A cell in either run."""

    a: CellData
    b: CellData
    by: By

    @property
    def levels(self) -> dict[str, str]:
        """From the run with more."""
        return max(self.a.levels, self.b.levels, key=len)


@dataclass(frozen=True, eq=False)
class Matching:
    """Two runs' cells: common ones, in the first run's order, and the others."""

    pairs: list[Pair]
    only_a: list[CellData]
    only_b: list[CellData]


def match_cells(a: Sequence[CellData], b: Sequence[CellData]) -> Matching:
    """Two runs' common cells."""
    left, right = list(a), list(b)
    pairs: list[Pair] = []
    keys: list[tuple[By, Callable[[CellData], Hashable]]] = [
        # Of two runs of one version the keys are in the same order, and a thousand cells take a tenth of the time.
        ("parameters", lambda cell: repr(_measured(cell))),
        ("parameters", lambda cell: _text(_measured(cell))),
        ("parameters but the clock", lambda cell: _text(_without_clock(_measured(cell)))),
        ("levels", lambda cell: tuple(sorted(cell.levels.items()))),
    ]
    for by, key in keys:
        ours, theirs = _unique(left, key), _unique(right, key)
        pairs += [Pair(cell, theirs[name], by) for name, cell in ours.items() if name in theirs]
        matched = {id(cell) for pair in pairs for cell in (pair.a, pair.b)}
        left, right = ([cell for cell in cells if id(cell) not in matched] for cells in (left, right))
    return Matching(sorted(pairs, key=lambda pair: pair.a.cell), left, right)


def differing_settings(pairs: Iterable[Pair]) -> list[Differing]:
    """Settings with a difference between common cells, each once."""
    differing: dict[tuple[str, str | None, str | None], None] = {}
    for pair in pairs:
        parameters = [_measured(cell) for cell in (pair.a, pair.b)]
        if parameters[0] == parameters[1]:
            continue
        a, b = (dict(_flat(of_cell, "")) for of_cell in parameters)
        differing |= {(key, a.get(key), b.get(key)): None for key in {**a, **b} if a.get(key) != b.get(key)}
    return [Differing(what=what, a=a, b=b) for what, a, b in differing]


def _measured(cell: CellData) -> dict[str, Any]:
    return {key: value for key, value in cell.parameters.items() if key not in _OF_A_REPETITION}


def _without_clock(parameters: Mapping[str, Any]) -> dict[str, Any]:
    host = {key: value for key, value in (parameters.get("host") or {}).items() if key != "clock"}
    return {**parameters, "host": host}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _unique(cells: Iterable[CellData], key: Callable[[CellData], Hashable]) -> dict[Hashable, CellData]:
    """Cells by a key, except shared ones."""
    by_identity: dict[Hashable, list[CellData]] = {}
    for cell in cells:
        by_identity.setdefault(key(cell), []).append(cell)
    return {name: group[0] for name, group in by_identity.items() if len(group) == 1}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Leaves in nested settings as (dotted key, text); unset ones are left out."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value)


_SECTIONS = {"versions": "version", "machine": "machine", "sysctls": "sysctl"}


def differing_surroundings(a: RunRecord, b: RunRecord) -> list[Differing]:
    """Differences in two runs' provenance. A setting recorded by only one is not compared."""
    pairs = [
        ("seed", a.provenance.get("seed"), b.provenance.get("seed")),
        ("clock", _clocks(a), _clocks(b)),
        ("kernel of the cells", _kernels(a), _kernels(b)),
        ("kernel of virtual time", _listed(a.provenance.get("kernels")), _listed(b.provenance.get("kernels"))),
    ]
    for section, word in _SECTIONS.items():
        ours, theirs = (_section(record, section) for record in (a, b))
        pairs += [(f"{word} {key}", ours[key], theirs[key]) for key in ours if key in theirs]
    return [
        Differing(what=what, a=_json_text(ours), b=_json_text(theirs)) for what, ours, theirs in pairs if ours != theirs
    ]


def clocks_of(record: RunRecord) -> list[str]:
    """A run's clocks."""
    return sorted({run.clock for run in record.cells})


def _clocks(record: RunRecord) -> str:
    return " and ".join(clocks_of(record))


def _kernels(record: RunRecord) -> str | None:
    return _listed(sorted({run.finished.versions.kernel for run in record.cells if run.finished is not None}))


def _section(record: RunRecord, name: str) -> Mapping[str, Any]:
    section = record.provenance.get(name)
    return section if isinstance(section, Mapping) else {}


def _listed(names: Sequence[str] | None) -> str | None:
    return ", ".join(names) if names else None


def _json_text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
