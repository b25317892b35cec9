"""`crosswind reach`: checks the transports' way to a server on another machine."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from crosswind.catalog import catalog
from crosswind.cli.to import server_at, token_file_option
from crosswind.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from crosswind.execution.reach import Reached

SCHEMA = "crosswind.reach/1"

_EPILOG = """\b
  crosswind reach example.org --token-file token
  crosswind reach [2001:db8::7]:9470 --transport tcp,http3 --token-file token

\b
Exit status: 0 every transport gets through, 1 a transport is blocked or there is no server, 2 usage.
"""


@click.command(epilog=_EPILOG)
@click.argument("server", metavar="HOST[:PORT]")
@click.option("--transport", "named", metavar="TRANSPORT", help="Transports to try, separated by commas. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.reach/1.")
@token_file_option
def command(server: str, named: str | None, as_json: bool, token_file: Path | None) -> int:
    """Check which transports reach the `crosswind serve` on another machine.

    Each transport makes a few small exchanges. A firewall may let TCP pass and drop UDP, which carries QUIC, HTTP/3 and
    WebTransport. A transport without an answer within 3 seconds is blocked.
    """
    # The runner takes a while to import: neither --help nor a mistake should wait.
    from crosswind.cell.binary import find_binary
    from crosswind.cell.token import use_token
    from crosswind.execution.reach import reach
    from crosswind.text.console import plain_console

    address, transports = server_at(server, "HOST[:PORT]"), _transports(named)
    use_token(token_file)
    console, width, tried = plain_console(), longest(transports), []
    for reached in reach(address, transports, binary=find_binary()):
        tried.append(reached)
        if not as_json:
            print_one(console, reached, width)
    if as_json:
        rows = [
            {
                "transport": reached.transport,
                "reachable": not reached.is_blocked,
                "round_trip_ns": reached.round_trip_ns,
                "obstacle": reached.obstacle or None,
            }
            for reached in tried
        ]
        document = {"schema": SCHEMA, "server": address, "transports": rows}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    return 1 if any(reached.is_blocked for reached in tried) else 0


def _transports(named: str | None) -> list[str]:
    known = list(catalog().transports)
    if named is None:
        return known
    names = [name.strip() for name in named.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"--transport: there is no transport {name!r}", hint=did_you_mean(name, known))
    return names


def print_reached(console: Console, server: str, tried: "Sequence[Reached]") -> None:
    """A heading and a line for each transport."""
    console.print(Text(f"to {server}:"), soft_wrap=True)
    width = longest(reached.transport for reached in tried)
    for reached in tried:
        print_one(console, reached, width)


def print_one(console: Console, reached: "Reached", width: int) -> None:
    """Prints one transport's line. Args: width: the longest name's."""
    style = "red" if reached.is_blocked else "green"
    console.print(Text(f"  {reached.transport:<{width}}  ").append(reached.text, style=style), soft_wrap=True)


def longest(names: Iterable[str]) -> int:
    """Characters in the longest name."""
    return max(map(len, names), default=0)
