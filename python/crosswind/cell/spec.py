"""A study's cell as JSON for `crosswind-cell`: docs/cell-protocol.md, version 1.

It has only the study's settings; crosswind-cell fills in the rest. Names and units are the catalogue's.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from crosswind.catalog import KeyType, catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.study.cells import Cell
from crosswind.study.keys import FLOW, HOP, names_of
from crosswind.study.levels import Level, Peer, SeriesFile, Value
from crosswind.study.network_files import place_of
from crosswind.study.resolve import Resolved, changes_of, hops_of, resolve
from crosswind.text.units import Queue

SCHEMA = "crosswind.cell/1"
_LARGEST = 10**300
"""No key has such a number, and crosswind-cell reads none of more digits."""

Json = dict[str, Any]


def cell_json(cell: Cell, budget: Mapping[str, Level]) -> Json:
    """One cell for the protocol, with whole numbers in ns, bytes and bit/s.

    Args: budget: the study's for every cell, by its names.
    """
    groups = {group: _object(settings) for group, settings in resolve(cell.settings).items()}
    keys = catalog().budget.by_study
    path = dict(groups["path"])
    hops = hops_of(cell.settings)
    if hops == ("path",):
        path |= _both(groups, "path")
    else:
        path["hops"] = [{"name": hop.removeprefix(f"{HOP}."), **_both(groups, hop)} for hop in hops]
    if changes := changes_of(cell.settings):
        path["changes"] = [{"name": name, **groups[key], **_both(groups, key)} for key, name in changes.items()]
    flows = []
    for name in names_of(FLOW, cell.settings):
        flow = f"{FLOW}.{name}"
        workload = _workload(str(cell.settings[f"{flow}.kind"].value), groups[f"{flow}.workload"])
        flows.append({"name": name, **groups[flow], "workload": workload})
    return {
        "schema": SCHEMA,
        "path": path,
        "host": groups["host"],
        "workload": _workload(cell.kind, groups["workload"]),
        **({"flows": flows} if flows else {}),
        "budget": {keys[name].name: _json(level.value) for name, level in budget.items()},
    }


def _workload(kind: str, settings: Json) -> Json:
    keys = catalog().workloads[kind].keys
    usual = next((key.default for key in keys if key.type is KeyType.TRANSPORT and key.default is not None), None)
    return {"kind": kind, **({} if usual is None else {"transport": usual}), **settings}


def _both(groups: Mapping[str, Json], owner: str) -> Json:
    return {direction: groups[f"{owner}.{direction}"] for direction in DIRECTIONS}


def _object(settings: tuple[Resolved, ...]) -> Json:
    return {setting.key.name: _json_of(setting) for setting in settings}


def _json_of(setting: Resolved) -> Any:
    if setting.key.type is not KeyType.FILE or not isinstance(setting.value, str):
        return _json(setting.value)
    # crosswind-cell may run in another directory.
    return str(place_of(setting.value))


def _json(value: Value) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        return math.copysign(_LARGEST, value)
    if isinstance(value, Peer):
        limit = {} if value.start_timeout_ns is None else {"start_timeout_ns": value.start_timeout_ns}
        return {"name": value.name, "command": list(value.command), "ready": value.ready, **limit}
    if isinstance(value, Queue):
        return value.limits
    if isinstance(value, SeriesFile):
        return {"file": str(Path(value.file).absolute())}
    return [_json(item) for item in value] if isinstance(value, tuple) else value
