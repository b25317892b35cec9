"""A cell's effective settings: a value for each crosswind-cell key, with the study's key behind it.

A direction's own key counts before the path's, and the path's before the network's. A key with a condition (a queue
needs a link rate) is left out of cells without it. crosswind-cell checks the rest.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from crosswind.catalog import Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.keys import CHANGE, FLOW, HOP, names_of
from crosswind.study.levels import Level, NetworkFiles, OwnNetwork, Value, Values
from crosswind.study.network_files import network_of_files
from crosswind.study.networks import NETWORKS, DirectionTexts, Network
from crosswind.study.own_networks import network_of_own


@dataclass(frozen=True)
class Resolved:
    """One key in a cell. `source`: the study's dotted key behind the value."""

    key: Key
    value: Value
    source: str


def resolve(settings: Mapping[str, Level]) -> dict[str, tuple[Resolved, ...]]:
    """One combination's settings by group: `path.forward`, `host`, ..."""
    known = catalog()
    hops, settings = hops_of(settings), with_networks(settings)
    workload = known.workloads[str(settings["workload.kind"].value)]
    changes = [f"{CHANGE}.{name}" for name in names_of(CHANGE, settings)]
    groups: dict[str, tuple[Key, ...]] = {
        "path": known.path.keys,
        **{f"{hop}.{direction}": known.direction.keys for hop in hops for direction in DIRECTIONS},
        **dict.fromkeys(changes, known.changes.keys),
        "host": known.host.keys,
        "workload": workload.keys,
    }
    for flow in (f"{FLOW}.{name}" for name in names_of(FLOW, settings)):
        kind = known.workloads[str(settings[f"{flow}.kind"].value)]
        keys_of_flows = {key.study for key in known.flows.keys}
        groups[flow] = known.flows.keys
        groups[f"{flow}.workload"] = tuple(key for key in kind.keys if key.study not in keys_of_flows)
    resolved = {group: tuple(_in_effect(group, keys, settings)) for group, keys in groups.items()}
    # A change's keys have an effect whatever the hop has.
    of_changes = {f"{change}.{direction}" for change in changes for direction in DIRECTIONS}
    return resolved | {group: tuple(_all_given(group, known.direction.keys, settings)) for group in of_changes}


def with_networks(settings: Mapping[str, Level]) -> dict[str, Level]:
    """Settings with their networks' keys, except those set by the study itself.

    The study's keys count at all times, so a network's change without any other key is none.
    """
    expanded = dict(settings)
    for source, network in networks_of(settings):
        owner = source.removesuffix(".network")
        hop_name = owner.removeprefix(f"{HOP}.") if owner != "path" else ""
        for hop, directions in hops_of_network(network, source).items():
            expanded |= _added(hop, hop, directions, source, settings)
        for number, change in enumerate(network.changes):
            group = change_of_network(source, number)
            added = _added(group, f"{HOP}.{change.hop}" if change.hop else owner, change.directions, source, settings)
            if added or "trace" in change.when:
                name = " ".join(filter(None, [hop_name, network.name, change.name]))
                of_hop = {"hop": Level(hop_name, hop_name, hop_name)} if hop_name else {}
                when = {"name": Level(name, name, name), **change.when, **of_hop}
                expanded |= {f"{group}.{key}": replace(level, source=source) for key, level in when.items()} | added
    return expanded


def change_of_network(source: str, number: int) -> str:
    """The key prefix for a network's change. Args: source: the key naming the network."""
    return f"{CHANGE}.{source.replace('.', '~')}~{number}"


def _added(
    group: str, hop: str, directions: Mapping[str, DirectionTexts], source: str, settings: Mapping[str, Level]
) -> dict[str, Level]:
    """A network's keys in a hop, permanent or in a change, without the study's own."""
    return {
        f"{group}.{direction}.{name}": replace(level, source=source)
        for direction, levels in directions.items()
        for name, level in levels.items()
        if not any(key in settings for key in sources_of(f"{hop}.{direction}", name, settings))
    }


def changes_of(settings: Mapping[str, Level]) -> dict[str, str]:
    """A cell's path changes, name by group, the study's own first."""
    expanded = with_networks(settings)
    groups = {f"{CHANGE}.{name}": name for name in names_of(CHANGE, expanded)}
    return {key: expanded[f"{key}.name"].text if f"{key}.name" in expanded else name for key, name in groups.items()}


def network_behind(group: str, settings: Mapping[str, Level]) -> str | None:
    """The study's key naming a change's network; None for other groups.

    Args: group: the change's, or one of its directions'.
    """
    owner = group.rpartition(".")[0] if group.endswith(DIRECTIONS) else group
    named = with_networks(settings).get(f"{owner}.name")
    return None if named is None else named.source


def networks_of(settings: Mapping[str, Level]) -> Iterator[tuple[str, Network]]:
    """A cell's networks with their naming keys: `path.network`, `path.hop.wifi.network`."""
    for source in network_keys(settings):
        yield source, network_named(settings[source].value)


def network_keys(settings: Iterable[str]) -> tuple[str, ...]:
    """The keys naming networks."""
    owners = ("path", *(f"{HOP}.{name}" for name in names_of(HOP, settings)))
    known = set(settings)
    return tuple(key for owner in owners if (key := f"{owner}.network") in known)


def hops_of_network(network: Network, source: str) -> dict[str, Mapping[str, DirectionTexts]]:
    """A network's settings by path hop. Args: source: the key naming the network."""
    owner = source.removesuffix(".network")
    return {f"{HOP}.{name}" if name else owner: directions for name, directions in network.hops.items()}


def network_named(value: Value) -> Network:
    """The network for a `path.network` value: named, from files, or the user's own."""
    if isinstance(value, OwnNetwork):
        return network_of_own(value)
    return network_of_files(value) if isinstance(value, NetworkFiles) else NETWORKS[str(value)]


def hops_of(settings: Mapping[str, Level | Values]) -> tuple[str, ...]:
    """Each hop's key prefix: `path.hop.wifi`; `path` for a single unnamed hop.

    With networks as levels, the hops of each.
    """
    hops = [tuple(f"{HOP}.{name}" for name in network.hop_names) or ("path",) for network in networks_of_path(settings)]
    if any(names != ("path",) for names in hops):
        return tuple(dict.fromkeys(itertools.chain.from_iterable(hops)))
    return tuple(f"{HOP}.{name}" for name in names_of(HOP, settings)) or ("path",)


def networks_of_path(settings: Mapping[str, Level | Values]) -> tuple[Network, ...]:
    """The networks under `path.network`."""
    given = settings.get("path.network", Values())
    return tuple(network_named(level.value) for level in (given.levels if isinstance(given, Values) else (given,)))


def sources_of(group: str, name: str, settings: Mapping[str, Level | Values]) -> tuple[str, ...]:
    """The study's dotted keys for a group's key, by precedence.

    In a network's hop, path keys count too if only this hop has them.
    """
    owner, _, direction = group.rpartition(".")
    hop = owner.removeprefix(f"{HOP}.")
    sources = _own_sources(group, name)
    if "path.network" not in settings or hop == owner or direction not in DIRECTIONS:
        return sources
    is_meant = any(
        hop in network.hop_names and network.hop_that_sets(name) == hop for network in networks_of_path(settings)
    )
    return (*sources, f"path.{direction}.{name}", f"path.{name}") if is_meant else sources


@cache
def _own_sources(group: str, name: str) -> tuple[str, ...]:
    """The same without networks. A study with ten thousand cells asks a million times."""
    owner, _, direction = group.rpartition(".")
    if owner.startswith(f"{FLOW}.") or direction not in DIRECTIONS:
        return (f"{owner}.{name}" if owner.startswith(f"{FLOW}.") else f"{group}.{name}",)
    return (f"{group}.{name}", f"{owner}.{name}")


def _in_effect(group: str, keys: Sequence[Key], settings: Mapping[str, Level]) -> Iterator[Resolved]:
    given = {setting.key.name: setting for setting in _all_given(group, keys, settings)}
    for setting in given.values():
        condition = setting.key.only_with
        if condition is None or condition.is_met(_value_of(condition.key, given, keys)):
            yield setting


def _value_of(name: str, given: Mapping[str, Resolved], keys: Sequence[Key]) -> object:
    if name in given:
        return given[name].value
    return next((key.default for key in keys if key.name == name), None)


def _all_given(group: str, keys: Iterable[Key], settings: Mapping[str, Level]) -> Iterator[Resolved]:
    # Of two hundred keys, a study sets ten.
    names = {name.rpartition(".")[2] for name in settings}
    named = (key for key in keys if key.study.rpartition(".")[2] in names)
    return (given for key in named if (given := _given(group, key, settings)) is not None)


def _given(group: str, key: Key, settings: Mapping[str, Level]) -> Resolved | None:
    source = next((source for source in sources_of(group, key.study, settings) if source in settings), None)
    return None if source is None else Resolved(key, settings[source].value, settings[source].source or source)
