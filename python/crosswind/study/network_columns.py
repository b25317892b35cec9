"""Columns for networks in `crosswind networks` and docs/study.md, from network_columns.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.levels import Level, Value
from crosswind.study.networks import Network, NetworkChange
from crosswind.text.units import Queue, format_duration

_DOWN_AND_UP = tuple(reversed(DIRECTIONS))


@dataclass(frozen=True)
class NetworkColumn:
    """One key, or two columns of it. `narrow`: whether a narrow terminal has it too; the rest is in the file."""

    key: str
    titles: tuple[str, ...]
    json: str
    title_of_docs: str = ""
    sum: bool = False
    means: str = ""
    narrow: bool = True

    def texts(self, network: Network) -> tuple[str, ...]:
        """The texts of a network, one for each title; empty where it sets nothing."""
        if self.sum:
            return (format_duration(round(sum(values_of(network, self.means)))),)
        values = [
            " + ".join(level.text for ways in network.hops.values() if (level := ways[way].get(self.key)) is not None)
            for way in _DOWN_AND_UP
        ]
        if len(self.titles) == 2:
            return tuple(values)
        return (" / ".join(filter(None, dict.fromkeys(values))),)

    def doc_text(self, network: Network) -> str:
        """The same in one column."""
        return " / ".join(dict.fromkeys(filter(None, self.texts(network))))


@cache
def network_columns() -> tuple[NetworkColumn, ...]:
    """The columns, in their order."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return tuple(NetworkColumn(**{**column, "titles": tuple(column["titles"])}) for column in table["column"])


def values_of(network: Network, means: str) -> list[float]:
    """A network's numbers under a column's meaning, over its directions; none where unset."""
    keys = [column.key for column in network_columns() if column.means == means]
    levels = [
        settings[key] for ways in network.hops.values() for settings in ways.values() for key in keys if key in settings
    ]
    return [float(level.value) for level in levels if isinstance(level.value, int | Decimal)]


def besides(network: Network) -> str:
    """A network's keys and changes without a column; empty without any."""
    columns = {column.key for column in network_columns()}
    hops = f"hops {' + '.join(network.hop_names)}" if network.hop_names else ""
    keys = [
        f"{name}.{key} {text}".removeprefix(".")
        for name, own in network.keys.items()
        for key, text in own.items()
        if key.rpartition(".")[2] not in columns
    ]
    return ", ".join(filter(None, [hops, *keys, *map(text_of_change, network.changes)]))


def text_of_change(change: NetworkChange) -> str:
    """A change as a clause: its name and all its keys."""
    return f"{change.name} ({', '.join(f'{key} {text}' for key, text in change.keys.items())})"


def direction_as_json(settings: Mapping[str, Level], names: Mapping[str, str]) -> dict[str, object]:
    """One direction's keys as JSON, by a cell's names; columns are always there, as null.

    Args: names: a cell's, by a study's.
    """
    of_columns = {column.key: column.json for column in network_columns()}
    values: dict[str, object] = dict.fromkeys(of_columns.values())
    for key, level in settings.items():
        if isinstance(level.value, Queue):
            values |= {f"{names[key]}_{unit}": limit for unit, limit in level.value.limits.items()}
        else:
            values[of_columns.get(key) or names[key]] = _json(level.value)
    return values


def _json(value: Value) -> object:
    if isinstance(value, tuple):
        return [_json(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value
