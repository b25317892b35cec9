"""Plans and manifests for tests, without a study behind them."""

from typing import Any

import numpy as np
import polars as pl

from crosswind.record import SAMPLE_SCHEMA


def entry(number: int) -> dict[str, Any]:
    return {
        "key": f"c{number:03d}-r00",
        "order": number,
        "cell": number,
        "repetition": 0,
        "block": 0,
        "seed": 1,
        "expected_ns": 1,
        "levels": {"path.loss": f"{number}%"},
        "parameters": {"schema": "crosswind.cell/1", "workload": {"kind": "echo"}, "output": {"packets": False}},
    }


def manifest(cells: int = 2, name: str = "a-study", started: str = "2026-01-01T00:00:00.000+00:00") -> dict[str, Any]:
    return {
        "name": name,
        "study": {"title": "A study"},
        "study_digest": "d1",
        "presentation": {"name": name, "title": "A study", "published": [], "models": [], "notes": []},
        "options": {"packets": False, "capture": False},
        "plan": [entry(number) for number in range(cells)],
        "provenance": {"started": started},
        "sessions": [],
    }


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
    "program": None,
    "ledger": {
        way: {
            "in": 60,
            "delivered": 60,
            "dropped": {"loss": 0, "queue": 0, "device": 0},
            "queued": 0,
            "in_bytes": 3600,
            "delivered_bytes": 3600,
        }
        for way in ("forward", "reverse")
    }
    | {"closed": True},
    "fidelity": {
        "delay_error_ns": {"n": 120, "p50": 9000, "p99": 41000, "max": 90000},
        "starvation": WAITING,
        "probe_starvation": {"client": WAITING, "server": WAITING},
        "kernel_drops": 0,
        "realtime": True,
        "memory_locked": True,
        "cpus": {"emulator": [1], "hosts": [0]},
        "budget": {"delay_error_p99_ns": 1_000_000, "starvation": 0.05, "probe_starvation": 0.4},
        "within_budget": True,
    },
    "readback": {"client": HOST_READBACK, "server": HOST_READBACK},
    "cpu": {"client_ns": 1, "server_ns": 1, "emulator_ns": 1},
    "traffic": None,
    "profile": None,
    "queueing_ns": {way: {"n": 60, "p50": 0, "p99": 0, "max": 0} for way in ("forward", "reverse")},
    "versions": {"crosswind_cell": "0.1.0", "kernel": "6.1.0"},
    "elapsed_ns": 1_000_000,
    "processors_awake": True,
    "peak_memory_bytes": None,
}
"""A `finished` event as docs/cell-protocol.md has it."""


def echo_samples(n: int = 60) -> pl.DataFrame:
    """Samples of a clean echo: round trips of 20.0, 20.1, ... ms in a seeded order."""
    rtt_ns = np.random.default_rng(1).permutation(20_000_000 + 100_000 * np.arange(n))
    sent_ns = np.arange(n) * 30_000_000
    columns = {
        "exchange": np.arange(n),
        "connection": np.zeros(n),
        "intended_ns": sent_ns,
        "sent_ns": sent_ns,
        "received_ns": sent_ns + rtt_ns,
        "request_ns": rtt_ns // 2,
        "reply_ns": rtt_ns // 2,
        "server_ns": np.zeros(n),
        "sent_bytes": np.ones(n),
        "received_bytes": np.ones(n),
        "outcome": ["ok"] * n,
    }
    return pl.DataFrame({name: columns.get(name, [None] * n) for name in SAMPLE_SCHEMA}).cast(dict(SAMPLE_SCHEMA))
