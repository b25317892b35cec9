"""What the settings of a cell come to: a value for each key of crosswind-cell, and the key of the study it is from.

A direction's own key counts before the path's, and that before the network's. A key that has an effect only beside a
value of another (the queue of a link that has a rate) is left out of the cells in which it has none. Whether the rest
can be together, crosswind-cell says.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from crosswind.catalog import Key, catalog
from crosswind.path_effect import DIRECTIONS
from crosswind.study.keys import CHANGE, FLOW, HOP, names_of
from crosswind.study.levels import Level, NetworkFiles, Value
from crosswind.study.network_files import network_of_files
from crosswind.study.networks import NETWORKS, Network


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
        own = {key.study for key in known.flows.keys}
        groups[flow] = known.flows.keys
        groups[f"{flow}.workload"] = tuple(key for key in kind.keys if key.study not in own)
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


def network_of(group: str, settings: Mapping[str, Level]) -> Network | None:
    """The network of a hop, as `path.hop.wifi`; None where it has none."""
    level = settings.get(f"{group}.network")
    return None if level is None else network_named(level.value)


def network_named(value: Value) -> Network:
    """The network that a value of `path.network` means: one with a name, or one of files."""
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
    for hop in hops_of(settings):
        network, source = network_of(hop, settings), f"{hop}.network"
        if network is None:
            continue
        hop_name = hop.removeprefix(f"{HOP}.") if hop != "path" else ""
        for change in network.changes:
            group = f"{source}.{change.name}"
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
    return any(source in settings for source in sources_of(group, name) if not source.endswith(".network"))


def hops_of(settings: Iterable[str]) -> tuple[str, ...]:
    """What the keys of each hop begin with: `path.hop.wifi`; `path`, where there is one hop, which has no name."""
    return tuple(f"{HOP}.{name}" for name in names_of(HOP, settings)) or ("path",)


@cache
def sources_of(group: str, name: str) -> tuple[str, ...]:
    """The dotted keys of a study that can set a key of a group, by its name in a study; what counts first is first."""
    owner, _, direction = group.rpartition(".")
    if owner.startswith(f"{FLOW}."):
        return (f"{owner}.{name}",)
    if direction not in DIRECTIONS:
        return (f"{group}.{name}",)
    both = (f"{group}.{name}", f"{owner}.{name}")
    return both if owner.startswith(f"{CHANGE}.") else (*both, f"{owner}.network")


def _in_effect(group: str, keys: Iterable[Key], settings: Mapping[str, Level]) -> Iterator[Resolved]:
    given = {each.key.name: each for each in _all_given(group, keys, settings)}
    values = {key.name: given[key.name].value if key.name in given else key.default for key in keys}
    for setting in given.values():
        condition = setting.key.only_with
        if condition is None or condition.is_met(values.get(condition.key)):
            yield setting


def _all_given(group: str, keys: Iterable[Key], settings: Mapping[str, Level]) -> Iterator[Resolved]:
    return (given for key in keys if (given := _given(group, key, settings)) is not None)


def _given(group: str, key: Key, settings: Mapping[str, Level]) -> Resolved | None:
    for source in sources_of(group, key.study):
        level = settings.get(source)
        if level is None:
            continue
        if not source.endswith(".network"):
            return Resolved(key, level.value, source)
        given = network_named(level.value).directions[group.rpartition(".")[2]].get(key.study)
        if given is not None:
            return Resolved(key, given.value, source)
    return None
