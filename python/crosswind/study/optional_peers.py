"""Peers that a study runs where they are installed, `study.optional_peers`: elsewhere it is run without their cells."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crosswind.peers.registry import PEERS, Obstacle
from crosswind.study.design import Study

_ENDS = ("client", "server")
_KEY = ("study", "optional_peers")


def for_this_machine(study: Study) -> tuple[Study, tuple[str, ...]]:
    """A study without the cells of its optional peers that are not installed here.

    Returns: the study, which has no optional peers any more, and what was left out, in sentences.
    Raises: StudyError.
    """
    optional = study.table.study.optional_peers
    if not optional:
        return study, ()
    used = {
        (setting.text, str(cell.workload.get("transport")))
        for cell in study.cells()
        for end in _ENDS
        if (setting := cell.settings.get(f"workload.{end}")) is not None and setting.text in optional
    }
    obstacles = ((name, PEERS[name].missing(transport)) for name, transport in sorted(used))
    return without_peers(study, {name: obstacle for name, obstacle in obstacles if obstacle is not None})


def without_peers(study: Study, missing: Mapping[str, Obstacle]) -> tuple[Study, tuple[str, ...]]:
    """A study without the cells of these peers, as `for_this_machine`. Where none would be left, all stay."""
    document = copy.deepcopy(dict(study.document))
    del document["study"]["optional_peers"]
    notes = _leave_peers_out(document, missing, [part.name for part in study.parts]) if missing else ()
    options = {**study.origin.options, _KEY: ".".join(_KEY)}
    left = Study.from_document(document, name=study.name, origin=replace(study.origin, options=options))
    return (left.with_sentences("left_out", notes) if notes else left), notes


def _leave_peers_out(
    document: dict[str, Any], missing: Mapping[str, Obstacle], running: Sequence[str]
) -> tuple[str, ...]:
    """Changes a document so that these peers are in no cell. Returns: what to say of it.

    Args: running: the names of the parts that are run.
    """
    parts = {part["name"]: part for part in document.get("part", ()) if part["name"] in running}
    without = [name for name, part in parts.items() if _needs(missing, part, document)]
    if len(without) == len(parts) and (parts or _needs(missing, document)):
        return ()
    for table in (document, *parts.values()):
        _leave_out(missing, table.get("workload", {}))
    names = {why: [name for name, other in missing.items() if other == why] for why in missing.values()}
    notes = [f"No cells with {' and '.join(of)}: {why.problem} ({why.hint})." for why, of in names.items()]
    if without:
        document["study"]["parts"] = [name for name in parts if name not in without]
        subject, verb = ("part", "is") if len(without) == 1 else ("parts", "are")
        notes.append(f"So the {subject} {' and '.join(without)} {verb} not run.")
    return tuple(notes)


def _needs(missing: Collection[str], *tables: Mapping[str, Any]) -> bool:
    """Whether no cell is left without these peers. Args: tables: a part and the study, or the study."""
    workloads = [table.get("workload", {}) for table in tables]
    for end in _ENDS:
        raw = next((workload[end] for workload in workloads if end in workload), None)
        levels = raw if isinstance(raw, list) else [raw]
        if all(isinstance(level, str) and level in missing for level in levels):
            return True
    return False


def _leave_out(missing: Collection[str], workload: dict[str, Any]) -> None:
    """Takes these peers out of the levels of a workload's ends, as long as any is left."""
    for end in _ENDS:
        if isinstance(levels := workload.get(end), list):
            left = [level for level in levels if not (isinstance(level, str) and level in missing)]
            workload[end] = left or levels
