"""The command line. One file a command; this one finds them and ends with an exit status and two lines of text.

0    done
1    a cell failed or is invalid, or the run could not continue
2    the command line, the study or the run directory is wrong
130  interrupted; what was finished is kept
"""

import importlib
import os
import re
import resource
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from crosswind import __version__
from crosswind.cli.standard_output import why_output_fails
from crosswind.errors import CrosswindError, UsageError
from crosswind.text.visible import visible

_COMMANDS = {
    "run": "Run a study (built-in, from a file or made of options) and report.",
    "exec": "Run a command of your own on an emulated path.",
    "shell": "Open a shell whose network is an emulated path.",
    "live": "Watch loss, round-trip time and expected TCP throughput of a host.",
    "ui": "Serve a page to work in: runs, new studies, reports.",
    "serve": "Serve cells of other machines.",
    "reach": "Check which transports reach a server on another machine.",
    "init": "Write a commented study from four answers.",
    "studies": "List the built-in studies.",
    "networks": "List the named networks, their numbers and sources.",
    "show": "Show a study: its factors, cells and expected duration.",
    "plan": "Show what a run would do, without running it.",
    "predict": "Show what the models predict for a path.",
    "fit": "Fit models to the transfers of a run and test them on held-out cells.",
    "report": "Show or export the results of a run.",
    "export": "Write a run as an archive that others can read, cite and run again.",
    "explain": "Show why exchanges of a run took as long as they did.",
    "compare": "Compare two runs; fail if the second is shown to be worse.",
    "verify": "Rerun cells in virtual time and compare every bit.",
    "selftest": "Compare identical cells and count how often a difference is shown.",
    "runs": "List the runs with their progress and size.",
    "clean": "Remove runs or leftovers, or show what can be removed.",
    "doctor": "Show what this machine allows.",
    "browser": "Install browsers and other programs that are used as peers.",
    "kernel": "Install a kernel of virtual time.",
    "completions": "Print what makes a shell complete commands and options.",
    "schema": "Print the JSON Schema of study files.",
}
"""Each command's name and help. Its module is loaded at its call: --help need not load them all."""
_ELSEWHERE = {"ui": "crosswind.ui.command"}
"""Modules for commands in other rooms."""

_LONGEST_WORD = 300
_LEAST_ADDRESSES = 2 << 30
"""With less, Polars finds no room for its threads: some of its calls then never return."""
_RUN_READERS = ("report", "export", "explain", "compare", "fit", "verify", "runs", "clean")
"""Commands reading files from sessions, or from somebody else."""

_MOST_THREADS = 1024
_LAST_SECOND = 253_402_300_799
"""The end of year 9999, since 1970."""
_CODE_ERRORS = (NameError, ImportError, AssertionError)
"""Errors no file content can raise."""

_EPILOG = """\b
Exit status:
  0    done
  1    a cell failed or is invalid, or the run could not continue
  2    the command line, the study or the run directory is wrong
  130  interrupted; finished repetitions are kept; `crosswind run --resume` continues
"""


class _Commands(click.Group):
    """Loads crosswind.cli.<name> when <name> is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def summaries(self) -> Iterable[tuple[str, str]]:
        """Every command with its help."""
        return _COMMANDS.items()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completions: the commands, without loading any, and options."""
        commands = [CompletionItem(name, help=text) for name, text in _COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = _ELSEWHERE.get(cmd_name, f"crosswind.cli.{cmd_name}")
        command = importlib.import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, arguments = super().resolve_command(ctx, args)
        if command is not None:
            check_values(command, ctx, arguments)
        return name, command, arguments

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="crosswind", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Crosswind: a network-protocol performance laboratory.

    How does this protocol behave on that network, how sure are we, and why?
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits. Never shows a traceback for a user's mistake."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _check_surroundings()
        status = cli.main(arguments, prog_name="crosswind", standalone_mode=False)
        sys.stdout.flush()
    except CrosswindError as error:
        status = _complain(error.message, error.hint, error.exit_code)
    except click.UsageError as error:
        status = _complain(*_usage_problem(error), 2)
    except click.ClickException as error:
        status = _complain(error.format_message(), None, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        status = 130
    except Exception as error:
        if os.environ.get("CROSSWIND_DEBUG") == "1":
            raise
        if reason := why_output_fails(error):
            status = _complain(f"cannot write to standard output: {reason}", "send it to another place", 1)
        elif isinstance(error, OSError) and error.filename is not None:
            where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
            status = _complain(f"{where}: {error.strerror}", "is it the right name, and may you use it?", 2)
        elif isinstance(error, FileNotFoundError) and _is_directory_gone():
            status = _complain("the current directory was removed", "change to another one: cd", 2)
        elif isinstance(error, MemoryError):
            status = _complain("there is not enough memory", "close other programs, or raise the limit (ulimit -v)", 1)
        elif _reads_a_run(words) and not isinstance(error, _CODE_ERRORS):
            status = _complain(*_content_problem(error), 2)
        else:
            status = _complain(*_unexpected(error), 1)
    # Unwritable output may still be buffered: Python would end with 120 for it.
    with suppress(OSError):
        sys.stdout.flush()
    sys.exit(status if isinstance(status, int) else 0)


def _usage_problem(error: click.UsageError) -> tuple[str, str]:
    where = error.ctx.command_path if error.ctx else "crosswind"
    return error.format_message(), f"`{where} --help` lists what there is"


def _complain(message: str, hint: str | None, status: int) -> int:
    click.echo(f"error: {visible(_cut(message))}", err=True)
    if hint:
        click.echo(f"hint: {visible(_cut(hint))}", err=True)
    return status


def _cut(text: str) -> str:
    """Shortens very long words: a value may have thousands of digits."""
    return re.sub(rf"(\S{{{_LONGEST_WORD}}})\S+", r"\1...", text)


def _check_surroundings() -> None:
    """Raises: UsageError for fatal settings: variables for Python or a library, and limits."""
    if sys.flags.optimize > 1:
        raise UsageError("Python leaves out docstrings, which charts need", hint="unset PYTHONOPTIMIZE, or set it to 1")
    for name, least, most in (("POLARS_MAX_THREADS", 1, _MOST_THREADS), ("SOURCE_DATE_EPOCH", 0, _LAST_SECOND)):
        value = os.environ.get(name, "1")
        if not (value.isascii() and value.isdigit() and least <= int(value[:18]) <= most):
            raise UsageError(
                f"{name} is {value[:80]!r}", hint=f"unset it, or set it to a number from {least} to {most}"
            )
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESSES:
        raise UsageError(
            f"the limit of virtual memory is {limit >> 10} kB, less than tables take: {_LEAST_ADDRESSES >> 10} kB",
            hint="ulimit -v unlimited; a limit of real memory is one of its control group",
        )


def _is_directory_gone() -> bool:
    """Whether the working directory is gone."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _reads_a_run(words: Sequence[str]) -> bool:
    return not {*words[:1]}.isdisjoint(_RUN_READERS) or any(word.startswith(("--resume", "--from")) for word in words)


def _content_problem(error: Exception) -> tuple[str, str]:
    """Message and hint for a run with right checksums and foreign content."""
    what = "its values are nested too deeply" if isinstance(error, RecursionError) else _first_line(error)
    return (
        f"the run cannot be read: {what}",
        f"restore its files from a copy, or run the study anew; if nobody changed them, {_details()}",
    )


def _unexpected(error: Exception) -> tuple[str, str]:
    return f"unexpected {_first_line(error)}", f"this is a bug in crosswind; {_details()}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _details() -> str:
    """Saves the current traceback; returns its place in words."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="crosswind-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exc(file=file)
        return f"the details are in {Path(file.name)}"
    except OSError:
        return "CROSSWIND_DEBUG=1 shows the details"


def check_values(command: click.Command, context: click.Context, arguments: Sequence[str]) -> None:
    """Refuses empty values, except in programs' argument lists, and repeated single-value options.

    Args: context: for the command's group. Raises: UsageError.
    """
    inner = command.context_class(command, parent=context, **command.context_settings)
    # The command itself reports all other mistakes.
    with suppress(click.UsageError):
        given, _, order = command.make_parser(inner).parse_args(list(arguments))
        for parameter in command.params:
            value = given.get(parameter.name or "")
            if parameter.nargs == 1 and (value == "" or (isinstance(value, list) and "" in value)):
                name = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.make_metavar(inner)
                raise UsageError(f"{name} is empty", hint="is a variable unset? Give it a value, or leave it out")
        for option, times in Counter(order).items():
            if times > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                flag = max(option.opts, key=len)
                raise UsageError(
                    f"{flag} is given {times} times", hint=f"give {flag} once; several levels are one list: A,B"
                )
