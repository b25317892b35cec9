"""Named networks: `path.network`. Each is data: path keys, as in a study, and their sources.

`crosswind/networks/*.toml` has them, in families. The catalogue defines keys and values.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from crosswind.catalog import Key, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.errors import did_you_mean
from crosswind.study.errors import DesignError
from crosswind.study.levels import Level
from crosswind.study.toml_text import Location
from crosswind.study.value_types import type_of
from crosswind.text.units import UnitError, shown

FOLDER = Path(__file__).parents[1] / "networks"

DirectionTexts = Mapping[str, Level]
"""One direction's keys and values, by a study's names."""

_HOP_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class Source:
    """A source for numbers, or a reason.

    Attributes: of: its keys, as "delay, rate". note: replaces this source in lists, said once.
    """

    of: str
    text: str
    note: str = ""

    @property
    def keys(self) -> list[str]:
        """The names of the keys."""
        return self.of.split(", ")

    def is_of(self, setting: str) -> bool:
        """Whether it covers a key: `delay`, or one hop's `wifi.delay`; a source for `delay` covers both."""
        return any(setting == key or setting.endswith(f".{key}") for key in self.keys)


@dataclass(frozen=True)
class NetworkChange:
    """A network's difference at some times. `when`: the keys with the times."""

    name: str
    when: Mapping[str, Level]
    directions: Mapping[str, DirectionTexts]

    @property
    def hop(self) -> str:
        """The changing hop; empty for a single one."""
        return self.when["hop"].text if "hop" in self.when else ""

    @property
    def keys(self) -> dict[str, str]:
        """The keys for an equal `[[path.at]]`, without its name."""
        return {**{key: level.text for key, level in self.when.items()}, **_merged_texts(self.directions)}


@dataclass(frozen=True, eq=False)
class Network:
    """A named network.

    Attributes: what: a short description. path: its settings, as a study's `[path]`. own_sources, family_sources: its
        own, and others for keys without an own one. at: its path's place in the file.
    """

    name: str
    what: str
    path: Mapping[str, Any] = field(repr=False)
    own_sources: tuple[Source, ...] = field(repr=False)
    family_sources: tuple[Source, ...] = field(default=(), repr=False)
    at: Location = field(default=(), repr=False)

    @cached_property
    def hops(self) -> Mapping[str, Mapping[str, DirectionTexts]]:
        """Settings by hop, the client's first, and direction; a single hop has no name.

        Raises: DesignError, as `changes`.
        """
        hops: dict[str, Mapping[str, DirectionTexts]] = {}
        for number, hop in enumerate(tables_of(self.path.get("hop", []), (*self.at, "hop"))):
            place, name = (*self.at, "hop", number), hop.pop("name", "")
            if not isinstance(name, str) or not _HOP_NAME.fullmatch(name) or name in hops:
                hint = 'name = "wifi": lower-case letters, digits and -, another one for each hop'
                raise DesignError((*place, "name"), f"{shown(name)} cannot be the name of a hop", hint)
            hops[name] = _directions(hop, place)
            if not hop:
                raise DesignError(place, f"the hop {name} sets nothing", "give it keys, or leave it out")
        rest = {key: raw for key, raw in self.path.items() if key not in {"hop", "at"}}
        if hops and rest:
            message = f"{next(iter(rest))} does not say which hop it is of"
            hint = f"write it in one of the hops: {', '.join(hops)}"
            raise DesignError((*self.at, next(iter(rest))), message, hint)
        return hops or {"": _directions(rest, self.at)}

    @property
    def hop_names(self) -> tuple[str, ...]:
        """The names of its hops; none where it has one."""
        return tuple(filter(None, self.hops))

    def hop_that_sets(self, key: str) -> str | None:
        """The only hop setting a direction's key; None for several or none. Args: key: as `rate`."""
        named = [name for name, ways in self.hops.items() if any(key in settings for settings in ways.values())]
        return named[0] if len(named) == 1 else None

    @cached_property
    def changes(self) -> tuple[NetworkChange, ...]:
        """Its changes over time."""
        known = catalog().changes.by_study
        made = []
        for number, table in enumerate(tables_of(self.path.get("at", []), (*self.at, "at")), start=1):
            place = (*self.at, "at", number - 1)
            levels = {key: _level(key, raw, known, (*place, key)) for key, raw in table.items() if key in known}
            name = levels.pop("name").text if "name" in levels else str(number)
            when = {key: levels[key] for key in known if key in levels}
            directions = _directions({key: raw for key, raw in table.items() if key not in known}, place, known)
            of_hop = table.get("hop")
            if (of_hop is not None or self.hop_names) and of_hop not in self.hop_names:
                hops = ", ".join(self.hop_names)
                hint = f"its hops: {hops}" if hops else "the network has one hop, which has no name"
                raise DesignError((*place, "hop"), f"there is no hop {shown(of_hop or '')}", hint)
            made.append(NetworkChange(name, when, directions))
        return tuple(made)

    @property
    def settings(self) -> tuple[str, ...]:
        """All its direction keys at any time, in order: `wifi.delay` for a hop's."""
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
        """Texts by hop and key: `delay` where both directions agree, else `forward.rate`."""
        return {name: _merged_texts(directions) for name, directions in self.hops.items()}

    def source(self, keys: Collection[str]) -> str:
        """Where the numbers of some keys are from, in one line. Args: keys: as `delay`, `wifi.delay`."""
        about = [source for source in self.sources if any(map(source.is_of, keys))]
        return "; ".join(f"{source.of}: {source.text}" for source in about)

    @property
    def own_source(self) -> str:
        """Sources for all keys, without those noted once for many networks."""
        return "; ".join(f"{source.of}: {source.text}" for source in self.sources if not source.note)


def tables_of(raw: object, location: Location) -> list[dict[str, Any]]:
    """A list of tables. Raises: DesignError."""
    if not isinstance(raw, list) or not all(isinstance(each, Mapping) for each in raw):
        raise DesignError(location, f"{shown(raw)} is no list of tables", f"write [[{location[-1]}]]")
    return [dict(each) for each in raw]


def _directions(table: Mapping[str, Any], at: Location, more: Collection[str] = ()) -> dict[str, DirectionTexts]:
    """A table's settings by direction, in order. Args: more: other allowed keys."""
    known = catalog().direction.by_study

    def one_way(direction: str) -> Iterator[tuple[str, Level]]:
        for key, raw in table.items():
            if key not in DIRECTIONS:
                yield key, _level(key, raw, known, (*at, key), more)
            elif not isinstance(raw, Mapping):
                raise DesignError((*at, key), f"{shown(raw)} is not a table", f'write {key}.delay = "5ms"')
            elif key == direction:
                yield from ((name, _level(name, each, known, (*at, key, name))) for name, each in raw.items())

    return {way: dict(one_way(way)) for way in DIRECTIONS}


def _level(key: str, raw: object, known: Mapping[str, Key], at: Location, more: Collection[str] = ()) -> Level:
    if key == "network":
        hint = "copy the keys that it stands for: `crosswind networks NAME` has them"
        raise DesignError(at, "a network is made of keys, not of another network", hint)
    if key not in known:
        of_path = key in {each.study for each in catalog().path.keys}
        hint = f"write path.{key} in the study" if of_path else did_you_mean(key, [*known, *more])
        raise DesignError(at, f"{key}: there is no such key of a network", hint)
    try:
        values = type_of([known[key]]).values(raw)
    except UnitError as error:
        raise DesignError(at, f"{key}: {error.message}", error.hint) from None
    if values.is_factor:
        hint = "a list is a factor, which stands in the study, beside the network"
        raise DesignError(at, f"{key}: {shown(raw)} is a list", hint)
    return values.levels[0]


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
"""Every network by name, in listed order."""
