"""What `exec` and `shell` share: two programs become a study of one cell, which is run, watched and summed up."""

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from crosswind.cell.binary import find_binary, misspelt_placeholder
from crosswind.cell.clocks import clock_for
from crosswind.cell.streams import own_streams
from crosswind.cli.settings import option_name, options, options_of
from crosswind.errors import CrosswindError, DiskError, EngineError, UsageError
from crosswind.study.design import Study

NOT_RUN, NOT_A_PROGRAM, NOT_FOUND, INTERRUPTED = 125, 126, 127, 130
"""Exit statuses of a client that was not run, as timeout(1) and env(1) have them."""

PORT = 8000
"""What {port} stands for unless --port says so. The server's host is new, so every port is free."""

LONGEST = "23h"
"""How long a client may take on the machine's clock unless --timeout says so: as long as a cell may."""

_OPTIONS = [key for key in options() if not key.startswith("workload.")] + ["workload.port", "workload.timeout"]

path_options = options_of(_OPTIONS)
"""Gives a command the options of the path and the hosts; it receives them by `chosen`."""


@dataclass(frozen=True)
class Programs:
    """Argument lists with placeholders. greeting: of a shell, what is said before it starts; none of other programs."""

    client: list[str]
    server: list[str] | None
    greeting: str = ""

    @property
    def is_shell(self) -> bool:
        """Whether the client is a shell, for somebody at a terminal."""
        return bool(self.greeting)

    @property
    def wants_port(self) -> bool:
        """Whether {port} is in one of them."""
        return any("{port}" in word for word in (*self.client, *(self.server or ())))

    def check(self) -> None:
        """Raises: NotRunError where one of them is no program here, UsageError for a word that is no placeholder."""
        named = {"the command": self.client, "--server": self.server or []}
        for where, words in named.items():
            found = misspelt_placeholder(words, find_binary(), has_port=True)
            if found is not None:
                word, meant = found
                hint = f"did you mean {meant}? A program that needs {word} itself can read it from a file"
                raise UsageError(f"{where} has {word}, which is no placeholder", hint=hint)
        for words in filter(None, named.values()):
            _check_program(words[0])


def _check_program(program: str) -> None:
    """Raises: NotRunError where it cannot be run. A placeholder is filled in later."""
    if "{" in program or shutil.which(program):
        return
    if os.sep in program and Path(program).exists():
        raise NotRunError(
            f"cannot run {program}: it is no program that this user may run",
            "`chmod +x` it, or name another one",
            NOT_A_PROGRAM,
        )
    raise NotRunError(f"cannot find the program {program}", "is it installed, and on the PATH?", NOT_FOUND)


class NotRunError(CrosswindError):
    """The client was not run. Args: status: the exit status that says so."""

    def __init__(self, message: str, hint: str | None, status: int = NOT_RUN) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = status


def run_programs(
    programs: Programs,
    given: Mapping[str, str],
    *,
    repetitions: int,
    seed: int | None,
    capture: Path | None,
    as_json: bool,
    output: Path | None,
    words: Sequence[str],
) -> int:
    """Runs programs on a path, lets the client's output pass, and prints the summary. Returns the exit status.

    Args: given: settings by dotted key, as written. The others: as the options of `crosswind exec`.
    Raises: CrosswindError with its exit status.
    """
    # What runs cells takes a while to import, for which neither --help nor a mistake should wait.
    from crosswind.cli.programs_summary import lines_of, summary_of
    from crosswind.execution.in_turn import run_in_turn
    from crosswind.store.manifest import Options

    programs.check()
    if capture is not None:
        _check_writable(capture)
    try:
        study, is_virtual = _study(programs, given, repetitions=repetitions, seed=seed)
        if programs.is_shell:
            click.echo(programs.greeting, err=True)
        with ExitStack() as opened:
            place = output or opened.enter_context(_temporary())
            streams = None if is_virtual else opened.enter_context(own_streams(has_jobs=programs.is_shell))
            run = run_in_turn(
                study,
                Options(capture=capture is not None),
                output=place,
                command=words,
                streams=streams,
                look=_pass_on if is_virtual else lambda _part: None,
            )
            if run.interrupted:
                click.echo("interrupted", err=True)
                return INTERRUPTED
            for result in run.results().values():
                if result.failure is not None:
                    raise NotRunError(result.failure.message, result.failure.hint)
                if capture is not None:
                    _copy(run.directory / "cells" / result.key / "client.pcapng", capture)
            summary = {**summary_of(run), "run": str(output) if output else None}
    except (EngineError, DiskError) as error:
        raise NotRunError(error.message, error.hint) from error
    for line in [json.dumps(summary)] if as_json else lines_of(summary):
        click.echo(line, err=True)
    if output and not as_json:
        click.echo(f"  run: {output}", err=True)
    return int(summary["exit_status"])


@contextmanager
def _temporary() -> Iterator[Path]:
    """A directory for a run that is not kept. Raises: DiskError."""
    try:
        made = tempfile.TemporaryDirectory(prefix="crosswind-", ignore_cleanup_errors=True)
    except OSError as error:
        raise DiskError(
            f"cannot make a temporary directory: {error.strerror}", hint="set TMPDIR, or --output"
        ) from None
    with made as name:
        yield Path(name) / "run"


def _check_writable(capture: Path) -> None:
    """Raises: UsageError before anything runs."""
    folder = capture.parent
    if capture.is_dir() or not os.access(capture if capture.exists() else folder, os.W_OK):
        raise UsageError(
            f"--capture {capture}: cannot be written", hint="name a file in a directory that you may write"
        )


def _copy(written: Path, capture: Path) -> None:
    """Raises: DiskError."""
    try:
        shutil.copyfile(written, capture)
    except OSError as error:
        raise DiskError(
            f"cannot write {capture}: {error.strerror}", hint="--output DIR keeps the captures, too"
        ) from None


def split_server(server: str | None) -> list[str] | None:
    """The argument list of `--server`. Raises: UsageError."""
    if server is None:
        return None
    try:
        words = shlex.split(server)
    except ValueError as error:
        raise UsageError(f"--server {server!r}: {error}", hint="it is split into words as a shell does") from None
    if not words:
        raise UsageError("--server is empty", hint='give a command, as in --server "python3 -m http.server {port}"')
    return words


def _study(programs: Programs, given: Mapping[str, str], *, repetitions: int, seed: int | None) -> tuple[Study, bool]:
    """The study of the one cell, and whether it runs in virtual time. Raises: StudyError, EngineError, UsageError."""
    wanted = given.get("host.clock", "auto")
    is_virtual = wanted in ("auto", "real", "virtual") and clock_for(wanted, given.get("host.kernel")) == "virtual"
    settings: dict[str, Any] = {**given, "study.repetitions": repetitions, "workload.client": programs.client}
    if programs.server is not None:
        settings["workload.server"] = programs.server
    if programs.wants_port:
        settings.setdefault("workload.port", PORT)
    if not is_virtual:
        settings.setdefault("workload.timeout", LONGEST)
    if seed is not None:
        settings["study.seed"] = seed
    study = Study.adhoc("program", settings, flags={key: option_name(key) for key in given})
    if len(study) > 1:
        factors = ", ".join(f"{key} = {', '.join(texts)}" for key, texts in study.factors.items())
        raise UsageError(
            f"this is {len(study)} paths, not one: {factors}", hint="`crosswind run program` compares several"
        )
    return study, is_virtual


def _pass_on(part: Path) -> None:
    """Writes what a client in virtual time has written to its files."""
    for name, stream in (("client.out", sys.stdout), ("client.err", sys.stderr)):
        with suppress(FileNotFoundError, BrokenPipeError), (part / name).open("rb") as file:
            shutil.copyfileobj(file, stream.buffer)
            stream.flush()
