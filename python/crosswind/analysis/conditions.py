"""A run's measurement conditions, read from its cells as sent to crosswind-cell."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from crosswind.analysis.cells import CellData
from crosswind.analysis.endpoints import end_conditions
from crosswind.analysis.network import network_of
from crosswind.analysis.result import (
    ChangeConditions,
    Conditions,
    FlowConditions,
    PathConditions,
    PathDirections,
    SettingValues,
)
from crosswind.catalog import CellUnit, Key, KeyType, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import RunRecord
from crosswind.text.units import Queue, format_duration, format_probability, format_queue, format_rate, format_size

_NAMES = {"count": "rate counts"}
"""Names for ambiguous path settings: the units for a rate and a queue."""


def conditions_of(record: RunRecord, data: Sequence[CellData]) -> Conditions | None:
    """Common and varied settings; None for a run without cells."""
    if not data:
        return None
    parameters = [cell.parameters for cell in data]
    finished = [end for cell in data for end in cell.finished]
    kernels = (end.versions.kernel for end in finished)
    repetitions = [len(cell.runs) for cell in data]
    started = record.provenance.get("started")
    network = network_of(finished, captured=any((sent.get("output") or {}).get("capture") for sent in parameters))
    return Conditions(
        path=[] if network is not None else _path([sent.get("path") or {} for sent in parameters]),
        changes=_changes([sent.get("path") or {} for sent in parameters]),
        hosts=_hosts([sent.get("host") or {} for sent in parameters]),
        workload=_workload([sent.get("workload") or {} for sent in parameters]),
        flows=_flows([sent.get("flows") or [] for sent in parameters]),
        clocks=list(dict.fromkeys(run.clock for cell in data for run in cell.runs)),
        kernels=list(dict.fromkeys(filter(None, kernels))),
        repetitions=(min(repetitions), max(repetitions)),
        started=started if isinstance(started, str) else None,
        machine=_machine(record.provenance.get("machine") or {}),
        ends=end_conditions(finished),
        network=network,
    )


def _path(paths: Sequence[Mapping[str, Any]]) -> list[PathConditions]:
    """Every hop, the client's first; cells without a hop have nothing in its place."""
    hops = [hop_list.get("hops") or [hop_list] for hop_list in paths]
    names = dict.fromkeys(str(hop.get("name", "")) for hop_list in hops for hop in hop_list)
    return [
        PathConditions(hop=name, direction=way, settings=settings)
        for name in names
        for way, settings in _both_ways(_direction_keys(), _named(name, hops))
    ]


def _changes(paths: Sequence[Mapping[str, Any]]) -> list[ChangeConditions]:
    """The path's changes over time, one for each direction set by a change, or one for both."""
    keys = catalog().changes.keys
    changes = [change_list.get("changes") or [] for change_list in paths]
    told_changes = []
    for name in dict.fromkeys(str(change.get("name", "")) for change_list in changes for change in change_list):
        groups = _named(name, changes)
        when = _settings([key for key in keys if key.name != "name"], groups)
        sides = [(way, told) for way, told in _both_ways(_direction_keys(), groups, only_set=True) if told]
        if not sides:  # A trace alone, whose direction is among its own settings.
            sides = [("each way", [])]
        told_changes += [ChangeConditions(name=name, when=when, direction=way, settings=told) for way, told in sides]
    return told_changes


def _named(name: str, lists: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Each cell's table with this name."""
    return [next((table for table in tables if str(table.get("name", "")) == name), {}) for tables in lists]


def _direction_keys() -> list[Key]:
    return [replace(key, study=_NAMES.get(key.study, key.study)) for key in catalog().direction.keys]


def _both_ways(
    keys: Sequence[Key], groups: Sequence[Mapping[str, Any]], *, only_set: bool = False
) -> list[tuple[PathDirections, list[SettingValues]]]:
    """Both directions, as one where every cell has the same in both. Args: only_set: nothing else is told."""
    forward, reverse = ([group.get(way) or {} for group in groups] for way in DIRECTIONS)

    def told(sides: Sequence[Mapping[str, Any]]) -> list[SettingValues]:
        shown = [key for key in keys if any(key.name in side for side in sides)] if only_set else keys
        return _settings(shown, sides, always=[key.name for key in shown] if only_set else ())

    if forward == reverse:
        return [("each way", told(forward))]
    return [("client to server", told(forward)), ("server to client", told(reverse))]


def _hosts(hosts: Sequence[Mapping[str, Any]]) -> list[SettingValues]:
    """Host settings set by some cell, itself or by its profile: the others are the kernel's own."""
    # The clock has a place of its own.
    keys = [key for key in catalog().host.keys if key.name != "clock"]
    return _settings(keys, hosts, absent="the kernel's own")


def _workload(workloads: Sequence[Mapping[str, Any]], *, ends: bool = False) -> list[SettingValues]:
    """The workload's kind, its transport, and every varied or non-default setting; with `ends`, peers too."""
    kinds = list(dict.fromkeys(str(workload.get("kind")) for workload in workloads))
    of_kinds = [key for kind in kinds for key in _keys_of_workload(kind)]
    keys = {key.name: key for key in of_kinds if key.default_help is None or (ends and key.type is KeyType.PEER)}
    kind = SettingValues(name="kind", values=kinds, is_factor=len(kinds) > 1)
    return [kind, *_settings(list(keys.values()), workloads, always=("transport",))]


def _flows(flows: Sequence[Sequence[Mapping[str, Any]]]) -> list[FlowConditions]:
    """Every flow beside the workload; without its number of exchanges if it is endless."""
    conditions = []
    for name in dict.fromkeys(str(flow.get("name", "")) for of_cell in flows for flow in of_cell):
        named_flows = [flow for flow in _named(name, flows) if flow]
        workloads = [dict(item for item in flow["workload"].items() if item not in _ENDLESS) for flow in named_flows]
        keys = [key for key in catalog().flows.keys if key.name != "name"]
        conditions.append(
            FlowConditions(name=name, settings=_settings(keys, named_flows), workload=_workload(workloads, ends=True))
        )
    return conditions


_ENDLESS = (("count", 100_000_000), ("messages", 100_000_000), ("duration_ns", 3_600_000_000_000))
"""crosswind-cell's defaults for an endless flow."""


def _keys_of_workload(kind: str) -> Iterable[Key]:
    known = catalog().workloads.get(kind)
    return known.keys if known else ()


def _settings(
    keys: Sequence[Key], groups: Sequence[Mapping[str, Any]], *, absent: str | None = None, always: Sequence[str] = ()
) -> list[SettingValues]:
    """Settings with an effect in some cell, by the catalogue's names.

    Args: groups: each cell's. absent: an unset setting's text; None leaves out settings at their default everywhere.
        always: keys named whatever their values.
    """
    settings = []
    for key in keys:
        # A native end is not written into a cell.
        values = [group.get(key.name) for group in groups if absent or key.name in group or key.type is KeyType.PEER]
        defaults = [None] if absent else [None, key.default]
        if key.name not in always and all(value in defaults for value in values):
            continue
        numbers = [value for value in values if isinstance(value, int | float)]
        ordered: Sequence[Any] = sorted(numbers) if len(numbers) == len(values) else values
        texts = list(dict.fromkeys(absent if absent and value is None else _text(key, value) for value in ordered))
        settings.append(SettingValues(name=key.study.replace("_", " "), values=texts, is_factor=len(texts) > 1))
    return settings


def _text(key: Key, value: Any) -> str:
    """A cell's value as a study writes it."""
    if value is None:
        return _ABSENT.get(key.type) or ("unlimited" if key.unit is CellUnit.BITS_PER_SECOND else "none")
    if key.type in _BY_TYPE:
        return _BY_TYPE[key.type](value)
    if key.unit in _BY_UNIT:
        return _BY_UNIT[key.unit](value)
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_ABSENT = {KeyType.QUEUE: "unlimited", KeyType.PEER: "native"}
_BY_TYPE: Mapping[KeyType, Callable[[Any], str]] = {
    KeyType.QUEUE: lambda value: format_queue(Queue(value.get("packets"), value.get("bytes"), value.get("time_ns"))),
    KeyType.PEER: lambda value: str(value["name"]),
    KeyType.FILE: lambda value: Path(value).name,
    KeyType.ARGUMENTS: lambda value: shlex.join(map(str, value)),
    KeyType.SERIES: lambda value: f"{len(value)} numbers from {value[0]} to {value[-1]}" if value else "none",
}
_BY_UNIT: Mapping[CellUnit | None, Callable[[Any], str]] = {
    CellUnit.NANOSECONDS: lambda value: format_duration(round(value)),
    CellUnit.BITS_PER_SECOND: lambda value: format_rate(round(value)),
    CellUnit.BYTES: lambda value: format_size(round(value)),
    CellUnit.PROBABILITY: lambda value: format_probability(Decimal(repr(value))),
    CellUnit.PER_SECOND: lambda value: f"{value:g} a second",
}


def _machine(machine: Mapping[str, Any]) -> str | None:
    """The machine in words: its processors, and whether it is visibly virtual."""
    cpus, model = machine.get("cpus"), machine.get("cpu_model")
    if not cpus:
        return None
    words = f"{cpus} processor{'' if cpus == 1 else 's'}{f' ({model})' if model else ''}"
    return f"virtual machine, {words}" if machine.get("virtualisation") else words
