"""What the settings of a cell come to: a value for each key of crosswind-cell, and the key of the study it is from.

A direction's own key counts before the path's, and that before the network's. A key that has an effect only beside a
value of another (the queue of a link that has a rate) is left out of the cells in which it has none. Whether the rest
can be together, crosswind-cell says.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from crosswind.catalog import Key, catalog
from crosswind.effect import DIRECTIONS
from crosswind.study.keys import CHANGE, HOP, names_of
from crosswind.study.levels import Level, Value
from crosswind.study.networks import NETWORKS


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
    resolved = {group: tuple(_in_effect(group, keys, settings)) for group, keys in groups.items()}
    # What a change sets has an effect beside what the hop has, whatever that is.
    of_changes = {f"{change}.{direction}" for change in changes for direction in DIRECTIONS}
    return resolved | {group: tuple(_all_given(group, known.direction_keys, settings)) for group in of_changes}


def hops_of(settings: Iterable[str]) -> tuple[str, ...]:
    """What the keys of each hop begin with: `path.hop.wifi`; `path`, where there is one hop, which has no name."""
    return tuple(f"{HOP}.{name}" for name in names_of(HOP, settings)) or ("path",)


@cache
def sources_of(group: str, name: str) -> tuple[str, ...]:
    """The dotted keys of a study that can set a key of a group, by its name in a study; what counts first is first."""
    owner, _, direction = group.rpartition(".")
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
        values = NETWORKS[str(level.value)].direction(group.rpartition(".")[2]).settings
        if key.study in values:
            return Resolved(key, values[key.study], source)
    return None
