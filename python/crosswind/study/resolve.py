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
    groups: dict[str, tuple[Key, ...]] = {
        "path": known.path.keys,
        **{f"path.{direction}": known.direction_keys for direction in DIRECTIONS},
        "host": known.host.keys,
        "workload": workload.keys,
    }
    return {group: tuple(_in_effect(group, keys, settings)) for group, keys in groups.items()}


@cache
def sources_of(group: str, name: str) -> tuple[str, ...]:
    """The dotted keys of a study that can set a key of a group, by its name in a study; what counts first is first."""
    if group in {f"path.{direction}" for direction in DIRECTIONS}:
        return (f"{group}.{name}", f"path.{name}", "path.network")
    return (f"{group}.{name}",)


def _in_effect(group: str, keys: Iterable[Key], settings: Mapping[str, Level]) -> Iterator[Resolved]:
    given = {key.name: given for key in keys if (given := _given(group, key, settings)) is not None}
    values = {key.name: given[key.name].value if key.name in given else key.default for key in keys}
    for setting in given.values():
        condition = setting.key.only_with
        if condition is None or _met(values.get(condition.key), condition.value):
            yield setting


def _met(value: object, wanted: str | None) -> bool:
    return value is not None if wanted is None else value == wanted


def _given(group: str, key: Key, settings: Mapping[str, Level]) -> Resolved | None:
    for source in sources_of(group, key.study):
        level = settings.get(source)
        if level is None:
            continue
        if source != "path.network":
            return Resolved(key, level.value, source)
        values = NETWORKS[str(level.value)].direction(group.rpartition(".")[2]).settings
        if key.study in values:
            return Resolved(key, values[key.study], source)
    return None
