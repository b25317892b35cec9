"""Networks with a name: `path.network`. Each is data: keys of the path, as a study has them, and where they are from.

`crosswind/networks/*.toml` has them, in families. Which keys there are, and what their values mean, the catalogue says.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from crosswind.catalog import Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.levels import Level
from crosswind.study.value_types import type_of
from crosswind.text.units import UnitError

FOLDER = Path(__file__).parents[1] / "networks"

DirectionTexts = Mapping[str, Level]
"""Keys of one direction and their values, by the names that a study has for them."""


@dataclass(frozen=True)
class Source:
    """Where numbers are from, or why these were chosen.

    Attributes: of: the keys that are meant, as "delay, rate". note: what a list of networks says once, in place of this
        source at each of them.
    """

    of: str
    text: str
    note: str = ""

    @property
    def keys(self) -> list[str]:
        """The names of the keys."""
        return self.of.split(", ")

    def is_of(self, setting: str) -> bool:
        """Whether it is of a key: `delay`, or `wifi.delay` of one hop; a source of `delay` is of both."""
        return any(setting == key or setting.endswith(f".{key}") for key in self.keys)


@dataclass(frozen=True)
class NetworkChange:
    """What is different in a network at some times. `when`: the keys that say at which."""

    name: str
    when: Mapping[str, Level]
    directions: Mapping[str, DirectionTexts]

    @property
    def hop(self) -> str:
        """The hop that changes; empty where there is one."""
        return self.when["hop"].text if "hop" in self.when else ""

    @property
    def keys(self) -> dict[str, str]:
        """What a `[[path.at]]` that is the same has beside its name."""
        return {**{key: level.text for key, level in self.when.items()}, **_merged_texts(self.directions)}


@dataclass(frozen=True, eq=False)
class Network:
    """A network with a name.

    Attributes: what: it stands for, in a few words. path: what it sets, as the table `[path]` of a study.
        own_sources, family_sources: its own, and those that count for each key of which its own say nothing.
    """

    name: str
    what: str
    path: Mapping[str, Any] = field(repr=False)
    own_sources: tuple[Source, ...] = field(repr=False)
    family_sources: tuple[Source, ...] = field(default=(), repr=False)

    @cached_property
    def hops(self) -> Mapping[str, Mapping[str, DirectionTexts]]:
        """What it sets in each direction of each hop, the client's first; the only hop has no name."""
        if "hop" not in self.path:
            return {"": self._directions({key: raw for key, raw in self.path.items() if key != "at"})}
        tables = [dict(table) for table in self.path["hop"]]
        return {table.pop("name"): self._directions(table) for table in tables}

    @property
    def hop_names(self) -> tuple[str, ...]:
        """The names of its hops; none where it has one."""
        return tuple(filter(None, self.hops))

    def hop_that_sets(self, key: str) -> str | None:
        """The only hop that sets a key of a direction; None where several do, or none. Args: key: as `rate`."""
        named = [name for name, ways in self.hops.items() if any(key in settings for settings in ways.values())]
        return named[0] if len(named) == 1 else None

    @cached_property
    def changes(self) -> tuple[NetworkChange, ...]:
        """What it sets at some times."""
        return tuple(self._change(number, table) for number, table in enumerate(self.path.get("at", ()), start=1))

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of all keys of a direction that it sets, at whichever time, in its order: `wifi.delay` of a hop."""
        changes = [(change.hop, change.directions) for change in self.changes]
        return tuple(
            dict.fromkeys(
                f"{hop}.{key}" if hop else key
                for hop, directions in (*self.hops.items(), *changes)
                for way in directions.values()
                for key in way
            )
        )

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where its numbers are from."""
        asked = [key for key in self.settings if not any(source.is_of(key) for source in self.own_sources)]
        return (*self.own_sources, *(source for source in self.family_sources if any(map(source.is_of, asked))))

    @property
    def keys(self) -> dict[str, dict[str, str]]:
        """What it sets of each hop, key and text: `delay` where both directions agree, else `forward.rate`."""
        return {name: _merged_texts(directions) for name, directions in self.hops.items()}

    def source(self, keys: Collection[str]) -> str:
        """Where the numbers of some keys are from, in one line. Args: keys: as `delay`, `wifi.delay`."""
        about = [source for source in self.sources if any(map(source.is_of, keys))]
        return "; ".join(f"{source.of}: {source.text}" for source in about)

    @property
    def own_source(self) -> str:
        """The same of all keys, without what is said once of many networks."""
        return "; ".join(f"{source.of}: {source.text}" for source in self.sources if not source.note)

    def _directions(self, table: Mapping[str, Any]) -> dict[str, DirectionTexts]:
        def one_way(direction: str) -> Iterator[tuple[str, Any]]:
            for key, raw in table.items():
                yield from raw.items() if key == direction else [(key, raw)] if key not in DIRECTIONS else ()

        return {way: self._levels(dict(one_way(way)), catalog().direction_keys) for way in DIRECTIONS}

    def _change(self, number: int, table: Mapping[str, Any]) -> NetworkChange:
        known = [key for key in catalog().changes.keys if key.study != "name"]
        when = {key.study: table[key.study] for key in known if key.study in table}
        path_keys = {key: raw for key, raw in table.items() if key not in when and key != "name"}
        return NetworkChange(table.get("name", str(number)), self._levels(when, known), self._directions(path_keys))

    def _levels(self, table: Mapping[str, Any], keys: Collection[Key]) -> dict[str, Level]:
        by_name = {key.study: key for key in keys}
        try:
            return {name: type_of([by_name[name]]).level(raw) for name, raw in table.items()}
        except KeyError as error:
            raise ValueError(f"network {self.name}: there is no key {error}") from None
        except UnitError as error:
            raise ValueError(f"network {self.name}: {error.message}") from None


def merged_directions(both: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Texts by direction and key as a study has them: a key once where both directions agree.

    Args: both: `forward` and `reverse`, each with its keys and their texts.
    """
    forward, reverse = both["forward"], both["reverse"]
    texts: dict[str, str] = {}
    for key in dict.fromkeys([*forward, *reverse]):
        if key in forward and forward.get(key) == reverse.get(key):
            texts[key] = forward[key]
        else:
            texts |= {f"{way}.{key}": both[way][key] for way in DIRECTIONS if key in both[way]}
    return texts


def _merged_texts(directions: Mapping[str, DirectionTexts]) -> dict[str, str]:
    return merged_directions({way: {key: level.text for key, level in directions[way].items()} for way in DIRECTIONS})


def _networks() -> Iterator[Network]:
    for file in sorted(FOLDER.glob("*.toml")):
        family = tomllib.loads(file.read_text(encoding="utf-8"))
        of_family = _sources(family)
        for name, table in family["network"].items():
            yield Network(name, table["what"], table["path"], _sources(table), of_family)


def _sources(table: Mapping[str, Any]) -> tuple[Source, ...]:
    return tuple(Source(**source) for source in table.get("source", ()))


NETWORKS: Mapping[str, Network] = {network.name: network for network in _networks()}
"""Every network by name, in the order in which they are listed."""
