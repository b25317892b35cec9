"""Every study key for cells, from the catalogue: dotted name, type, help.

Their order is the order of factors, and numbers the cells.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from crosswind.catalog import Key, KeyType, catalog
from crosswind.catalog.path_effect import DIRECTION_NAMES
from crosswind.study.networks import NETWORKS
from crosswind.study.own_networks import network_type
from crosswind.study.server_address import SERVER
from crosswind.study.value_type import ValueType
from crosswind.study.value_types import choice, type_of

LISTED_NETWORKS = "a named network, as 4g (`crosswind networks` lists them), trace=FILE or file=FILE"

WORKLOAD_KINDS = tuple(catalog().workloads)
"""Values for `workload.kind`."""

# Cells are numbered by the order of their keys, and blocks are shuffled by those numbers: the order of what stands here
# must stay, or an old study with an old seed would get another plan. Keys that it does not name follow as the
# catalogue has them, which has those of hosts in this order.
_NUMBERED_FIRST = {
    "path": "backend family mtu network delay loss rate queue count",
    "workload": "kind transport resumption polling payload size messages mode rate connection stream streams duration "
    "direction count html_size scripts_size scripts images_size images request_size client server connections timeout",
}


_OWN_TYPES = {"path.server": SERVER}
"""For keys with more forms than their catalogue type."""


@dataclass(frozen=True)
class Setting:
    """One key of a study: dotted, as `path.forward.loss`."""

    key: str
    type: ValueType
    help: str

    @property
    def name(self) -> str:
        """Its last word."""
        return self.key.rpartition(".")[2]


NAME_PATTERN = "^[a-z0-9][a-z0-9-]{0,40}$"
"""Of parts, hops, changes and flows."""

HOP, CHANGE, FLOW = "path.hop", "path.at", "flow"
"""Repeatable named tables: `path.hop.wifi.loss` is a key in one."""

KIND_OF_TABLE = {HOP: "hop", CHANGE: "change", FLOW: "flow"}
"""Their nouns."""


@lru_cache(maxsize=1000)
def table_of_key(key: str) -> str | None:
    """A key's hop, change or flow, as `path.hop.wifi`; None without one."""
    words = key.split(".")
    tables = (FLOW,) if words[0] == FLOW else (HOP, CHANGE)
    length = 2 if words[0] == FLOW else 3
    owner = ".".join(words[:length])
    return owner if len(words) > length and owner.rpartition(".")[0] in tables else None


def names_of(table: str, keys: Iterable[str]) -> tuple[str, ...]:
    """The names of the keys' hops (`HOP`), changes (`CHANGE`) or flows (`FLOW`), in order."""
    owners = (owner for key in keys if (owner := table_of_key(key)) is not None)
    return tuple(dict.fromkeys(owner.rpartition(".")[2] for owner in owners if owner.startswith(f"{table}.")))


def section_of(key: str) -> str:
    """A dotted key's table: `path.forward` for `path.forward.loss`."""
    return key.rpartition(".")[0]


def budget_settings() -> tuple[Setting, ...]:
    """The keys in `[budget]`; no factors."""
    return tuple(_settings("budget", catalog().budget.keys))


def _path_settings() -> Iterator[Setting]:
    known = catalog()
    text = f"{LISTED_NETWORKS}; any key set beside it overrides it"
    names = choice(NETWORKS, what="network", listed="`crosswind networks` lists them")
    network = Setting("path.network", network_type(names), text)
    both = _settings("path", known.direction.keys, note=", in each direction")
    yield from _ordered("path", [*_settings("path", known.path.keys), network, *both])
    for direction, note in DIRECTION_NAMES.items():
        yield from _ordered("path", _settings(f"path.{direction}", known.direction.keys, note=f", {note}"))


def _workload_settings() -> Iterator[Setting]:
    kind = Setting("workload.kind", choice(WORKLOAD_KINDS, can_vary=False), f"{', '.join(WORKLOAD_KINDS)}; one a part")
    by_name: dict[str, dict[str, Key]] = {}
    for workload in catalog().workloads.values():
        for key in workload.keys:
            by_name.setdefault(key.study, {})[workload.kind] = key
    merged = [
        Setting(f"workload.{name}", type_of(list(keys.values())), _help_of(keys)) for name, keys in by_name.items()
    ]
    yield from _ordered("workload", [kind, *merged])


def _settings(section: str, keys: Iterable[Key], *, note: str = "") -> Iterator[Setting]:
    dotted = ((f"{section}.{key.study}", key) for key in keys)
    return (Setting(name, _OWN_TYPES.get(name) or type_of([key]), _help(key, note)) for name, key in dotted)


def _ordered(section: str, settings: Iterable[Setting]) -> list[Setting]:
    first = _NUMBERED_FIRST[section].split()
    return sorted(settings, key=lambda setting: first.index(setting.name) if setting.name in first else len(first))


def _help(key: Key, note: str = "") -> str:
    """A key's help as a clause, with its choices if the sentence lacks them."""
    text = key.help.removesuffix(".")
    first = text.partition(" ")[0]
    if first[1:] == first[1:].lower():
        text = text[0].lower() + text[1:]
    is_named = all(name in text for name in key.choices)
    return f"{text}{note}" if is_named else f"{text}{note}: {', '.join(key.choices)}"


def _help_of(keys: Mapping[str, Key]) -> str:
    """A key's help over several workloads: once if all agree."""
    if all(key.type is KeyType.TRANSPORT for key in keys.values()):
        return f"how messages are carried: {', '.join(catalog().transports)}"
    kinds_by_help: dict[str, list[str]] = {}
    for kind, key in keys.items():
        kinds_by_help.setdefault(_help(key), []).append(kind)
    return "; ".join(f"{', '.join(kinds)}: {text}" for text, kinds in kinds_by_help.items())


class _Settings(Mapping[str, Setting]):
    """Keys with fixed names, which are listed, and keys for hops, changes and flows, named by a study."""

    def __init__(self, fixed: Iterable[Setting]) -> None:
        self._fixed = {setting.key: setting for setting in fixed}

    def __getitem__(self, key: str) -> Setting:
        owner = table_of_key(key)
        if owner is None:
            return self._fixed[key]
        table, _, name = owner.rpartition(".")
        key_of_table = key.removeprefix(f"{owner}.")
        if table == FLOW:
            setting = _FLOW_KEYS[key_of_table]
        elif table == CHANGE and key_of_table in _CHANGE_KEYS:
            setting = _CHANGE_KEYS[key_of_table]
        elif key_of_table.rpartition(".")[2] in catalog().direction.by_study or (
            table == HOP and key_of_table == "network"
        ):
            setting = self._fixed[f"path.{key_of_table}"]
        else:
            raise KeyError(key)
        of = f"of the {KIND_OF_TABLE[table]} {name}"
        return Setting(key, setting.type, f"{setting.help}, {of}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


_CHANGE_KEYS = {setting.name: setting for setting in _settings(CHANGE, catalog().changes.keys)}

SETTINGS: Mapping[str, Setting] = _Settings(
    (*_path_settings(), *_settings("host", catalog().host.keys), *_workload_settings())
)
"""Every key for cells by dotted name, in the order of factors.

Unlisted keys, for hops, changes and flows, are found by name.
"""

_FLOW_KEYS = {
    **{setting.name: setting for setting in SETTINGS.values() if section_of(setting.key) == "workload"},
    **{setting.name: setting for setting in _settings(FLOW, catalog().flows.keys) if setting.name != "name"},
}


def flow_settings() -> tuple[Setting, ...]:
    """A flow's keys without its name: its own, and workloads'."""
    return tuple(_FLOW_KEYS.values())


def change_settings() -> tuple[Setting, ...]:
    """A change's keys beside the path's, without its name."""
    return tuple(setting for name, setting in _CHANGE_KEYS.items() if name != "name")


def in_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order of factors.

    Keys for hops and changes follow the path's, as given; flows come last.
    """
    order = {key: place for place, key in enumerate(SETTINGS)}
    behind = max(place for key, place in order.items() if key.startswith("path."))
    return sorted(keys, key=lambda key: len(order) if key.startswith(f"{FLOW}.") else order.get(key, behind + 0.5))
