"""`crosswind serve`: the server for other machines' cells."""

import ipaddress
import json
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from crosswind.cell.token import VARIABLE
from crosswind.cli.quantities import read_by
from crosswind.cli.text import seconds_text, size_text
from crosswind.errors import UsageError
from crosswind.report.text.format import count, count_of, quantity
from crosswind.study.server_address import DEFAULT_PORT
from crosswind.text.units import parse_size
from crosswind.text.visible import one_line

_DOCUMENTATION_ADDRESSES = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses without traffic: the kernel names its source address for them."""

_EPILOG = """\b
  crosswind serve
  crosswind serve --token-file token --port 9480

The server runs cells of clients that know its token, one at a time, and answers nobody else. It emulates nothing and
needs no root. docs/two-hosts.md describes what it does and does not do.

\b
Exit status: 0 ended by Ctrl-C or SIGTERM, 1 it cannot listen, 2 usage.
"""

_MAPPED_IPV4 = re.compile(r"\[::ffff:([0-9.]+)\]")
"""An IPv4 client on an IPv6 socket."""


@click.command(epilog=_EPILOG)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="TCP port of control connections.",
)
@click.option(
    "--data-port", type=click.IntRange(1, 65535), help="TCP and UDP port of measured traffic. Default: the next port."
)
@click.option("--address", help="Address to listen on. Default: every IPv4 and IPv6 address.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of the token, created if missing. Default: create a token and show it once.",
)
@click.option(
    "--max-seconds", type=click.IntRange(1), default=3600, show_default=True, help="Maximum duration of a cell."
)
@click.option(
    "--max-bytes",
    metavar="SIZE",
    callback=read_by(parse_size),
    default="100GB",
    show_default=True,
    help="Maximum bytes per cell, both directions together.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Maximum connections per cell.",
)
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines, without the token.")
def command(
    *,
    port: int,
    data_port: int | None,
    address: str | None,
    token_file: Path | None,
    max_seconds: int,
    max_bytes: int,
    max_connections: int,
    as_json: bool,
) -> int:
    """Serve cells of other machines (`crosswind run --to`)."""
    host = _every_address() if address is None else _checked_address(address)
    data_port = _data_port(port, data_port)
    # The server takes a while to import: neither --help nor a mistake should wait.
    from crosswind.cell.binary import find_binary
    from crosswind.cell.serving import Limits, Serving
    from crosswind.cell.token import make_or_read_token, new_token

    binary = find_binary()
    if as_json and token_file is None:
        raise UsageError("--json shows no token", hint="keep it in a file: --token-file FILE")
    token, is_new = make_or_read_token(token_file) if token_file else (new_token(), True)
    limits = Limits(max_seconds, max_bytes, max_connections)
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with (
        _stopped_by_signals(),
        Serving(binary, address=where, data_port=data_port, limits=limits, token=token) as serving,
    ):
        try:
            for event in serving.events():
                if as_json:
                    _print_now(json.dumps(event))
                else:
                    _print(event, host=host, token=token, token_file=token_file, is_new=is_new)
        except KeyboardInterrupt:
            return 0
    return 0


def _print(event: dict[str, Any], *, host: str, token: str, token_file: Path | None, is_new: bool) -> None:
    from datetime import datetime

    if event.get("event") == "listening":
        address = _own_address(host)
        for line in opening_lines(event, host=address, token=token, token_file=token_file, is_new=is_new):
            _print_now(line)
        return
    now = datetime.now().astimezone()
    happened = event_line(event, now.strftime("%H:%M:%S"))
    if happened is not None:
        _print_now(one_line(happened))


def _print_now(line: str) -> None:
    """A line at once, whatever reads it."""
    click.echo(line)
    sys.stdout.flush()


def _checked_address(address: str) -> str:
    """A local address, without brackets. Raises: UsageError."""
    text = address.strip("[]")
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        hint = "an address of this machine, as 192.0.2.7 or ::1; left out, all of them"
        raise UsageError(f"--address {address} is not an address", hint=hint) from None


def _every_address() -> str:
    """All local addresses: `::` accepts IPv4 too, unless the kernel lacks IPv6 or forbids it."""
    with suppress(OSError, ValueError), socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as tried:
        tried.bind(("::", 0))
        if not tried.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
            return "::"
    return "0.0.0.0"


def _data_port(port: int, data_port: int | None) -> int:
    if data_port is None and port == 65535:
        raise UsageError("no data port follows port 65535", hint="name one: --data-port PORT")
    if data_port == port:
        raise UsageError(f"--port and --data-port are both {port}", hint="they are two ports: leave out --data-port")
    return port + 1 if data_port is None else data_port


def _own_address(host: str) -> str:
    """This machine's address for others: the listening one, or its source address."""
    if not ipaddress.ip_address(host).is_unspecified:
        return host
    for family, other in _DOCUMENTATION_ADDRESSES.items():
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((other, 9))  # Sends nothing.
            except OSError:
                continue
            return str(probe.getsockname()[0])
    return socket.gethostname()


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Has SIGTERM act like Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def opening_lines(
    event: Mapping[str, Any], *, host: str, token: str, token_file: Path | None, is_new: bool
) -> Iterator[str]:
    """The lines printed when it listens.

    Args: event: `listening`. host: this machine's address for others. token_file: the token's place; None for a token
        shown only here. is_new: whether the file was made now.
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
    """One event's line; None for an unknown kind. Args: time: of day."""
    peer = _MAPPED_IPV4.sub(r"\1", str(event.get("peer")))
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
