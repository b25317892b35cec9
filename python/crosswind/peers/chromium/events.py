"""A client's output (docs/peers.md), made from the page's report."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

DevtoolsEvent = Mapping[str, Any]

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

UNKNOWN_OUTCOME = "network"
"""A page's outcome for an unknown one."""

_CODE = re.compile(r"net::(ERR_[A-Z0-9_]+(?:\.[A-Z0-9_]+)*)")

_MEANINGS: Mapping[tuple[str, str | None], str] = {
    ("http3", "ERR_CONNECTION_REFUSED"): "Chromium tried TCP: QUIC is disabled, by a policy or a flag",
    ("webtransport", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
    ("webtransport-datagram", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
    ("socketio-webtransport", "ERR_METHOD_NOT_SUPPORTED"): "the server speaks HTTP/3, but not WebTransport",
}

_OUTCOMES = (
    ("CERT", "certificate"),
    ("REFUSED", "refused"),
    # A datagram answered with "port unreachable".
    ("QUIC_PACKET_WRITE_ERROR", "refused"),
    ("TIMED_OUT", "timeout"),
    ("NETWORK_IDLE_TIMEOUT", "timeout"),
    ("HANDSHAKE_TIMEOUT", "timeout"),
    ("RESET", "reset"),
    ("ABORTED", "reset"),
    ("CLOSED", "closed"),
    ("EMPTY_RESPONSE", "closed"),
    ("PROTOCOL", "protocol"),
    ("INVALID", "protocol"),
)


def say(event: DevtoolsEvent) -> None:
    """Prints one event."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class BrowserClock:
    """The clock behind all times. Attributes: monotonic_ns: CLOCK_MONOTONIC at its 0."""

    name: str
    resolution_ns: int
    monotonic_ns: int


def ready(version: str, clock: BrowserClock) -> DevtoolsEvent:
    """The event for a started browser."""
    return {"event": "ready", "implementation": f"Chromium {version}", "clock": asdict(clock)}


def events(report: Mapping[str, Any], said: Sequence[str], transport: str) -> Iterator[DevtoolsEvent]:
    """A report's events.

    Args: said: the browser's developer messages on failed requests, in order. transport: the cell's.
    """
    for connected in report["connected"]:
        yield {"event": "connected", **connected}
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in report["samples"]]
    explain(rows, said, transport)
    for row in sorted(rows, key=lambda row: row["exchange"]):
        yield {"event": "sample", **row}


def explain(rows: Sequence[MutableMapping[str, Any]], said: Sequence[str], transport: str) -> None:
    """Replaces samples' outcome `network`, in the order of the browser's messages.

    Args: rows: samples. said: the messages; if there are fewer than failures, the last one holds for the rest.
    """
    codes = [match[1] for match in map(_CODE.search, said) if match]
    unknown = [row for row in rows if row["outcome"] == UNKNOWN_OUTCOME]
    for index, row in enumerate(unknown):
        code = codes[min(index, len(codes) - 1)] if codes else None
        row["outcome"] = outcome(code)
        meaning = _MEANINGS.get((transport, code))
        because = f"{code or 'Chromium does not say why'}{f' ({meaning})' if meaning else ''}"
        row["error"] = f"{row['error']}: {because}"


def outcome(code: str | None) -> str:
    """The outcome (docs/result.md) for an error in Chromium's network stack."""
    return next((outcome for part, outcome in _OUTCOMES if code and part in code), "error")
