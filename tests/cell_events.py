"""Events of cells for tests, as a cell prints them and as they are read."""

from typing import Any

from crosswind.cell.events import Progress
from crosswind.cell.result import Finished

WAITING = {"run_ns": 1000, "wait_ns": 1, "elapsed_ns": 1_000_000, "fraction": 0.001}
HOST_READBACK: dict[str, Any] = {"sysctl": {}, "route": {}, "device": {}, "socket": None}

FINISHED: dict[str, Any] = {
    "event": "finished",
    "schema": "crosswind.cell-result/1",
    "id": "",
    "valid": True,
    "reasons": [],
    "warnings": [],
    "samples": {"rows": 60, "ok": 60, "lost": 0, "outcomes": []},
    "flows": [],
    "program": None,
    "peers": None,
    "ledger": {
        way: {
            "in": 60,
            "delivered": 60,
            "dropped": {"loss": 0, "queue": 0, "device": 0},
            "marked": 0,
            "hops": [],
            "queued": 0,
            "in_bytes": 3600,
            "delivered_bytes": 3600,
            "icmp": 0,
            "duplicated": 0,
            "corrupted": 0,
            "reordering": None,
            "background": None,
        }
        for way in ("forward", "reverse")
    }
    | {"closed": True},
    "fidelity": {
        "delay_error_ns": {"n": 120, "p50": 9000, "p99": 41000, "max": 90000},
        "starvation": WAITING,
        "probe_starvation": {"client": WAITING, "server": WAITING},
        "exchange_delay": {"hosts_ns": 6_000, "path_ns": 1_000, "median_ns": 20_400_000},
        "held_ns": 0,
        "kernel_drops": 0,
        "realtime": True,
        "in_kernel": False,
        "memory_locked": True,
        "cpus": {"emulator": [1], "hosts": [0]},
        "budget": {
            "delay_error_p99_ns": 1_000_000,
            "starvation": 0.05,
            "probe_starvation": 0.4,
            "exchange_delay_ns": 20_000,
            "exchange_delay_share": 0.02,
        },
        "within_budget": True,
    },
    "readback": {"client": HOST_READBACK, "server": HOST_READBACK},
    "cpu": {"client_ns": 1, "server_ns": 1, "emulator_ns": 1},
    "traffic": None,
    "network": None,
    "netem": None,
    "profile": None,
    "queueing_ns": {way: {"n": 60, "p50": 0, "p99": 0, "max": 0} for way in ("forward", "reverse")},
    "versions": {"crosswind_cell": "0.1.0", "kernel": "6.1.0"},
    "elapsed_ns": 1_000_000,
    "virtual_time": False,
    "processors_awake": True,
    "peak_memory_bytes": None,
    "tcp_retransmits": {"client": 0, "server": 0},
}
"""A `finished` event as docs/cell-protocol.md has it."""

PROGRESS: dict[str, Any] = {
    "event": "progress",
    "done": 1,
    "total": 2,
    "lost": 0,
    "elapsed_ns": 1_000_000_000,
    "median_ns": None,
    "fidelity": None,
}
"""A `progress` event."""

MISSED_FIDELITY: dict[str, Any] = {**FINISHED["fidelity"], "within_budget": False}
"""The fidelity of a cell that missed its budget."""


NETWORK_CLOCKS = {
    "offset_ns": -1_250_000,
    "uncertainty_ns": 61_000,
    "drift_ns": 0,
    "method": "both ways",
    "one_way": False,
}


def network(*, sent: int = 1000, again: int = 10, **changes: Any) -> dict[str, Any]:
    """What a cell says of its network: as many segments sent, and retransmitted, to the server, none the other way."""
    own = {
        "connections": 1, "segments_sent": sent, "retransmitted": again, "shortest_round_trip_ns": 20_000_000,
        "busy_ns": 2_000_000_000, "receive_window_limited_ns": 500_000_000, "send_buffer_limited_ns": 0,
    }  # fmt: skip
    other = {**own, "segments_sent": 500, "retransmitted": 0}
    return {
        "server": "192.0.2.7:9470",
        "client": "192.0.2.2",
        "data_port": 9471,
        "crosswind_cell": "0.1.1",
        "kernel": "6.8.0",
        "round_trip_ns": 20_000_000,
        "clocks": NETWORK_CLOCKS,
        "tcp": {"client": own, "server": other},
    } | changes


def finished(**changes: Any) -> Finished:
    """A result that was read."""
    return Finished.model_validate({**FINISHED, **changes}, strict=False)


def progress(**changes: Any) -> Progress:
    """A progress event that was read."""
    return Progress.model_validate({**PROGRESS, **changes})
