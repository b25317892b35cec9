"""What a client prints (docs/peers.md), made of what the page reports."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Clock:
    """What times are of. Attributes: monotonic_ns: CLOCK_MONOTONIC when it showed 0."""

    name: str
    resolution_ns: int
    monotonic_ns: int


def ready(version: str, clock: Clock) -> Event:
    """The event that says that the browser has started."""
    return {"event": "ready", "implementation": f"Chromium {version}", "clock": asdict(clock)}


def events(report: Mapping[str, Any], said: Sequence[str], transport: str) -> Iterator[Event]:
    """The events of a report.

    Args: said: what the browser told developers of failed requests, in order. transport: of the cell.
    """
    for connected in report["connected"]:
        yield {"event": "connected", **connected}
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in report["samples"]]
    explain(rows, said, transport)
    for row in sorted(rows, key=lambda row: row["exchange"]):
        yield {"event": "sample", **row}
