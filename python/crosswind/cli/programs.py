"""Shared by `exec` and `shell`: makes two programs a one-cell study, runs, watches and summarises it."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import click

from crosswind.api.programs import INTERRUPTED, NOT_RUN, NotRunError, Programs, study_of
from crosswind.catalog.explained import Connection
from crosswind.cell.binary import OUTPUT
from crosswind.cell.failure import ErrorKind
from crosswind.cell.streams import own_streams
from crosswind.cli.places import RUN_PATH
from crosswind.cli.settings import FURTHER_OPTIONS, F, option_name, options, options_of, picked
from crosswind.errors import DiskError, EngineError, UsageError
from crosswind.files.temporary import temporary_directory
from crosswind.store.addresses import shown
from crosswind.study.edits import FurtherTables

_OPTIONS = [key for key in options() if not key.startswith("workload.")] + [
    "workload.port",
    "workload.ready",
    "workload.start_timeout",
    "workload.env",
    "workload.client_env",
    "workload.server_env",
    "workload.user",
    "workload.client_user",
    "workload.server_user",
    "workload.resolver",
    "workload.timeout",
]

_OF_PATH = options_of(_OPTIONS)
_OF_PROGRAMS = (
    click.option(
        "--server",
        metavar="COMMAND",
        help="Command to run on the server's host; without it, the host only answers pings.",
    ),
    *FURTHER_OPTIONS,
    click.option("--seed", type=click.IntRange(0), help="Seed of all random decisions."),
    click.option(
        "--capture", type=click.Path(path_type=Path), metavar="FILE", help="Write the client's packets as pcapng."
    ),
    click.option(
        "--no-keys", is_flag=True, help="Do not have the programs log the keys of their connections (SSLKEYLOGFILE)."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as one line of JSON on standard error."),
    click.option("--output", type=RUN_PATH, metavar="DIR|s3://...", help="Keep the run, for `crosswind report DIR`."),
)

_LONGEST = 20
"""Connections that a summary has as JSON."""
_WHICH = ("key", "cell", "repetition", "levels", "pieces")
"""What a connection has that its repetition says, or that `crosswind explain` tells."""


def program_options(function: F) -> F:
    """Adds options for programs and their path to a command; `chosen` reads the path's."""
    function = _OF_PATH(function)
    for option in reversed(_OF_PROGRAMS):
        function = option(function)
    return function


@dataclass(frozen=True)
class ProgramOptions:
    """The values from `program_options`, except the path's."""

    server: str | None
    further: FurtherTables
    seed: int | None
    capture: Path | None
    no_keys: bool
    as_json: bool
    output: Path | None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Args: given: a command's arguments."""
        return picked(cls, {**given, "further": picked(FurtherTables, given)})


def run_programs(
    client: list[str],
    asked: ProgramOptions,
    settings: Mapping[str, str],
    *,
    repetitions: int = 1,
    round_trips: bool = False,
    greeting: str = "",
) -> int:
    """Runs programs on a path, passes the client's output on, and prints the summary. Returns the exit status.

    Args: client: an argument list with placeholders. settings: by dotted key, as written. greeting: printed before a
        shell starts; empty for other programs. round_trips: whether to count the client's.
    Raises: CrosswindError with its exit status.
    """
    # The runner takes a while to import: neither --help nor a mistake should wait.
    from crosswind.api.programs_summary import TIMED_OUT, summary_of
    from crosswind.execution.in_turn import run_in_turn
    from crosswind.execution.options import RunOptions
    from crosswind.report.exec_page import page_of
    from crosswind.report.text.terminal import summary_lines
    from crosswind.store.manifest import Options

    server, capture, output = _split(asked.server), asked.capture, asked.output
    programs = Programs(client, server, names=("the command", "--server"))
    programs.check()
    if output is None and any(OUTPUT in word for word in (*client, *(server or ()))):
        raise UsageError(f"{OUTPUT} is a directory of the run, which is not kept", hint="give --output DIR")
    _check_writable(capture)
    if round_trips:
        from crosswind.api.programs import refuse_other_delays

        refuse_other_delays(settings, asked.further, name=option_name, asked="--round-trips", delay="--delay")
    try:
        flags = {key: option_name(key) for key in settings}
        study, is_virtual = study_of(
            programs, settings, flags=flags, further=asked.further, repetitions=repetitions, seed=asked.seed
        )
        if greeting:
            click.echo(greeting, err=True)
        with ExitStack() as opened:
            place = output or opened.enter_context(_temporary())
            streams = None if is_virtual else opened.enter_context(own_streams(has_jobs=bool(greeting)))
            options = RunOptions(
                output=place,
                files=Options(capture=capture is not None, keys=not asked.no_keys),
                jobs=1,
                command=["crosswind", *sys.argv[1:]],
            )
            run = run_in_turn(study, options, streams, look=_pass_on if is_virtual else lambda _part: None)
            if run.interrupted:
                click.echo("interrupted", err=True)
                return INTERRUPTED
            for result in run.results().values():
                if result.failure is not None:
                    status = TIMED_OUT if result.failure.kind is ErrorKind.DEADLINE else NOT_RUN
                    raise NotRunError(result.failure.message, result.failure.hint, status)
                if capture is not None:
                    _copy(run.directory / "cells" / result.key / "client.pcapng", capture)
            summary = {**summary_of(run), "run": shown(output) if output else None}
            if round_trips:
                summary["round_trips"] = _round_trips(programs, settings, flags, asked)
    except (EngineError, DiskError) as error:
        raise NotRunError(error.message, error.hint) from error
    if asked.as_json:
        click.echo(json.dumps(_plain(summary)), err=True)
    else:
        head, *lines = summary_lines(page_of(summary))
        click.echo("\n  ".join([f"crosswind: {head}", *map(str, lines)]), err=True)
    return int(summary["exit_status"])


def _round_trips(
    programs: Programs, settings: Mapping[str, str], flags: Mapping[str, str], asked: ProgramOptions
) -> dict[str, Any] | None:
    from crosswind.api.programs import program_round_trips
    from crosswind.execution.in_turn import run_in_turn
    from crosswind.execution.options import RunOptions

    with _temporary() as place:
        options = RunOptions(output=place, jobs=1)
        counted = program_round_trips(
            programs,
            settings,
            flags=flags,
            further=asked.further,
            seed=asked.seed,
            run=lambda study: run_in_turn(study, options, None, look=lambda _part: None),
        )
    return None if counted is None else counted.as_json()


@contextmanager
def _temporary() -> Iterator[Path]:
    """A temporary run's directory. Raises: DiskError."""
    with ExitStack() as opened:
        try:
            place = opened.enter_context(temporary_directory())
        except OSError as error:
            raise DiskError(
                f"cannot make a temporary directory: {error.strerror}", hint="set TMPDIR, or --output"
            ) from None
        yield place / "run"


def _check_writable(capture: Path | None) -> None:
    """Raises: UsageError before anything runs."""
    if capture is None:
        return
    if capture == Path("-"):
        raise UsageError("--capture -: standard output is the command's own", hint="give the name of a file")
    folder = capture.parent
    if capture.is_dir() or not os.access(capture if capture.exists() else folder, os.W_OK):
        raise UsageError(
            f"--capture {capture}: cannot be written", hint="name a file in a directory that you may write"
        )


def _copy(written: Path, capture: Path) -> None:
    """Raises: DiskError."""
    from crosswind.report.files import whole_file

    try:
        with whole_file(capture) as part:
            shutil.copyfile(written, part)
    except DiskError as error:
        raise DiskError(error.message, hint="--output DIR keeps the captures, too") from None


def _split(server: str | None) -> list[str] | None:
    """The argument list in `--server`. Raises: UsageError."""
    if server is None:
        return None
    try:
        words = shlex.split(server)
    except ValueError as error:
        raise UsageError(f"--server {server!r}: {error}", hint="it is split into words as a shell does") from None
    if not words:
        raise UsageError("--server is empty", hint='give a command, as in --server "python3 -m http.server {port}"')
    return words


def _pass_on(part: Path) -> None:
    """Prints a virtual-time client's output files."""
    for name, stream in (("client.out", sys.stdout), ("client.err", sys.stderr)):
        with suppress(FileNotFoundError), (part / name).open("rb") as file:
            shutil.copyfileobj(file, stream.buffer)
            stream.flush()


def _plain(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary for JSON: only the longest connections."""
    from crosswind.report.text.connections import connection_sentence

    def of_all(connections: Sequence[Connection]) -> dict[str, Any]:
        longest = [
            {**connection.to_json(), "sentence": connection_sentence(connection)}
            for connection in connections[:_LONGEST]
        ]
        for connection in longest:
            for key in _WHICH:
                del connection[key]
        return {
            "count": len(connections),
            "whole_ns": sum(connection.whole_ns for connection in connections),
            "longest": longest,
        }

    parts = [{**part, "connections": of_all(part["connections"])} for part in summary["repetitions"]]
    return {**summary, "repetitions": parts}
