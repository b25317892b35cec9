"""A named network's effect in a study: its keys there, and the study's own."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from crosswind.catalog import catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.keys import HOP
from crosswind.study.levels import Level, Values
from crosswind.study.networks import DirectionTexts, Network, merged_directions
from crosswind.study.resolve import (
    Resolved,
    change_of_network,
    hops_of_network,
    network_keys,
    network_named,
    resolve,
    sources_of,
)
from crosswind.text.lists import listed


@dataclass(frozen=True)
class NetworkUse:
    """One network's effect in one part.

    Attributes: key: naming it, as `path.network`. applied: its keys and texts, as ("path.forward.rate", "5mbit"). own:
        its keys set by the study itself. when: the levels for this effect, if they matter.
    """

    key: str
    network: Network
    applied: tuple[tuple[str, str], ...]
    own: tuple[str, ...]
    when: str = ""

    @property
    def text(self) -> str:
        """A sentence."""
        sets = listed([f"{key} = {text}" for key, text in self.applied]) or "nothing"
        beside = f"; the study itself sets {listed(self.own)}" if self.own else ""
        when = f" where {self.when}" if self.when else ""
        return f"sets {sets}{when}{beside}"


def network_uses(settings: Mapping[str, Values]) -> tuple[NetworkUse, ...]:
    """The networks' effects in a part; one entry per different effect.

    Args: settings: the part's, by dotted key.
    """
    uses = []
    for key, level in [(named, level) for named in network_keys(settings) for level in settings[named].levels]:
        network = network_named(level.value)
        hops = hops_of_network(network, key)
        alone = {**settings, key: Values((level,))}
        texts: dict[tuple[tuple[str, str], ...], list[str]] = {}
        for chosen, text in _combinations(alone, hops):
            texts.setdefault(_applied(network, chosen, key), []).append(text)
        set_beside = _own(network, alone, key)
        effects = [applied for applied in texts if applied] or [()]
        for applied in effects:
            when = " or ".join(texts[applied]) if len(texts) > 1 else ""
            uses.append(NetworkUse(key, network, applied, set_beside, when))
    return tuple(uses)


def network_notes(parts: Mapping[str, Mapping[str, Values]]) -> tuple[str, ...]:
    """A remark on each network. Args: parts: settings by part name."""
    uses: dict[Network, dict[NetworkUse, list[str]]] = {}
    for part, settings in parts.items():
        for use in network_uses(settings):
            uses.setdefault(use.network, {}).setdefault(use, []).append(part)
    return tuple(_note(network, by_use) for network, by_use in uses.items())


def _note(network: Network, by_use: Mapping[NetworkUse, list[str]]) -> str:
    """Args: by_use: the parts by effect."""
    wheres = [f"in {listed(parts)} it " if len(by_use) > 1 and all(parts) else "" for parts in by_use.values()]
    said = "; ".join(f"{where}{use.text}" for where, use in zip(wheres, by_use, strict=True))
    applied = [key for use in by_use for key, _ in use.applied]
    keys = [
        key
        for key in network.settings
        if any(f"{applied_key}.".endswith(f".{key}.") for applied_key in map(_without_way, applied))
    ]
    source = network.source(keys) or network.own_source
    numbers = f" Numbers: {source}." if source else ""
    return f"Network {network.name} ({network.what}) {said}.{numbers}"


def _without_way(key: str) -> str:
    """`path.hop.wifi.rate` of `path.hop.wifi.forward.rate`."""
    return ".".join(word for word in key.split(".") if word not in DIRECTIONS)


def _combinations(settings: Mapping[str, Values], hops: Iterable[str]) -> Iterator[tuple[dict[str, Level], str]]:
    """Combinations of the levels deciding effects, each in words."""
    conditions = {key.only_with.key for key in catalog().direction.by_study.values() if key.only_with is not None}
    names = {name for name, key in catalog().direction.by_study.items() if key.name in conditions}
    owners = {"path", *hops}
    deciding = {f"{group}.{name}" for hop in owners for group in (hop, *_ways_of(hop)) for name in names}
    levels = {key: values.levels if key in deciding else values.levels[:1] for key, values in settings.items()}
    factors = [key for key in levels if len(levels[key]) > 1]
    for combination in itertools.product(*levels.values()):
        chosen = dict(zip(levels, combination, strict=True))
        yield chosen, " and ".join(f"{key} = {chosen[key].text}" for key in factors)


def _ways_of(hop: str) -> tuple[str, ...]:
    return tuple(f"{hop}.{direction}" for direction in DIRECTIONS)


def _applied(network: Network, chosen: Mapping[str, Level], source: str) -> tuple[tuple[str, str], ...]:
    groups = resolve(chosen)
    owner = source.removesuffix(".network")
    keys = [
        (f"{hop}.{key}", text)
        for hop, directions in hops_of_network(network, source).items()
        for key, text in _texts(groups, hop, source, directions).items()
    ]
    for number, change in enumerate(network.changes):
        group = change_of_network(source, number)
        if group in groups:
            of_change = {
                **{key: level.text for key, level in change.when.items()},
                **_texts(groups, group, source, change.directions),
            }
            keys.append(
                (f"{owner}.at.{change.name}", f"({', '.join(f'{key} {text}' for key, text in of_change.items())})")
            )
    return tuple(keys)


def _texts(
    groups: Mapping[str, tuple[Resolved, ...]], group: str, source: str, directions: Mapping[str, DirectionTexts]
) -> dict[str, str]:
    """A group's keys from a network, in its order."""
    given = {
        direction: {setting.key.study for setting in groups[f"{group}.{direction}"] if setting.source == source}
        for direction in DIRECTIONS
    }
    return merged_directions(
        {
            direction: {key: level.text for key, level in own.items() if key in given[direction]}
            for direction, own in directions.items()
        }
    )


def _own(network: Network, settings: Mapping[str, Values], source: str) -> tuple[str, ...]:
    """Network keys set by the study itself: `path.delay`, or `path.forward.delay` for one direction."""
    keys: dict[str, None] = {}
    for setting in network.settings:
        hop_name, _, name = setting.rpartition(".")
        hop = f"{HOP}.{hop_name}" if hop_name else source.removesuffix(".network")
        for owner in [hop, *(["path"] if f"path.{name}" in sources_of(f"{hop}.forward", name, settings) else [])]:
            one_way = [f"{group}.{name}" for group in _ways_of(owner)]
            if f"{owner}.{name}" in settings or all(key in settings for key in one_way):
                keys[f"{owner}.{name}"] = None
            else:
                keys |= dict.fromkeys(key for key in one_way if key in settings)
    return tuple(keys)
