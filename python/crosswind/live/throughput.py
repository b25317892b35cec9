"""Measures TCP throughput to a `crosswind serve`: one download and one upload, each on its own connection."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosswind.catalog.endpoints import NETWORK
from crosswind.cell.result import Finished
from crosswind.cell.spec import SCHEMA
from crosswind.errors import CrosswindError
from crosswind.execution.workers.worker import run_alone
from crosswind.files.temporary import temporary_directory
from crosswind.live.goodput import Goodput, TransferAmount
from crosswind.stats.estimate import without_interval

TRANSFER_DIRECTIONS = ("download", "upload")
_LONGEST_OF_A_SIZE_NS = 120 * 10**9
_SET_UP_NS = 60 * 10**9
_REASON = "one transfer: the next one may get more or less"


def measure_throughput(server: str, family: str, direction: str, amount: TransferAmount, *, binary: Path) -> Goodput:
    """Transfers the requested amount.

    Args:   server: HOST:PORT for control connections. direction: one of DIRECTIONS.
    Raises: CrosswindError when nothing could be transferred.
    """
    with temporary_directory() as directory:
        finished = run_alone(_cell(server, family, direction, amount, directory), binary=binary)
        return _goodput(direction, finished, directory)


def _cell(server: str, family: str, direction: str, amount: TransferAmount, directory: Path) -> Mapping[str, Any]:
    bound_ns = amount.duration_ns if amount.duration_ns is not None else _LONGEST_OF_A_SIZE_NS
    return {
        "schema": SCHEMA,
        "id": f"live-{direction}",
        "path": {"backend": NETWORK, "server": server, "family": family},
        "workload": {
            "kind": "transfer",
            "transport": "tcp",
            "direction": direction,
            "timeout_ns": bound_ns + _SET_UP_NS // 2,
            **amount.setting,
        },
        "output": {"directory": str(directory)},
        "deadline_ns": bound_ns + _SET_UP_NS,
    }


def _goodput(direction: str, finished: Finished, directory: Path) -> Goodput:
    """Raises: CrosswindError when the transfer did not end well."""
    import polars as pl

    (sample,) = pl.read_ipc(directory / "samples.arrow").to_dicts()
    if sample["outcome"] != "ok":
        told = finished.samples.outcomes[0].first_error or sample["outcome"]
        raise CrosswindError(
            f"the {direction} of --probe failed: {told}", hint="`crosswind reach` tries every transport"
        )
    time_ns, received_bytes = sample["received_ns"] - sample["sent_ns"], sample["received_bytes"]
    sender = "server" if direction == "download" else "client"
    host = getattr(finished.readback, sender)
    tcp = finished.network.tcp if finished.network else None
    counted = None if tcp is None else getattr(tcp, sender)
    return Goodput(
        direction,
        without_interval(8e9 * received_bytes / time_ns, _REASON, n=1, level=0.95, units=1),
        received_bytes,
        time_ns,
        None if host.socket is None else str(host.socket.get("congestion_control") or "") or None,
        None if counted is None else counted.segments_sent,
        None if counted is None else counted.retransmitted,
    )
