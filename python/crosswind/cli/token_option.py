"""`--token-file`: how a command that uses the server on another machine is told its token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from crosswind.cell.token import VARIABLE

F = TypeVar("F", bound=Callable[..., Any])

token_file_option: Callable[[F], F] = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"File with the server's token. Default: the environment variable {VARIABLE}.",
)
