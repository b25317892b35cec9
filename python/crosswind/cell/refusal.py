"""crosswind-cell's refusals at their places: the file and line or the option, the study's key and value, the levels.

crosswind-cell blames a cell's key, as `workload.size_bytes` or `path.forward.delay_ns`. The study may have set it as
`path.delay`, for both directions, or by a named network.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from crosswind.catalog import Key, KeyType, catalog
from crosswind.errors import StudyError, did_you_mean
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.keys import FLOW, names_of, table_of_key
from crosswind.study.levels import Level
from crosswind.study.number_types import range_of
from crosswind.study.parts import Part
from crosswind.study.resolve import changes_of, hops_of, network_behind, resolve
from crosswind.study.toml_text import Location
from crosswind.study.value_types import type_of


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a cell cannot run.

    Attributes:
        key: the blamed dotted key; None without one.
        problem: the mistake; for a key, a sentence about it.
        code: the kind of mistake. minimum, maximum, choices: the key's, when outside.
    """

    key: str | None
    problem: str
    hint: str | None
    code: str = "impossible"
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Blamed:
    """The study's side of a refusal.

    Attributes: source: its key. key: the cell's; None for a table. within: the part in its value, if not all.
    """

    source: str
    key: Key | None
    within: str = ""


def refusal_error(study: Study, cells: Sequence[Cell], refusals: Mapping[int, Refusal]) -> StudyError:
    """The error for the first refused cell.

    Args: cells: all checked ones. refusals: by cell index; not empty.
    """
    cell = next(cell for cell in cells if cell.index in refusals)
    refusal = refusals[cell.index]
    part = next(part for part in study.parts if part.name == cell.part)
    blamed = None if refusal.key is None else _blamed(refusal.key, cell)
    source = None if blamed is None else blamed.source
    level = None if source is None else cell.settings.get(source) or study.budget.get(source.removeprefix("budget."))
    location = () if source is None else _location(part, source)
    problem, hint = _said(refusal, None if blamed is None else blamed.key, level)
    subject = source or refusal.key
    if location[:1] == ("part",):
        subject = f"part.{part.name}.{subject}"
    message = problem if subject is None else f"{subject}{_value(level, blamed, problem)} {problem}"
    alike = [index for index, other in refusals.items() if (other.key, other.problem) == (refusal.key, refusal.problem)]
    levels = [f"{key} = {cell.levels[key]}" for key in _deciding_factors(cell, cells, alike) if key != source]
    if levels:
        message += f", where {' and '.join(levels)}"
    if len(cells) > 1:
        message += f" ({len(alike)} of {len(cells)} cells)"
    if blamed is not None and blamed.key is not None and level is None:
        hint = "; ".join(filter(None, [(hint or "").rstrip("."), _how_to_set(blamed.source, blamed.key, study)]))
    return StudyError(f"{study.origin.where(location)}: {message}", hint=hint)


def _said(refusal: Refusal, key: Key | None, level: Level | None) -> tuple[str, str | None]:
    """The mistake and a correction: a range and choices in the study's units."""
    if refusal.choices and level is not None:
        return f"is not one of {', '.join(refusal.choices)}", did_you_mean(level.text, refusal.choices)
    if key is None or not refusal.code.startswith("too_"):
        return refusal.problem, refusal.hint
    # In a series it is one number; crosswind-cell names it.
    problem = refusal.problem if key.type is KeyType.SERIES else f"is {refusal.code.replace('_', ' ')}"
    return problem, range_of(key, refusal.minimum, refusal.maximum)


def _value(level: Level | None, blamed: _Blamed | None, problem: str) -> str:
    """The value as written, if the problem does not name it, and its wrong part."""
    if level is None or blamed is None:
        return ""
    if blamed.within:
        return f" ({level.text}): {blamed.within}"
    is_there = re.search(rf"(?<!\w){re.escape(level.text)}(?!\w)", problem) is not None
    return "" if is_there else f" ({level.text})"


def _how_to_set(source: str, key: Key, study: Study) -> str:
    """How to set an unset key."""
    if source in study.origin.flags:
        return f"{study.origin.flags[source]} sets it"
    table, _, name = source.rpartition(".")
    owner = table_of_key(source)
    header = f"[{table}]" if owner is None else f"[[{owner.rpartition('.')[0]}]]"
    # The hint names transports.
    example = "" if key.type is KeyType.TRANSPORT else f" = {type_of([key]).example}"
    return f"{name}{example} under {header} sets it"


def _location(part: Part, source: str) -> Location:
    """Where a key stands, or would, or a hop, change or flow."""
    owner = table_of_key(f"{source}.") if source not in part.locations else None
    within = next((place for key, place in part.locations.items() if owner and key.startswith(f"{owner}.")), None)
    if within is not None:
        return within[: max(at for at, step in enumerate(within) if isinstance(step, int)) + 1]
    return tuple(source.split(".")) if source.startswith("budget.") else part.location_of(source)


def _blamed(dotted: str, cell: Cell) -> _Blamed | None:
    """The study's key for a cell's key, set or not: `path.delay` for `path.forward.delay_ns`."""
    if dotted == "workload.kind":
        return _Blamed(dotted, None)
    place, _, name = dotted.rpartition(".")
    owner, inner = _owner(place, cell)
    group = f"{owner}.{inner}" if inner else owner
    network = network_behind(group, cell.settings)
    given = next((setting for setting in resolve(cell.settings).get(group, ()) if setting.key.name == name), None)
    # What is said of a peer is in the value of its key, whatever other keys are called.
    of_peer = inner.rpartition(".")[2] in ("client", "server")
    key = given.key if given is not None else None if of_peer else _keys().get(name)
    if key is None and place:
        owner, inner = _owner(dotted, cell)
        named = network or (owner if not inner and "." in owner else None)
        outer = _Blamed(named, None) if named is not None else _blamed(place, cell)
        return outer and (replace(outer, within=name) if outer.key is not None else outer)
    if key is None:
        return None
    source = network or (f"{owner}.{key.study}" if given is None else given.source)
    return _Blamed(source, key, key.study if source.endswith(".network") and key.study != "network" else "")


def _owner(place: str, cell: Cell) -> tuple[str, str]:
    """The study's name for a group at a place in the cell, and the rest: `path.hop.wifi` and `forward`."""
    listed = {"path.hops": hops_of(cell.settings), "path.changes": tuple(changes_of(cell.settings))}
    listed["flows"] = tuple(f"{FLOW}.{name}" for name in names_of(FLOW, cell.settings))
    for table, owners in listed.items():
        for number, owner in enumerate(owners):
            if f"{place}.".startswith(prefix := f"{table}.{number}."):
                return owner, f"{place}.".removeprefix(prefix).rstrip(".")
    owner, _, inner = place.partition(".")
    return owner, inner


@cache
def _keys() -> Mapping[str, Key]:
    """Every key by its name in a cell: whichever group has it, it has the same name in a study."""
    known = catalog()
    groups = [*(kind.keys for kind in known.workloads.values()), known.flows.keys, known.changes.keys]
    groups += [known.budget.keys, known.host.keys, known.path.keys, known.direction.keys]
    return {key.name: key for keys in groups for key in keys}


def _deciding_factors(cell: Cell, cells: Sequence[Cell], refused: Sequence[int]) -> list[str]:
    """A refused cell's factors with another level, all else equal, not refused alike."""
    alike = set(refused)
    of_part = [other for other in cells if other.part == cell.part]
    by_levels = {tuple(other.levels.items()): other.index for other in of_part}
    levels = {key: dict.fromkeys(other.levels[key] for other in of_part) for key in cell.levels}
    return [
        key
        for key, texts in levels.items()
        if key != "part"
        and any(by_levels.get(tuple({**cell.levels, key: text}.items())) not in alike | {None} for text in texts)
    ]
