"""The section "Every command and option" in docs/cli.md, made from the commands themselves.

    python -m crosswind.cli.reference docs/cli.md

rewrites it between its markers. The rest is handwritten.
"""

from collections.abc import Iterator

import click

from crosswind.cli import cli
from crosswind.cli.settings import options
from crosswind.text.sections import fill_sections, rewrite, table_of


def with_commands(page: str) -> str:
    """A page with the section between its markers written anew."""
    return fill_sections(page, "table", {"commands": section})


def section() -> str:
    """Every command with its arguments and options, and the options for a study's keys."""
    parts = [_part("crosswind", cli, f"`crosswind COMMAND`: {_first_sentence(cli)}")]
    for name in command_names():
        command = command_of(name)
        parts.append(_part(f"crosswind {name}", command, _first_sentence(command)))
    settings = [option_row(option) for option in every_option(command_of("run")) if _is_setting(option)]
    head = "Each sets a key of a study; commas separate the levels of a factor. They are options of `run` and `plan`."
    parts.append(f"### Options that set a key\n{head}\n\n{table_of(('option', 'meaning'), settings)}")
    return "\n".join(parts)


def command_names() -> list[str]:
    """Every command."""
    return cli.list_commands(click.Context(cli))


def command_of(name: str) -> click.Command:
    """The command by name."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return command


def option_names() -> set[str]:
    """Every command's options, as typed."""
    commands = [cli, *map(command_of, command_names())]
    return {name for command in commands for option in every_option(command) for name in option.opts}


def _part(title: str, command: click.Command, text: str) -> str:
    context = click.Context(click.Command("x"))
    arguments = [part.make_metavar(context) for part in command.params if isinstance(part, click.Argument)]
    rows = [
        option_row(option)
        for option in every_option(command)
        if not _is_setting(option) and not _is_common(option, command)
    ]
    settings = "\nand the options that set a key, below.\n" if any(map(_is_setting, every_option(command))) else ""
    usage = " ".join([title, *arguments])
    table = f"\n{table_of(('option', 'meaning'), rows)}" if rows else ""
    return f"### `{usage}`\n{text}\n{table}{settings}"


def every_option(command: click.Command) -> Iterator[click.Option]:
    """A command's options, including click's own."""
    context = click.Context(command, help_option_names=["-h", "--help"])
    return (parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option))


def _is_common(option: click.Option, command: click.Command) -> bool:
    """Whether every command has the option: it is listed once."""
    return "--help" in option.opts and command is not cli


def _is_setting(option: click.Option) -> bool:
    return option.name in {key.replace(".", "__") for key in options()}


def option_row(option: click.Option) -> tuple[str, str]:
    """An option as it is typed, and its meaning."""
    context = click.Context(click.Command("x"))
    is_number = option.metavar is None and isinstance(option.type, click.types.IntParamType)
    value = "" if option.is_flag else " N" if is_number else f" {option.make_metavar(context)}"
    default = f" Default: {option.default}." if option.show_default is True and option.default is not None else ""
    return ", ".join(f"`{name}{value}`" for name in option.opts), f"{(option.help or '').strip()}{default}"


def _first_sentence(command: click.Command) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return text if text.endswith((".", "?")) else f"{text}."


if __name__ == "__main__":
    rewrite(with_commands)
