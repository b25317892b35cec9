"""A study's parts: their keys, with places, and impossible settings.

A part's tables override the study's. Keys absent from every cell are refused: for other workload kinds, or without any
effect. crosswind-cell checks cells.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.catalog import Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.errors import DesignError
from crosswind.study.format import DesignDocument, PartTable, set_keys
from crosswind.study.keys import (
    CHANGE,
    FLOW,
    HOP,
    KIND_OF_TABLE,
    SETTINGS,
    WORKLOAD_KINDS,
    in_order,
    names_of,
    table_of_key,
)
from crosswind.study.levels import Values
from crosswind.study.network_use import network_uses
from crosswind.study.resolve import hops_of, network_named, networks_of_path, sources_of
from crosswind.study.toml_text import Location
from crosswind.study.value_types import type_of
from crosswind.text.units import UnitError

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
        """Its workload's kind, once per set message direction."""
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
    """The parts of a study, one named "" when the file has none. Raises: DesignError."""
    base = _settings_of(document, ())
    tables: list[tuple[PartTable | None, Location]] = [(None, ())]
    if document.part:
        tables = [(table, ("part", number)) for number, table in enumerate(document.part)]
    parts: list[Part] = []
    for table, place in tables:
        part = _part(document, base, table, place)
        if part.name in {other.name for other in parts}:
            raise DesignError(
                (*place, "name"), f'two parts are named "{part.name}"', "give each part a name of its own"
            )
        parts.append(part)
    count = sum(map(len, parts))
    if count > MAX_CELLS:
        raise DesignError((), f"the study has {count:,} cells", f"at most {MAX_CELLS:,}; take fewer levels or factors")
    return tuple(parts)


def _part(document: DesignDocument, base: Mapping[str, Values], table: PartTable | None, place: Location) -> Part:
    overridden = base if table is None else _settings_of(table, place)
    settings = overridden if table is None else {**_without_overridden(base, overridden), **overridden}
    kind = settings.get("workload.kind")
    if kind is None:
        raise DesignError(
            (*place, "workload", "kind"),
            "no workload.kind is set",
            f'write kind = "echo" (or {", ".join(WORKLOAD_KINDS[1:])}) under [workload]',
        )
    takes = catalog().workloads[kind.levels[0].text].by_study.keys() | {"kind"}
    fits = {key: v for key, v in settings.items() if not key.startswith("workload.") or key[9:] in takes}
    for key in overridden.keys() - fits.keys():
        hint = f"{kind.levels[0].text} takes {', '.join(sorted(takes - {'kind'}))}"
        message = f"workload {kind.levels[0].text} does not take {key[9:]}"
        raise DesignError((*place, *key.split(".")), message, hint)
    source = table or document
    where = {
        key: _location(key, source, place) if key in overridden else _location(key, document, ())
        for key in in_order(fits)
    }
    ordered = {key: _of_kind(key, fits, location) for key, location in where.items()}
    part = Part("" if table is None else table.name, place, ordered, where)
    _check_flows(part)
    _refuse_idle_keys(part)
    _refuse_idle_network(part)
    return part


def _of_kind(key: str, settings: Mapping[str, Values], place: Location) -> Values:
    """A key's values, where its text depends on the workload's kind."""
    values, owner = settings[key], table_of_key(key) or "workload"
    kind = settings.get(f"{owner}.kind")
    taken = (
        None if kind is None else catalog().workloads[kind.levels[0].text].by_study.get(key.removeprefix(f"{owner}."))
    )
    if taken is None or not SETTINGS[key].type.is_peer:
        return values
    try:
        return type_of([taken]).values(values.raw)
    except UnitError as error:
        raise DesignError(place, error.message, error.hint) from None


def _location(key: str, tables: DesignDocument | PartTable, place: Location) -> Location:
    """A set key's place."""
    owner = table_of_key(key)
    if owner is None:
        return (*place, *key.split("."))
    table, _, name = owner.rpartition(".")
    number = _names_in(tables, table).index(name)
    return (*place, *table.split("."), number, *key.removeprefix(f"{owner}.").split("."))


def _names_in(tables: DesignDocument | PartTable, table: str) -> list[str]:
    """Names of these tables' hops, changes or flows. Args: table: `HOP`, `CHANGE` or `FLOW`."""
    named = tables.flow if table == FLOW else getattr(tables.path, table.rpartition(".")[2])
    return [each.name or str(number) for number, each in enumerate(named, start=1)]


def _settings_of(tables: DesignDocument | PartTable, place: Location) -> dict[str, Values]:
    for table, kind in KIND_OF_TABLE.items():
        names = _names_in(tables, table)
        for number, name in enumerate(names):
            if name in names[:number]:
                where = (*place, *table.split("."), number, "name")
                raise DesignError(where, f'two {kind}s are named "{name}"', "give each a name of its own")
    settings = set_keys(tables.path, "path.") | set_keys(tables.host, "host.") | set_keys(tables.workload, "workload.")
    for name, flow in zip(_names_in(tables, FLOW), tables.flow, strict=True):
        settings |= set_keys(flow, f"{FLOW}.{name}.")
    return settings


def _without_overridden(base: Mapping[str, Values], own: Mapping[str, Values]) -> dict[str, Values]:
    """The base without keys replaced by `own`: `path.loss` means both directions."""
    owners = {table_of_key(key) or "path" for key in own if key.startswith("path.")}
    names = [(owner, name) for owner in owners for name in catalog().direction.by_study if f"{owner}.{name}" in own]
    replaced = {f"{owner}.{direction}.{name}" for direction in DIRECTIONS for owner, name in names}
    return {key: values for key, values in base.items() if key not in replaced}


def _check_flows(part: Part) -> None:
    """Refuses impossible flows. Their amounts are optional."""
    of_flow = {key.study for key in catalog().flows.keys}
    for flow in (f"{FLOW}.{name}" for name in names_of(FLOW, part.settings)):
        kind = part.settings.get(f"{flow}.kind")
        if kind is None:
            hint = f'write kind = "transfer" (or {", ".join(WORKLOAD_KINDS)}) in the [[flow]]'
            raise DesignError(part.location_of(f"{flow}.kind"), f"the flow {flow.rpartition('.')[2]} has no kind", hint)
        keys = catalog().workloads[kind.levels[0].text].by_study
        takes = keys.keys() | of_flow | {"kind"}
        for key in part.settings:
            if table_of_key(key) == flow and key.removeprefix(f"{flow}.") not in takes:
                message = f"a flow of the workload {kind.levels[0].text} does not take {key.rpartition('.')[2]}"
                raise DesignError(part.locations[key], message, f"it takes {', '.join(sorted(takes - {'kind'}))}")


def _refuse_idle_keys(part: Part) -> None:
    """Refuses keys without effect in any cell."""
    for name, key in catalog().workloads[part.kind].by_study.items():
        _refuse_idle_key(part, f"workload.{name}", key, catalog().workloads[part.kind].by_study, ("workload",))
    changes = [f"{CHANGE}.{name}" for name in names_of(CHANGE, part.settings)]
    for change in changes:
        keys = catalog().changes.by_study
        for name, key in keys.items():
            _refuse_idle_key(part, f"{change}.{name}", key, keys, (change,))
    hops = hops_of(part.settings)
    _refuse_unclear_hops(part, hops)
    for owner in (*hops, *changes):
        for name, key in catalog().direction.by_study.items():
            both = tuple(f"{owner}.{direction}" for direction in DIRECTIONS)
            for dotted, groups in ((f"{owner}.{name}", both), *((f"{group}.{name}", (group,)) for group in both)):
                if owner in hops:
                    _refuse_idle_key(part, dotted, key, catalog().direction.by_study, groups)
            if all(f"{group}.{name}" in part.settings for group in (owner, *both)):
                raise DesignError(
                    part.locations[f"{owner}.{name}"],
                    f"{owner}.{name} has no effect: forward and reverse both set their own",
                    f"remove {owner}.{name} or one of the two",
                )


def _refuse_unclear_hops(part: Part, hops: Sequence[str]) -> None:
    """Refuses keys unclear about their hop, and unknown hops."""
    written = names_of(HOP, part.settings)
    for name in written:
        key = f"{HOP}.{name}.network"
        for network in [network_named(level.value) for level in part.settings.get(key, Values()).levels]:
            if network.hop_names:
                message = f"{network.name} has several hops, and cannot be one"
                raise DesignError(part.locations[key], message, f'write path.network = "{network.name}" without hops')
    networks = [network for network in networks_of_path(part.settings) if network.hop_names]
    if networks:
        _refuse_foreign_hops(part, written)
    elif hops == ("path",):
        return
    for owner in ("path", *(f"path.{direction}" for direction in DIRECTIONS)):
        for name in ([] if networks else ["network"]) + list(catalog().direction.by_study):
            key = f"{owner}.{name}"
            if key not in part.settings or (networks and all(network.hop_that_sets(name) for network in networks)):
                continue
            hint = f"write it in one of the hops: {', '.join(hop.removeprefix(f'{HOP}.') for hop in hops)}"
            of = ""
            if networks:
                network = next(candidate for candidate in networks if candidate.hop_that_sets(name) is None)
                of = f" of {network.name}"
                hint = "write " + " or ".join(f"path.hop.{hop}.{key[5:]}" for hop in network.hop_names)
            raise DesignError(part.locations[key], f"{key} does not say which hop{of} it is of", hint)


def _refuse_foreign_hops(part: Part, written: Sequence[str]) -> None:
    """Refuses hops beside networks with others."""
    for network in networks_of_path(part.settings):
        for name in written:
            if name not in network.hop_names:
                key = next(key for key in part.settings if table_of_key(key) == f"{HOP}.{name}")
                hint = f"its hops: {', '.join(network.hop_names)}" if network.hop_names else "leave its hop out"
                raise DesignError(part.locations[key], f"the network {network.name} has no hop {name}", hint)


def _refuse_idle_network(part: Part) -> None:
    """Refuses a network without any effect."""
    for use in network_uses(part.settings):
        if not use.applied:
            message = f"{use.key} changes nothing: {', '.join(use.own)} are set beside {use.network.name}"
            raise DesignError(part.locations[use.key], message, "give only one of them, or the network")


def _refuse_idle_key(part: Part, dotted: str, key: Key, keys: Mapping[str, Key], groups: tuple[str, ...]) -> None:
    """Refuses a key whose condition on another key is never met."""
    condition = key.only_with
    if condition is None or dotted not in part.settings:
        return
    other = next(key for key in keys.values() if key.name == condition.key)
    sources = [source for group in groups for source in sources_of(group, other.study, part.settings)]
    # A network may set it.
    hops = [owner for owner, _, direction in (group.rpartition(".") for group in groups) if direction in DIRECTIONS]
    sources += [f"{owner}.network" for owner in dict.fromkeys(["path", *hops]) if hops]
    levels = [level for source in sources for level in part.settings.get(source, Values()).levels]
    if condition.values is None:
        idle = not levels
        message, hint = f"no {other.study} is set", f"add {other.study} = {type_of([other]).example}"
    else:
        values = [level.value for level in levels] if levels else [other.default]
        idle = not any(map(condition.is_met, values))
        message, hint = (
            f"{other.study} is not {' or '.join(condition.values)}",
            f'add {other.study} = "{condition.values[0]}"',
        )
    if idle:
        raise DesignError(part.locations[dotted], f"{dotted} has no effect: {message}", hint)
