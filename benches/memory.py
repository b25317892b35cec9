#!/usr/bin/env python3
"""How much memory the packet records of a cell take (`make bench BENCH=memory`). Needs root."""

from pathlib import Path

import polars as pl
from common import MILLISECOND, main, run_cell, show, symmetric


def records(directory: Path) -> None:
    """Peak memory of a cell that records a million packets."""
    bulk = {"kind": "transfer", "transport": "tcp", "duration_ns": 6000 * MILLISECOND}
    idle = run_cell({"kind": "echo", "transport": "tcp", "messages": 1}, path=symmetric(delay_ns=MILLISECOND))
    result = run_cell(bulk, path=symmetric(delay_ns=MILLISECOND), output=directory, packets=True)
    rows = pl.scan_ipc(directory / "packets.arrow").select(pl.len()).collect().item()
    ledger = result["ledger"]
    entered = ledger["forward"]["in"] + ledger["reverse"]["in"]
    show(
        "Peak memory with packet records",
        f"{result['peak_memory_bytes'] / 1e6:.0f} MB with {rows} records on disk ({entered} packets in the ledger)",
        f"{idle['peak_memory_bytes'] / 1e6:.0f} MB for one message",
        f"{(result['peak_memory_bytes'] - idle['peak_memory_bytes']) / max(rows, 1):.0f} bytes a record",
        "under 300 MB at a million records",
    )


if __name__ == "__main__":
    main({"records": records})
