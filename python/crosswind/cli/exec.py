"""`crosswind exec`: a command of the user's on an emulated path, as if it had been called without Crosswind."""

from typing import Any

import click

from crosswind.cli.programs import ProgramOptions, program_options, run_programs
from crosswind.cli.settings import chosen
from crosswind.errors import UsageError

_EPILOG = """\b
  crosswind exec --network 4g --server "python3 -m http.server {port}" -- curl -sS http://server:{port}/
  crosswind exec --delay 20ms --loss 2% -- ping -c 10 {address}

\b
In both commands {address} (and the name "server") is the server's host, {client} the client's, {port} a free port,
{port:NAME} further ones; {cert}, {key} and {ca} are files of a certificate for both hosts.
With --output, {output} is a directory whose files come back with the run.
Standard input, output and errors are the command's own; the summary follows on standard error.

\b
Exit status: the command's, or 128 and the number of the signal that ended it; and
  2    the command line or the path is wrong
  124  the command reached its timeout, or virtual time stood still for 30 s
  125  the command could not run, because of the server, a program beside it or the machine
  126  the command is not executable
  127  the command was not found
  130  interrupted
"""


@click.command("exec", epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@click.argument("client", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND [ARGUMENT]...")
@click.option("--repetitions", type=click.IntRange(1), default=1, help="Number of times to run the command.")
@click.option(
    "--round-trips", is_flag=True, help="Also run it over three more delays, and show how many round trips it takes."
)
@program_options
def command(*, client: tuple[str, ...], repetitions: int, round_trips: bool, **given: Any) -> int:
    """Run COMMAND on a client host, and the --server command on a server host, with an emulated path between them."""
    asked = ProgramOptions.of(given)
    if asked.capture is not None and repetitions > 1:
        raise UsageError("--capture writes one file, of one repetition", hint="leave out --repetitions, or --capture")
    return run_programs(list(client), asked, chosen(given), repetitions=repetitions, round_trips=round_trips)
