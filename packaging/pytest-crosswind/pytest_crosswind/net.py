"""Runs a client and a server over an emulated path: what the fixture `net` gives a test."""

import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crosswind.errors import CrosswindError, EngineError, UsageError
from pytest_crosswind.programs import Program, command_of
from pytest_crosswind.result import Result
from pytest_crosswind.settings import check_names, keys

if TYPE_CHECKING:
    from crosswind.api.programs import ProgramRoundTrips, Programs
    from crosswind.store.run import StoredRun
    from crosswind.study.design import Study
    from crosswind.study.edits import FurtherTables

_SHOWN_LINES = 30


class ClientFailedError(AssertionError):
    """The client did not end with exit status 0. Attributes: result: what is known of it."""

    def __init__(self, message: str, result: Result) -> None:
        super().__init__(message)
        self.result = result


class FidelityWarning(UserWarning):
    """A path that was not emulated as asked, or a doubt about a run."""


class Net:
    """Runs programs on paths.

    Args:
        test: name of the test. defaults: settings of its marker. directory: a new directory for each run.
        with_report: whether each run gets a report. skips: whether a test is skipped where the machine can run none.
        jobs: repetitions at a time; None for one on each processor.
    """

    def __init__(
        self,
        test: str,
        *,
        defaults: Mapping[str, Any],
        directory: Callable[[], Path],
        with_report: bool,
        skips: bool,
        jobs: int | None,
    ) -> None:
        self._test = test
        self._defaults = defaults
        self._directory = directory
        self._with_report = with_report
        self._skips = skips
        self._jobs = jobs

    def run(
        self,
        client: Program,
        server: Program | None = None,
        *,
        hops: Sequence[str] = (),
        changes: Sequence[str] = (),
        beside: Sequence[str] = (),
        check: bool = True,
        **settings: Any,
    ) -> Result:
        """Runs a client, and a server on another host, with a path between them; in virtual time unless told otherwise.

        Args:
            client, server: a command, in which {address}, {client} and {port} stand for the server's address, the
                client's and the server's port; or a function of address and port, at the top of a file, which is called
                in a process of its own. A server is ended when the client has ended.
            hops, changes: of the path, as "wifi rate=50mbit delay=2ms" and "outage start=5s for=1s loss=100%".
            beside: flows of Crosswind on the same path while the client runs, as "transfer --transport tcp".
            check: whether a client that fails (exit status, signal, timeout, exception) fails the test.
            settings: repetitions, seed; and the settings of path and hosts, as a study has them without their table:
                network="4g", loss="2%", delay="20ms", rate="10mbit", queue, forward_loss, timeout, clock, ...
        Returns: the result, of which `status` is 0 unless `check` is false.
        Raises: ClientFailedError. What is wrong in the call, or with this machine, fails the test.
        """
        __tracebackhide__ = True
        problem: CrosswindError | None = None
        try:
            from crosswind.study.edits import FurtherTables

            further = FurtherTables(
                *([given] if isinstance(given, str) else given for given in (hops, changes, beside))
            )
            result = self._run(client, server, further, {**self._defaults, **settings})
        except CrosswindError as error:
            problem = error
        if problem is not None:
            pytest.fail(text_of(problem))
        for text in dict.fromkeys(result.warnings):
            warnings.warn(FidelityWarning(text), stacklevel=2)
        if check and result.status != 0:
            raise ClientFailedError(_why_failed(result), result)
        return result

    def _run(
        self, client: Program, server: Program | None, further: "FurtherTables", settings: dict[str, Any]
    ) -> Result:
        """Raises: CrosswindError."""
        from crosswind.api.results import write_html
        from crosswind.api.running import run as run_study

        check_names(settings, "net.run()")
        given = dict(settings)
        study = self._study(client, server, further, settings)
        place = self._directory()
        run = run_study(study, output=place, jobs=self._jobs, command=["pytest", self._test])
        if run.interrupted:
            raise KeyboardInterrupt
        _raise_failure(run)
        if self._with_report:
            write_html(run)
        return Result(
            run, has_value=callable(client), round_trips=lambda: self._round_trips(client, server, further, given)
        )

    def _round_trips(
        self, client: Program, server: Program | None, further: "FurtherTables", settings: Mapping[str, Any]
    ) -> "ProgramRoundTrips | None":
        """Raises: CrosswindError."""
        from crosswind.api.programs import program_round_trips, refuse_other_delays
        from crosswind.api.running import run as run_study
        from crosswind.files.temporary import temporary_directory

        given, seed = _given(settings), settings.get("seed")
        flags = {key: name for name, key in keys().items()}
        refuse_other_delays(
            given, further, name=lambda key: flags.get(key, key), asked="result.round_trips", delay="delay"
        )
        with temporary_directory() as place:
            return program_round_trips(
                _programs(client, server),
                given,
                flags=flags,
                further=further,
                seed=seed,
                run=lambda study: run_study(
                    study, output=place / "run", jobs=self._jobs, command=["pytest", self._test]
                ),
            )

    def _study(
        self, client: Program, server: Program | None, further: "FurtherTables", settings: dict[str, Any]
    ) -> "Study":
        """Raises: CrosswindError."""
        from crosswind.api.programs import study_of
        from crosswind.study.design import expand
        from crosswind.study.edits import Replaced

        repetitions, seed = settings.pop("repetitions", 1), settings.pop("seed", None)
        for name, value in settings.items():
            if isinstance(value, list | tuple):
                hint = f"@pytest.mark.network({name}={list(value)}) runs the test once for each of them"
                raise UsageError(f"net.run() runs on one path, and {name} has several values: {value}", hint=hint)
        given = _given(settings)
        self._require_machine(str(given["host.clock"]))
        programs = _programs(client, server)
        programs.check()
        flags = {key: name for name, key in keys().items()}
        study, _ = study_of(programs, given, flags=flags, further=further, repetitions=repetitions, seed=seed)
        # In a title, words in braces are keys of the study; in the name of a test they are anything.
        title = self._test.translate(str.maketrans("{}", "()"))
        return expand(replace(study.source, name="test"), [*study.edits, Replaced(("title",), title)])

    def _require_machine(self, clock: str) -> None:
        """Raises: EngineError where nothing can run here, unless that skips the test."""
        from crosswind.cell.binary import find_binary
        from crosswind.cell.clocks import clock_for

        try:
            find_binary()
            if clock in ("auto", "real", "virtual"):
                clock_for(clock)
        except EngineError as error:
            if self._skips:
                pytest.skip(text_of(error))
            raise


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the keys of a study, without those of the design."""
    design = ("repetitions", "seed")
    given = {keys()[name]: value for name, value in settings.items() if value is not None and name not in design}
    given.setdefault("host.clock", "virtual")
    return given


def _programs(client: Program, server: Program | None) -> "Programs":
    from crosswind.api.programs import Programs

    return Programs(command_of(client, "client"), None if server is None else command_of(server, "server"))


def text_of(error: CrosswindError) -> str:
    """An error with its hint."""
    return f"{error.message}\nhint: {error.hint}" if error.hint else error.message


def jobs_at_a_time() -> int | None:
    """How many repetitions may run at a time: one where pytest-xdist runs other tests beside this one."""
    return 1 if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1 else None


def remove_run(directory: Path) -> None:
    """Removes a directory of an earlier run, if it is one."""
    if (directory / "manifest.json").exists():
        shutil.rmtree(directory)


def _raise_failure(run: "StoredRun") -> None:
    """Raises: EngineError where a repetition has no result."""
    for key, result in run.results().items():
        if result.failure is None:
            continue
        message = result.failure.message
        errors = run.directory / "cells" / key / "server.err"
        if errors.exists() and (text := _last_lines(errors.read_text("utf-8", errors="replace"))):
            message += f"\nthe server's standard error:\n{text}"
        raise EngineError(message, hint=result.failure.hint)


def _why_failed(result: Result) -> str:
    failed = [repetition for repetition in result.repetitions if repetition.status != 0]
    first = failed[0]
    how = "was ended at its timeout" if first.timed_out else f"ended with exit status {first.status}"
    of = f" in {len(failed)} of {len(result.repetitions)} repetitions" if len(result.repetitions) > 1 else ""
    errors = _last_lines(first.errors) or _last_lines(first.output)
    return f"the client {how}{of}\n{errors}" if errors else f"the client {how}{of}"


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-_SHOWN_LINES:])
