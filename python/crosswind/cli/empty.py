"""What is given but empty: `--to "$HOST"` with a variable that nobody set would otherwise be as if it were left out."""

from collections.abc import Sequence
from contextlib import suppress

import click

from crosswind.errors import UsageError


def refuse_empty(command: click.Command, context: click.Context, arguments: Sequence[str]) -> None:
    """Refuses options and single arguments of a command whose value is empty; the words of programs may be.

    Args: context: of the command's group. Raises: UsageError.
    """
    own = command.context_class(command, parent=context, **command.context_settings)
    # What is wrong besides is said when the command itself reads its line.
    with suppress(click.UsageError):
        given, _, _ = command.make_parser(own).parse_args(list(arguments))
        for parameter in command.params:
            value = given.get(parameter.name or "")
            if parameter.nargs == 1 and (value == "" or (isinstance(value, list) and "" in value)):
                name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(own)
                raise UsageError(f"{name} is empty", hint="is a variable unset? Give it a value, or leave it out")
