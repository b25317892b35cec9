"""`crosswind completions`: click's completion script for a shell."""

import click
from click.shell_completion import get_completion_class

_EPILOG = """\b
  eval "$(crosswind completions bash)"                  in ~/.bashrc
  eval "$(crosswind completions zsh)"                   in ~/.zshrc
  crosswind completions fish | source                   in ~/.config/fish/config.fish
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: for commands, options and their values."""
    click.echo(completions_for(shell, context.find_root().command))


def completions_for(shell: str, cli: click.Command) -> str:
    """The script for a shell."""
    made = get_completion_class(shell)
    assert made is not None  # They are click's own.
    return made(cli, {}, "crosswind", "_CROSSWIND_COMPLETE").source()
