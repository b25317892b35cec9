"""The parts of a study: which keys each sets, where they were written, and what no part can say.

A part's tables are laid over the study's. Refused here is what the catalogue rules out for a kind of workload, and a
key that would have no effect in any cell; what depends on several values is for crosswind-cell to judge.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crosswind.catalog import Key, KeyType, catalog
from crosswind.effect import DIRECTIONS
from crosswind.study.errors import CellError
from crosswind.study.format import DesignDocument, PartTable, set_keys
from crosswind.study.keys import KINDS, default_transport, direction_keys, workload_keys
from crosswind.study.levels import Values
from crosswind.study.network_use import network_uses
from crosswind.study.resolve import sources_of
from crosswind.study.toml_text import Location
from crosswind.study.value_types import type_of
from crosswind.units import UnitError

MAX_CELLS = 100_000


@dataclass(frozen=True)
class Part:
    """One part of a study: its settings, and where each was written."""

    name: str
    place: Location
    settings: Mapping[str, Values]
    locations: Mapping[str, Location]

    @property
    def kind(self) -> str:
        """The kind of its workload."""
        return str(self.settings["workload.kind"].levels[0].value)

    @property
    def workloads(self) -> list[dict[str, object]]:
        """Its kind of workload, once for each direction in which messages go, where it sets any."""
        directions = self.settings.get("workload.direction")
        levels = [None] if directions is None else [level.value for level in directions.levels]
        return [{"kind": self.kind, "direction": direction} for direction in levels]

    @property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """Dotted key to the texts of its levels, for the keys written as lists."""
        return {key: tuple(level.text for level in v.levels) for key, v in self.settings.items() if v.is_factor}

    def location_of(self, key: str) -> Location:
        """Where a dotted key was written; where it would stand, if it was not."""
        return self.locations.get(key, (*self.place, *key.split(".")))

    def __len__(self) -> int:
        return math.prod(len(values.levels) for values in self.settings.values())


def parts_of(document: DesignDocument) -> tuple[Part, ...]:
    """The parts of a study, one named "" when the file has none. Raises: CellError."""
    base = _settings_of(document)
    tables: list[tuple[PartTable | None, Location]] = [(None, ())]
    if document.part:
        tables = [(table, ("part", number)) for number, table in enumerate(document.part)]
    parts: list[Part] = []
    for table, place in tables:
        part = _part(base, table, place)
        if part.name in {other.name for other in parts}:
            raise CellError((*place, "name"), f'two parts are named "{part.name}"', "give each part a name of its own")
        parts.append(part)
    count = sum(map(len, parts))
    if count > MAX_CELLS:
        raise CellError((), f"the study has {count:,} cells", f"at most {MAX_CELLS:,}; take fewer levels or factors")
    return tuple(parts)


def _part(base: Mapping[str, Values], table: PartTable | None, place: Location) -> Part:
    overridden = base if table is None else _settings_of(table)
    settings = overridden if table is None else {**_without_overridden(base, overridden), **overridden}
    kind = settings.get("workload.kind")
    if kind is None:
        raise CellError(
            (*place, "workload", "kind"),
            "no workload.kind is set",
            f'write kind = "echo" (or {", ".join(list(catalog().workloads)[1:])}) under [workload]',
        )
    takes = workload_keys(kind.levels[0].text).keys() | {"kind"}
    fits = {key: v for key, v in settings.items() if not key.startswith("workload.") or key[9:] in takes}
    for key in overridden.keys() - fits.keys():
        hint = f"{kind.levels[0].text} takes {', '.join(sorted(takes - {'kind'}))}"
        message = f"workload {kind.levels[0].text} does not take {key[9:]}"
        raise CellError((*place, *key.split(".")), message, hint)
    ordered = {key: _of_kind(key, fits[key], kind.levels[0].text) for key in KINDS if key in fits}
    where = {key: (*place, *key.split(".")) if key in overridden else tuple(key.split(".")) for key in ordered}
    part = Part("" if table is None else table.name, place, ordered, where)
    _refuse_wrong_values(part)
    _refuse_missing_keys(part)
    _refuse_idle_keys(part)
    _refuse_idle_network(part)
    return part


def _of_kind(key: str, values: Values, kind: str) -> Values:
    """What a key is set to, where one kind of workload means something else by the same text than another."""
    if not KINDS[key].is_peer:
        return values
    try:
        return type_of([workload_keys(kind)[key.removeprefix("workload.")]]).values(values.raw)
    except UnitError:
        return values  # Refused with its place where all values are.


def _settings_of(tables: DesignDocument | PartTable) -> dict[str, Values]:
    return set_keys(tables.path, "path.") | set_keys(tables.host, "host.") | set_keys(tables.workload, "workload.")


def _without_overridden(base: Mapping[str, Values], own: Mapping[str, Values]) -> dict[str, Values]:
    """The base without what `own` replaces: `path.loss` means both directions, whatever the base sets for each."""
    names = [name for name in direction_keys() if f"path.{name}" in own]
    replaced = {f"path.{direction}.{name}" for direction in DIRECTIONS for name in names}
    return {key: values for key, values in base.items() if key not in replaced}


def _refuse_wrong_values(part: Part) -> None:
    """Refuses values that other kinds of workload take, and this one does not."""
    for name, key in workload_keys(part.kind).items():
        dotted = f"workload.{name}"
        values = part.settings.get(dotted, Values())
        try:
            if values and KINDS[dotted].is_peer:
                type_of([key]).values(values.raw)
            else:
                for level in values.levels:
                    type_of([key]).level(level.raw)
        except UnitError as error:
            raise CellError(part.locations[dotted], error.message, error.hint) from None
    able = catalog().workloads[part.kind].transports
    named = part.settings.get("workload.transport", Values()).levels
    usual = default_transport(part.kind)
    transports = [level.text for level in named] or ([] if usual is None else [usual])
    for transport in transports:
        if transport not in able:
            place = "workload.transport" if named else "workload.kind"
            message = f"workload {part.kind} does not run over {transport}"
            raise CellError(part.locations[place], message, f"transports that it runs over: {', '.join(able)}")


def _refuse_missing_keys(part: Part) -> None:
    for name, key in workload_keys(part.kind).items():
        if key.required and key.default is None and f"workload.{name}" not in part.settings:
            able = catalog().workloads[part.kind].transports
            is_transport = key.type is KeyType.TRANSPORT
            hint = f"write {name} = {type_of([key]).example}" if not is_transport else f"one of {', '.join(able)}"
            raise CellError(part.locations["workload.kind"], f"workload {part.kind}: no {name} is set", hint)


def _refuse_idle_keys(part: Part) -> None:
    """Refuses keys that have no effect in any cell of a part."""
    for name, key in workload_keys(part.kind).items():
        _refuse_idle_key(part, f"workload.{name}", key, workload_keys(part.kind), ("workload",))
    for name, key in direction_keys().items():
        both = tuple(f"path.{direction}" for direction in DIRECTIONS)
        for dotted, groups in ((f"path.{name}", both), *((f"{group}.{name}", (group,)) for group in both)):
            _refuse_idle_key(part, dotted, key, direction_keys(), groups)
        if all(f"{group}.{name}" in part.settings for group in ("path", *both)):
            raise CellError(
                part.locations[f"path.{name}"],
                f"path.{name} has no effect: forward and reverse both set their own",
                f"remove path.{name} or one of the two",
            )


def _refuse_idle_network(part: Part) -> None:
    """Refuses a network of which nothing is left."""
    for use in network_uses(part.settings):
        if not use.applied:
            message = f"path.network changes nothing: {', '.join(use.own)} are set beside {use.name}"
            raise CellError(part.locations["path.network"], message, "give only one of them, or the network")


def _refuse_idle_key(part: Part, dotted: str, key: Key, keys: Mapping[str, Key], groups: tuple[str, ...]) -> None:
    """Refuses a key that has an effect only beside a value of another, where that other never has this value."""
    condition = key.only_with
    if condition is None or dotted not in part.settings:
        return
    other = next(key for key in keys.values() if key.name == condition.key)
    sources = [source for group in groups for source in sources_of(group, other.study)]
    levels = [level for source in sources for level in part.settings.get(source, Values()).levels]
    if condition.value is None:
        idle = not levels
        message, hint = f"no {other.study} is set", f"add {other.study} = {type_of([other]).example}"
    else:
        values = [level.value for level in levels] if levels else [other.default]
        idle = condition.value not in values
        message, hint = f"{other.study} is not {condition.value}", f'add {other.study} = "{condition.value}"'
    if idle:
        raise CellError(part.locations[dotted], f"{dotted} has no effect: {message}", hint)
