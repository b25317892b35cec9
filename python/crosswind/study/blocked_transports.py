"""A study without the transports that nothing gets through with: no cell of theirs is run."""

import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.keys import default_transport
from crosswind.study.selection import with_parts

_LABEL = "transports that are blocked"


def without_transports(study: Study, blocked: Mapping[str, str]) -> tuple[Study, tuple[str, ...]]:
    """A study without the cells of some transports.

    Args:    blocked: why, for each of them, as a clause: "UDP 9471 gets no answer".
    Returns: the study, and what was left out, in sentences.
    Raises:  StudyError when nothing is left.
    """
    used = {str(cell.workload.get("transport")) for cell in study.cells()}
    reasons = {name: why for name, why in blocked.items() if name in used}
    if not reasons:
        return study, ()
    document = copy.deepcopy(dict(study.document))
    parts = {part["name"]: part for part in document.get("part", ())}
    running = [part.name for part in study.parts] if parts else []
    kept = [name for name in running if _levels(parts[name], document) - reasons.keys()]
    if not (kept if parts else _levels({}, document) - reasons.keys()):
        listed = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        hint = "`crosswind serve` says which ports have to be open; `crosswind reach HOST` tries every transport"
        raise StudyError(f"{study.name}: none of its transports reaches the server ({listed})", hint=hint)
    for table in (document, *(parts[name] for name in kept)):
        _take(reasons, table.get("workload", {}))
    notes = [f"No cells over {name}, which is blocked: {why}." for name, why in reasons.items()]
    if len(kept) < len(running):
        unable = [name for name in running if name not in kept]
        document = with_parts({**document, "study": document.get("study", {})}, kept)
        notes.append(f"So the part{'s' if len(unable) > 1 else ''} {', '.join(unable)} cannot be run.")
    # Tables that are about what is left out are no mistakes of whoever wrote the study.
    origin = replace(study.origin, options={**study.origin.options, ("exclude",): _LABEL})
    left = Study.from_document(document, name=study.name, origin=origin)
    return left.with_sentences("left_out", notes), tuple(notes)


def _levels(part: Mapping[str, Any], document: Mapping[str, Any]) -> set[str]:
    """The transports of a part, or of a study without parts."""
    workload = {**document.get("workload", {}), **part.get("workload", {})}
    raw = workload.get("transport", default_transport(str(workload["kind"])))
    return {str(level) for level in raw} if isinstance(raw, list) else {str(raw)}


def _take(reasons: Collection[str], workload: dict[str, Any]) -> None:
    """Takes transports out of the levels of a workload, as long as any is left: a part may have its own."""
    if isinstance(levels := workload.get("transport"), list):
        workload["transport"] = [level for level in levels if level not in reasons] or levels
