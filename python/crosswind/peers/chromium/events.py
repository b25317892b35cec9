"""What a client prints (docs/peers.md), made of what the page reports."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosswind.peers.chromium.network_errors import explain

Event = Mapping[str, Any]

_COLUMNS = (
    "exchange",
    "connection",
    "stream",
    "intended_ns",
    "sent_ns",
    "received_ns",
    "sent_bytes",
    "received_bytes",
    "outcome",
    "error",
)


def say(event: Event) -> None:
    """Prints one event."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def ready(version: str, origin_ns: int, resolution_ns: int) -> Event:
    """The event that says that the browser has started, with which clock."""
    clock = {"name": "performance.now", "resolution_ns": resolution_ns, "monotonic_ns": origin_ns}
    return {"event": "ready", "implementation": f"Chromium {version}", "clock": clock}


def events(report: Mapping[str, Any], said: Sequence[str], transport: str) -> Iterator[Event]:
    """The events of a report.

    Args: said: what the browser told developers of failed requests, in order. transport: of the cell.
    """
    for connected in report["connected"]:
        yield {"event": "connected", **connected}
    for warning in report.get("warnings", ()):
        yield {"event": "warning", "message": warning}
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in report["samples"]]
    explain(rows, said, transport)
    for row in sorted(rows, key=lambda row: row["exchange"]):
        yield {"event": "sample", **row}
