"""`crosswind shell`: a shell of the user's on the client's host, with an emulated path to a server's host."""

import os
from typing import Any

import click

from crosswind.api.programs import PORT
from crosswind.cli.programs import ProgramOptions, program_options, run_programs
from crosswind.cli.settings import chosen
from crosswind.errors import UsageError

_SERVER = {"ipv4": "198.18.0.2", "ipv6": "2001:2::2"}
"""The server host's address, by family (docs/cell-protocol.md)."""

_EPILOG = """\b
  crosswind shell --network 4g --server "python3 -m http.server {port}"

\b
The server's host is "server" (the first line shows its address and {port}), this one is "client".
The path runs in real time, which needs root or user namespaces. A summary follows on standard error.
Exit status: the shell's; the others are those of `crosswind exec`.
"""


@click.command(epilog=_EPILOG)
@program_options
def command(**given: Any) -> int:
    """Open a shell ($SHELL, else sh) whose network is an emulated path."""
    asked, settings = ProgramOptions.of(given), chosen(given)
    if settings.get("host.clock", "real") not in ("real", "auto"):
        raise UsageError(
            "a shell needs the real clock: virtual time has no interactive input",
            hint="leave out --clock; `crosswind exec --clock virtual` runs a command",
        )
    shell = [os.environ.get("SHELL") or "sh"]
    greeting = _greeting(settings, asked.server)
    return run_programs(shell, asked, {**settings, "host.clock": "real"}, greeting=greeting)


def _greeting(given: dict[str, str], server: str | None) -> str:
    address = _SERVER.get(given.get("path.family", "ipv4"), "")
    port = given.get("workload.port", str(PORT) if "{port}" in (server or "") else "")
    where = f"{address}, port {port}" if port else address
    return f'crosswind: this shell is on a path to the host "server" ({where}); `exit` leaves it'
