"""Options for runs over the network to another machine, and their effect on a study."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from crosswind.cell.token import VARIABLE
from crosswind.cli.settings import options
from crosswind.errors import UsageError
from crosswind.study.server_address import server_address
from crosswind.text.units import UnitError

if TYPE_CHECKING:
    from crosswind.study.design import Study

F = TypeVar("F", bound=Callable[..., Any])

to_option: Callable[[F], F] = click.option(
    "--to", metavar="HOST[:PORT]", help="Run over the network to the `crosswind serve` there; nothing is emulated."
)


def server_at(text: str, option: str = "--to") -> str:
    """The server on a command line. Raises: UsageError."""
    try:
        return server_address(text)
    except UnitError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from None


def study_to(study: "Study", server: str, settings: Collection[str], *, family: str | None = None) -> "Study":
    """A study over the network to a server; reports omitted parts on standard error.

    Args: settings: dotted keys from the command line. family: `path.family` among them.
    Raises: UsageError for settings of an emulated path; StudyError when no part is left.
    """
    # Studies take a while to import: commands without one should not wait.
    from crosswind.study.real_network import is_emulated, over_network

    refused = [key for key in settings if is_emulated(_without_part(key)) and key != "path.family"]
    if refused:
        names = options()
        listed = ", ".join(names.get(key, f"--set {key}") for key in refused)
        raise UsageError(
            f"{listed}: with --to nothing is emulated",
            hint="leave it out, or run on an emulated path: leave out --to",
        )
    design, said = over_network(study, server, family=family)
    for sentence in said:
        click.echo(f"note: {sentence}", err=True)
    return design


def _without_part(key: str) -> str:
    """A dotted key, which may be that of one part, without it: `host.mtu` of `part.NAME.host.mtu`."""
    words = key.split(".")
    return ".".join(words[2:]) if words[0] == "part" and len(words) > 3 else key


token_file_option: Callable[[F], F] = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"File with the server's token. Default: the environment variable {VARIABLE}.",
)
