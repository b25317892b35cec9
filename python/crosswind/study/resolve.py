"""What the settings of a cell come to: a value for each key of crosswind-cell, and the key of the study it is from.

A direction's own key counts before the path's, and that before the network's. A key that has an effect only beside a
value of another (the queue of a link that has a rate) is left out of the cells in which it has none. Whether the rest
can be together, crosswind-cell says.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    """One key of a cell. `source` is the dotted key of the study that gave it this value."""

    key: Key
    value: Value
    source: str


def resolve(settings: Mapping[str, Level]) -> dict[str, tuple[Resolved, ...]]:
    """Every key that one combination of levels sets, by the group it stands in: `path.forward`, `host`, ..."""
    known = catalog()
    workload = known.workloads[str(settings["workload.kind"].value)]
    changes = [f"{CHANGE}.{name}" for name in names_of(CHANGE, settings)]
    groups: dict[str, tuple[Key, ...]] = {
        "path": known.path.keys,
        **{f"{hop}.{direction}": known.direction_keys for hop in hops_of(settings) for direction in DIRECTIONS},
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
    # What a change sets has an effect beside what the hop has, whatever that is.
    of_changes = {f"{change}.{direction}" for change in changes for direction in DIRECTIONS}
    resolved |= {group: tuple(_all_given(group, known.direction_keys, settings)) for group in of_changes}
    for change in _changes_of_networks(settings):
        resolved |= change.groups
    return resolved


def changes_of(settings: Mapping[str, Level]) -> dict[str, str]:
    """The changes of the path in a cell: the name of each by its group, the study's own first, then the networks'."""
    change_names = {f"{CHANGE}.{name}": name for name in names_of(CHANGE, settings)}
    return change_names | {change.group: change.name for change in _changes_of_networks(settings)}


def network_behind(group: str, settings: Mapping[str, Level]) -> str | None:
    """The key of a study that names the network to which a change belongs; None for a group of another kind.

    Args: group: the change's, or that of one of its directions.
    """
    changes = _changes_of_networks(settings)
    return next((change.source for change in changes if group in change.groups), None)


def networks_of(settings: Mapping[str, Level]) -> Iterator[tuple[str, Network]]:
    """The networks of a cell, each with the key that names it: `path.network`, `path.hop.wifi.network`."""
    for source in network_keys(settings):
        yield source, network_named(settings[source].value)


def network_keys(settings: Iterable[str]) -> tuple[str, ...]:
    """The keys that name networks."""
    owners = ("path", *(f"{HOP}.{name}" for name in names_of(HOP, settings)))
    known = set(settings)
    return tuple(key for owner in owners if (key := f"{owner}.network") in known)


def hops_of_network(network: Network, source: str) -> dict[str, Mapping[str, DirectionTexts]]:
    """What a network sets of each hop of a path, by the hop. Args: source: the key that names the network."""
    owner = source.removesuffix(".network")
    return {f"{HOP}.{name}" if name else owner: directions for name, directions in network.hops.items()}


def network_named(value: Value) -> Network:
    """The network that a value of `path.network` means: one with a name, one of files, or one's own."""
    if isinstance(value, OwnNetwork):
        return network_of_own(value)
    return network_of_files(value) if isinstance(value, NetworkFiles) else NETWORKS[str(value)]


@dataclass(frozen=True)
class _ChangeOfNetwork:
    """A change that a hop has from its network.

    Attributes: source: the key of the study that names it. groups: what it sets, by group; `group`: the first of them.
    """

    name: str
    source: str
    group: str
    groups: Mapping[str, tuple[Resolved, ...]]


def _changes_of_networks(settings: Mapping[str, Level]) -> Iterator[_ChangeOfNetwork]:
    """What networks change at some times, without keys that the study sets itself: these count at all times."""
    known = catalog()
    when_keys = {key.study: key for key in known.changes.keys}
    for source, network in networks_of(settings):
        owner = source.removesuffix(".network")
        hop_name = owner.removeprefix(f"{HOP}.") if owner != "path" else ""
        for change in network.changes:
            group = f"{source}.{change.name}"
            hop = f"{HOP}.{change.hop}" if change.hop else owner
            of_hop = (Resolved(when_keys["hop"], hop_name, source),) if hop_name else ()
            groups = {
                group: (*(Resolved(when_keys[key], level.value, source) for key, level in change.when.items()), *of_hop)
            }
            for direction in DIRECTIONS:
                direction_levels = change.directions[direction]
                groups[f"{group}.{direction}"] = tuple(
                    Resolved(key, direction_levels[key.study].value, source)
                    for key in known.direction_keys
                    if key.study in direction_levels and not _is_set(f"{hop}.{direction}", key.study, settings)
                )
            sets_something = "trace" in change.when or any(groups[f"{group}.{direction}"] for direction in DIRECTIONS)
            if sets_something:
                name = " ".join(filter(None, [hop_name, network.name, change.name]))
                yield _ChangeOfNetwork(name, source, group, groups)


def _is_set(group: str, name: str, settings: Mapping[str, Level]) -> bool:
    """Whether a study sets a key of a direction itself, beside a network."""
    return any(source in settings for source in sources_of(group, name, settings) if not source.endswith(".network"))


def hops_of(settings: Mapping[str, Level | Values]) -> tuple[str, ...]:
    """What the keys of each hop begin with: `path.hop.wifi`; `path`, where there is one hop, which has no name.

    Where levels of a factor are networks of which some have several hops, the hops of each.
    """
    hops = [tuple(f"{HOP}.{name}" for name in network.hop_names) or ("path",) for network in networks_of_path(settings)]
    if any(names != ("path",) for names in hops):
        return tuple(dict.fromkeys(itertools.chain.from_iterable(hops)))
    return tuple(f"{HOP}.{name}" for name in names_of(HOP, settings)) or ("path",)


def networks_of_path(settings: Mapping[str, Level | Values]) -> tuple[Network, ...]:
    """The networks that `path.network` names."""
    given = settings.get("path.network", Values())
    return tuple(network_named(level.value) for level in (given.levels if isinstance(given, Values) else (given,)))


def sources_of(group: str, name: str, settings: Mapping[str, Level | Values]) -> tuple[str, ...]:
    """The dotted keys of a study that can set a key of a group, by its name in a study; what counts first is first.

    Of a hop that is of the path's network, keys of the path too, which mean the only hop that sets them there.
    """
    sources = _own_sources(group, name)
    if "path.network" not in settings or not sources[-1].endswith(".network"):
        return sources
    owner, _, direction = group.rpartition(".")
    hop = owner.removeprefix(f"{HOP}.")
    networks = [network for network in networks_of_path(settings) if hop in network.hop_names]
    if not networks:
        return sources
    is_meant = any(network.hop_that_sets(name) == hop for network in networks)
    return (*sources, *((f"path.{direction}.{name}", f"path.{name}") if is_meant else ()), "path.network")


@cache
def _own_sources(group: str, name: str) -> tuple[str, ...]:
    """Those that any study has, of a hop its network last. A study of ten thousand cells asks a million times."""
    owner, _, direction = group.rpartition(".")
    if owner.startswith(f"{FLOW}."):
        return (f"{owner}.{name}",)
    if direction not in DIRECTIONS:
        return (f"{group}.{name}",)
    both = (f"{group}.{name}", f"{owner}.{name}")
    return both if owner.startswith(f"{CHANGE}.") else (*both, f"{owner}.network")


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
    # Of two hundred keys, a study sets ten by their names; a network may set any.
    names = {name.rpartition(".")[2] for name in settings}
    named = keys if "network" in names else [key for key in keys if key.study.rpartition(".")[2] in names]
    return (given for key in named if (given := _given(group, key, settings)) is not None)


def _given(group: str, key: Key, settings: Mapping[str, Level]) -> Resolved | None:
    owner, _, direction = group.rpartition(".")
    for source in sources_of(group, key.study, settings):
        level = settings.get(source)
        if level is None:
            continue
        if not source.endswith(".network"):
            return Resolved(key, level.value, source)
        given = hops_of_network(network_named(level.value), source)[owner][direction].get(key.study)
        if given is not None:
            return Resolved(key, given.value, source)
    return None
