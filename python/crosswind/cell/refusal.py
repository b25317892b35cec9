"""What crosswind-cell refuses, in the words of whoever wrote the study: place, key, value, levels.

crosswind-cell blames a key of the cell, as `workload.size_bytes` or `path.forward.delay_ns`. The study may have set it
as `path.delay`, for both directions, or by a network with a name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.catalog import Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.errors import StudyError
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.keys import FLOW, names_of
from crosswind.study.parts import Part
from crosswind.study.resolve import changes_of, hops_of, network_behind, resolve

_DOTTED = re.compile(
    r"\b(path(?:\.(?:hops|changes)\.[0-9]+)?(?:\.forward|\.reverse)?|flows\.[0-9]+(?:\.workload)?|host|workload|budget)"
    r"\.([a-z0-9_]+)\b"
)
_LISTED = re.compile(r"^(?:path\.)?(hops|changes|flows)\.([0-9]+)")
_NAME = re.compile(r"\b[a-z0-9]+(_[a-z0-9]+)+\b")


@dataclass(frozen=True)
class Refusal:
    """Why crosswind-cell refuses a cell. `key`: the dotted key of the cell that is to blame; None when none is."""

    key: str | None
    message: str
    hint: str | None


def refusal_error(study: Study, cells: Sequence[Cell], refusals: Mapping[int, Refusal]) -> StudyError:
    """The error to raise for the first cell that is refused.

    Args: cells: all of the study's. refusals: by the index of the cell; not empty.
    """
    cell = cells[min(refusals)]
    refusal = refusals[cell.index]
    source = None if refusal.key is None else _source_of(refusal.key, cell)
    message = _in_words_of_the_study(refusal.message, cell)
    if source is not None:
        message = _with_value(message, source, cell, study)
    alike = [index for index, other in refusals.items() if (other.key, other.message) == (refusal.key, refusal.message)]
    levels = [f"{key} = {cell.levels[key]}" for key in _deciding_factors(cell, cells, alike) if key != source]
    if levels:
        message += f", where {' and '.join(levels)}"
    if len(cells) > 1:
        message += f" ({len(alike)} of {len(cells)} cells)"
    hint = None if refusal.hint is None else _in_words_of_the_study(refusal.hint, cell)
    part = next(part for part in study.parts if part.name == cell.part)
    location = () if source is None else _location(part, source)
    is_set = source is None or source in part.locations or source.removeprefix("budget.") in study.budget
    if source is not None and not is_set:
        hint = "; ".join(filter(None, [hint, _how_to_set(source, study)]))
    return study.origin.error(study.document, location, message, hint)


def _how_to_set(source: str, study: Study) -> str:
    """How a key is set that nobody has set."""
    if source in study.origin.flags:
        return f"{study.origin.flags[source]} sets it"
    table, _, key = source.rpartition(".")
    return f"{key} under [{table}] sets it"


def _location(part: Part, source: str) -> tuple[str | int, ...]:
    if source.startswith("budget."):
        return tuple(source.split("."))
    return part.location_of(source)


def _source_of(dotted: str, cell: Cell) -> str | None:
    """The key of the study that set a key of the cell, or that would: `path.delay` of `path.forward.delay_ns`."""
    group, _, name = _LISTED.sub(lambda match: _owner(match, cell), dotted).rpartition(".")
    if dotted == "workload.kind":
        return dotted
    key = _keys_of(group, cell).get(name)
    if key is None:
        return None
    if (network := network_behind(group, cell.settings)) is not None:
        return network
    given = (setting.source for setting in resolve(cell.settings).get(group, ()) if setting.key.name == name)
    section = group.rpartition(".")[0] if _is_direction(group) or _is_of_flow(group) else group
    return next(given, f"{section}.{key.study}")


def _owner(match: re.Match[str], cell: Cell) -> str:
    """The study's name of a hop, a change or a flow of the cell: `path.hop.wifi` of `path.hops.0`."""
    if match[1] == "flows":
        owners = [f"{FLOW}.{name}" for name in names_of(FLOW, cell.settings)]
    else:
        owners = list(hops_of(cell.settings) if match[1] == "hops" else changes_of(cell.settings))
    number = int(match[2])
    return owners[number] if number < len(owners) else match[0]


def _is_direction(group: str) -> bool:
    return group.rpartition(".")[2] in DIRECTIONS


def _is_of_flow(group: str) -> bool:
    """Whether it is the workload of a flow."""
    return group.startswith(f"{FLOW}.") and group.endswith(".workload")


def _keys_of(group: str, cell: Cell) -> dict[str, Key]:
    """The keys of one group of a cell, by the cell's names."""
    known = catalog()
    if _is_direction(group):
        keys = known.direction_keys
    elif group in changes_of(cell.settings):
        keys = known.changes.keys
    elif _is_of_flow(group):
        keys = known.workloads[str(cell.settings[f"{group.removesuffix('.workload')}.kind"].value)].keys
    elif group.startswith(f"{FLOW}."):
        keys = known.flows.keys
    elif group == "workload":
        keys = known.workloads[cell.kind].keys
    else:
        keys = {"path": known.path.keys, "host": known.host.keys, "budget": known.budget.keys}.get(group, ())
    return {key.name: key for key in keys}


def _in_words_of_the_study(text: str, cell: Cell) -> str:
    """A text with the cell's keys replaced by the study's."""
    text = _DOTTED.sub(lambda match: _source_of(match[0], cell) or match[0], text)
    groups = ["path", f"path.{DIRECTIONS[0]}", "host", "workload", "budget"]
    for name in names_of(FLOW, cell.settings):
        groups += [f"{FLOW}.{name}", f"{FLOW}.{name}.workload"]
    names = {name: key.study for group in groups for name, key in _keys_of(group, cell).items()}
    return _NAME.sub(lambda match: names.get(match[0], match[0]), text)


def _with_value(message: str, source: str, cell: Cell, study: Study) -> str:
    """A message that begins with the study's key, and has the value that was written for it."""
    level = cell.settings.get(source) or study.budget.get(source.removeprefix("budget."))
    problem = message.removeprefix(source).strip() if message.startswith(source) else None
    if level is None:
        return message if problem is not None else f"{source}: {message}"
    if problem is None:
        return f"{source} ({level.text}): {message}"
    is_there = re.search(rf"(?<!\w){re.escape(level.text)}(?!\w)", problem) is not None
    return f"{source} {problem}" if is_there else f"{source} ({level.text}) {problem}"


def _deciding_factors(cell: Cell, cells: Sequence[Cell], refused: Sequence[int]) -> list[str]:
    """The factors of a refused cell another level of which, all else equal, makes one that is not refused alike."""
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
