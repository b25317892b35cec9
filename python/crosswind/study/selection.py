"""Some of a study's parts: what is left of it when only those are run, `study.parts`.

What names a part that is not run, is about nothing any more and goes with it: a question, a statement, a figure.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from crosswind.errors import did_you_mean
from crosswind.peers.registry import PEERS
from crosswind.study.declared import declarations
from crosswind.study.errors import DesignError
from crosswind.study.format import DesignDocument
from crosswind.study.parts import Part
from crosswind.text.units import shown

_FINDINGS = declarations()
_ABOUT_CELLS = ("exclude", "repetitions", "precision", *_FINDINGS)


def check_peers(table: DesignDocument) -> None:
    """Refuses optional peers that do not exist. Raises: DesignError."""
    for number, name in enumerate(table.study.optional_peers):
        if name not in PEERS:
            message = f"{shown(name)} is not a peer that comes with Crosswind"
            raise DesignError(("study", "optional_peers", number), message, did_you_mean(name, PEERS))


def chosen_parts(table: DesignDocument, parts: Sequence[Part]) -> tuple[str, ...]:
    """The parts to run, in the study's order; empty where the study does not choose. Raises: DesignError."""
    known = [part.name for part in parts if part.name]
    for number, name in enumerate(table.study.parts):
        if name not in known:
            hint = did_you_mean(name, known) if known else "this study has no parts"
            raise DesignError(("study", "parts", number), f"there is no part {shown(name)}", hint)
    return tuple(name for name in known if name in table.study.parts)


def with_parts(document: Mapping[str, Any], chosen: Collection[str]) -> dict[str, Any]:
    """A study's document with these of its parts only, and with the tables that are about their cells."""
    kept = {key: value for key, value in document.items() if key not in _ABOUT_CELLS}
    kept["study"] = {key: value for key, value in document["study"].items() if key != "parts"}
    kept["part"] = [part for part in document["part"] if part["name"] in chosen]
    for key in _ABOUT_CELLS:
        tables = [_narrowed(key, part, chosen) for table in document.get(key, ()) for part in _split(key, table)]
        kept |= {key: left} if (left := [table for table in tables if table is not None]) else {}
    return kept


def _split(kind: str, table: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return _FINDINGS[kind].split(table) if kind in _FINDINGS else (table,)


def _narrowed(kind: str, table: Mapping[str, Any], chosen: Collection[str]) -> Mapping[str, Any] | None:
    """A table without the parts that are not run; None where nothing is left that it could be about."""
    where = {**table.get("where", {}), **table.get("levels", {})}
    if where.get("part", next(iter(chosen))) not in chosen:
        return None
    if kind not in _FINDINGS or "part" not in [table.get(axis) for axis in _FINDINGS[kind].axes]:
        return table
    return _FINDINGS[kind].with_levels(table, "part", chosen) if len(chosen) > 1 else None
