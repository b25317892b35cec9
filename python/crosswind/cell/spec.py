"""A planned run as the JSON object that `crosswind-cell` reads: docs/cell-protocol.md, version 1."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crosswind.catalog import TRANSPORTS
from crosswind.forecast.cost import forecast
from crosswind.study.cells import Budget, Parameters
from crosswind.study.path import DirectionParameters
from crosswind.study.plan import PlanItem
from crosswind.study.workload import WorkloadParameters
from crosswind.units import Queue

SCHEMA = "crosswind.cell/1"
LEAST_DEADLINE_NS = 60 * 10**9
MOST_DEADLINE_NS = 3600 * 10**9

_HOST_NAMES = {
    "send_buffer": "send_buffer_bytes",
    "receive_buffer": "receive_buffer_bytes",
    "min_rto": "min_rto_ns",
}
_KEYS = {
    "echo": ("size_bytes", "messages", "mode", "rate_per_s", "connection"),
    "transfer": ("size_bytes", "duration_ns", "direction", "count"),
    "connect": ("count",),
    "multiplex": ("streams", "size_bytes", "messages", "rate_per_s"),
    "page": ("count",),
}
# Sent where they are not what a cell does anyway, so that cells without them are the same as ever.
_UNLESS = {"stream": "kept", "payload": "binary", "resumption": "none", "polling": False}


def cell_json(
    item: PlanItem,
    *,
    output_directory: Path | None = None,
    packets: bool = False,
    capture: bool = False,
    qlog: bool = False,
    profile: bool = False,
) -> dict[str, Any]:
    """The cell protocol's object for one planned run, with whole numbers of ns, bytes and bit/s.

    Host keys that the study does not set are left out, so that the profile's stay. `output_directory` must exist
    when the cell starts; None writes no files. `qlog` is asked of QUIC transports, which alone have one.
    """
    parameters = item.cell.parameters
    cell: dict[str, Any] = {
        "schema": SCHEMA,
        "id": item.key,
        "seed": item.seed,
        "path": {
            "backend": parameters.path.backend,
            "family": parameters.path.family,
            "mtu_bytes": parameters.path.mtu_bytes,
            "forward": _direction(parameters.path.forward),
            "reverse": _direction(parameters.path.reverse),
        },
        "host": _host(parameters.host),
        "workload": _workload(parameters),
        "output": {
            "directory": None if output_directory is None else str(output_directory),
            "packets": packets,
            "capture": capture,
            **_extras(parameters, qlog=qlog, profile=profile),
        },
        "deadline_ns": deadline_ns(item),
    }
    asked = _budget(parameters.budget)
    return cell | ({"budget": asked} if asked else {})


def deadline_ns(item: PlanItem) -> int:
    """When a run is given up, in nanoseconds: ten times what is expected, at least a minute, at most an hour.

    Never later than when every exchange would have timed out (and its connection, where each has a new one); beyond an
    hour only where the study itself asks for that long, and then at twice what is expected.
    """
    expected_ns = forecast(item.cell).duration_ns
    work = item.cell.parameters.workload
    if work.kind == "program":
        return MOST_DEADLINE_NS
    generous_ns = max(min(10 * expected_ns, MOST_DEADLINE_NS), 2 * expected_ns)
    paced = work.mode == "open" or work.kind == "multiplex"
    if work.timeout_ns is not None and work.duration_ns is None and not paced:
        exchanges = (work.messages or 1) if work.kind == "echo" else (work.count or 1) * work.connections
        waits = 2 if work.connection == "new" else 1
        generous_ns = min(generous_ns, exchanges * waits * work.timeout_ns)
    return max(generous_ns, LEAST_DEADLINE_NS)


def _direction(direction: DirectionParameters) -> dict[str, Any]:
    return {
        "delay_ns": direction.delay_ns,
        "loss": float(direction.loss),
        "rate_bps": direction.rate_bps,
        "queue": None if direction.queue is None else _queue(direction.queue),
        "count": direction.count,
    }


def _queue(queue: Queue) -> dict[str, int]:
    if queue.packets is not None:
        return {"packets": queue.packets}
    return {"bytes": queue.size_bytes or 0}


def _host(host: Mapping[str, Any]) -> dict[str, Any]:
    return {_HOST_NAMES.get(key, key): value for key, value in host.items()}


def _workload(parameters: Parameters) -> dict[str, Any]:
    work = parameters.workload
    if work.kind == "program":
        server = None if work.server is None else list(work.server)
        return {"kind": "program", "client": list(work.client or ()), "server": server}
    own = {key: getattr(work, key) for key in _KEYS[work.kind] if getattr(work, key) is not None}
    shared: dict[str, Any] = {"transport": work.transport}
    if work.kind != "multiplex":
        shared["connections"] = work.connections
    shared["timeout_ns"] = work.timeout_ns
    page = {} if work.page is None else asdict(work.page)
    return {"kind": work.kind, **shared, **own, **page, **_chosen(work)}


def _chosen(work: WorkloadParameters) -> dict[str, Any]:
    chosen = {key: getattr(work, key) for key, usual in _UNLESS.items() if getattr(work, key) not in (None, usual)}
    return chosen | ({"direction": work.direction} if work.kind == "echo" and work.direction != "echo" else {})


def _extras(parameters: Parameters, *, qlog: bool, profile: bool) -> dict[str, bool]:
    known = TRANSPORTS.get(parameters.workload.transport or "")
    quic = known is not None and known.quic
    return ({"qlog": True} if qlog and quic else {}) | ({"profile": True} if profile else {})


def _budget(budget: Budget) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if budget.delay_error_p99_ns is not None:
        asked["delay_error_p99_ns"] = budget.delay_error_p99_ns
    if budget.starvation is not None:
        asked["starvation"] = float(budget.starvation)
    if budget.probe_starvation is not None:
        asked["probe_starvation"] = float(budget.probe_starvation)
    return asked
