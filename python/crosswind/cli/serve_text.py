"""What `crosswind serve` prints: where it listens, what the other machine has to do, and a line for each event."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosswind.cell.token import VARIABLE
from crosswind.cli.text import seconds_text, size_text
from crosswind.report.text.format import count, count_of, quantity
from crosswind.study.server_address import DEFAULT_PORT

_FROM_IPV4 = re.compile(r"\[::ffff:([0-9.]+)\]")
"""A client of IPv4, as a socket of IPv6 has it."""


def opening_lines(
    event: Mapping[str, Any], *, host: str, token: str, token_file: Path | None, is_new: bool
) -> Iterator[str]:
    """What to say once it listens.

    Args: event: `listening`. host: the address by which others may reach this machine. token_file: where the token is;
        None for one that is shown here and nowhere else. is_new: whether the file was made.
    """
    address, data_port = str(event["address"]), int(event["data_port"])
    port = int(address.rpartition(":")[2])
    yield f"listening on {address} for control connections, and on port {data_port} for measured traffic"
    yield f"open in firewalls: TCP {port}, TCP {data_port}, UDP {data_port}"
    if token_file is not None:
        yield f"token: in {token_file}{', created now' if is_new else ''}; copy the file to the other machine"
    else:
        yield f"token: {token}  (shown this once; --token-file FILE keeps one)"
    yield "on the other machine:"
    server = _server(host, port)
    if token_file is not None:
        yield f"  crosswind run latency-by-link --to {server} --token-file {shlex.quote(token_file.name)}"
    else:
        yield f"  {VARIABLE}={token} crosswind run latency-by-link --to {server}"
    yield "Ctrl-C ends the server."


def event_line(event: Mapping[str, Any], time: str) -> str | None:
    """The line of one event; None for one of a kind that this version does not know. Args: time: of day."""
    peer = _FROM_IPV4.sub(r"\1", str(event.get("peer")))
    match event.get("event"):
        case "refused":
            return f"{time} {peer}: refused: {event.get('reason')}"
        case "refused_more":
            return f"{time} {count(int(event['count']))} more were refused within {event['seconds']} s"
        case "cell_started":
            return f"{time} {peer}: {_cell(event)}: {event.get('workload')} over {event.get('transport')}"
        case "cell_ended":
            return f"{time} {peer}: {_cell(event)}: {_ended(event)}"
        case _:
            return None


def _cell(event: Mapping[str, Any]) -> str:
    return f"cell {event.get('id')}" if event.get("id") else "a cell"


def _ended(event: Mapping[str, Any]) -> str:
    """As "done, 1.2 s, 3 connections, 123 B received, 456 B sent"."""
    seconds = float(event.get("seconds") or 0.0)
    parts = [
        str(event.get("outcome")),
        quantity(1e9 * seconds, "ns") if seconds < 60 else seconds_text(seconds),
        count_of(int(event.get("connections") or 0), "connection"),
        f"{size_text(event.get('received_bytes') or 0)} received",
        f"{size_text(event.get('sent_bytes') or 0)} sent",
    ]
    return ", ".join(parts)


def _server(host: str, port: int) -> str:
    """As `--to` takes it."""
    name = f"[{host}]" if ":" in host else host
    if port == DEFAULT_PORT:
        return host if ":" not in host else name
    return f"{name}:{port}"
