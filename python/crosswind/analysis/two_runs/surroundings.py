"""In what two runs differ beside their settings: versions, kernels, machines, and what a machine was set to."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.analysis.two_runs.result import Differing
from crosswind.record import RunRecord

_SECTIONS = {"versions": "version", "machine": "machine", "sysctls": "sysctl"}


def differing_surroundings(a: RunRecord, b: RunRecord) -> list[Differing]:
    """What the provenance of two runs does not share. A setting that only one of them recorded is not compared."""
    pairs = [
        ("seed", a.provenance.get("seed"), b.provenance.get("seed")),
        ("clock", _clocks(a), _clocks(b)),
        ("kernel of the cells", _kernels(a), _kernels(b)),
        ("kernel of virtual time", _listed(a.provenance.get("kernels")), _listed(b.provenance.get("kernels"))),
    ]
    for section, word in _SECTIONS.items():
        ours, theirs = (_section(record, section) for record in (a, b))
        pairs += [(f"{word} {key}", ours[key], theirs[key]) for key in ours if key in theirs]
    return [Differing(what=what, a=_text(ours), b=_text(theirs)) for what, ours, theirs in pairs if ours != theirs]


def clocks_of(record: RunRecord) -> list[str]:
    """The clocks that a run's cells had."""
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


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
