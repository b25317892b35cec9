"""Runs a study, for as long as its intervals' precision takes.

    run = crosswind.run("quickstart", quick=True)
    run = crosswind.resume(run.directory)

crosswind.execution judges nothing, and crosswind.analysis runs nothing: they meet here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosswind.api.first_look import as_run_here
from crosswind.catalog.path_effect import PathEffect
from crosswind.cell.binary import find_binary
from crosswind.cell.token import use_token
from crosswind.errors import StudyError
from crosswind.execution import session
from crosswind.execution.growth import StoppingRule
from crosswind.execution.observer import Observer
from crosswind.execution.options import RunOptions
from crosswind.execution.reach import reach, server_of, transports_of
from crosswind.store.addresses import place_of
from crosswind.store.manifest import Manifest, Options
from crosswind.store.run import StoredRun
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.real_network import over_network


def run(
    study: Study | str | Path,
    *,
    output: Path | str | None = None,
    quick: bool = False,
    jobs: int | None = None,
    packets: bool = False,
    parts: bool = True,
    capture: bool = False,
    qlog: bool = False,
    profile: bool = False,
    to: str | None = None,
    on: str | None = None,
    progress: Observer | None = None,
    command: Sequence[str] | None = None,
) -> StoredRun:
    """Runs a study in a new directory, to its end or until SIGINT or SIGTERM stops it (`Run.interrupted`).

    Args:
        study: a study, a built-in one's name, or a study file's path.
        output: the run's directory, absent or empty, or `s3://bucket/prefix`; None for
            `crosswind-runs/<study>-<UTC time>`.
        quick: its variant for a first look.
        jobs: cells at a time; None for as many as the fidelity budget allows.
        packets, capture, qlog: files to keep for every cell. parts: keep time breakdowns, too.
        profile: sample processor time.
        to: a server's HOST[:PORT] (`crosswind serve`), for a run over the network; the token is in CROSSWIND_TOKEN.
        on: the Dask cluster, as `--on` (docs/clusters.md); None for this machine.
        progress: sees the run's events.
        command: for the run's provenance; None for this process's command line.
    Raises: StudyError for a wrong study or an impossible cell; UsageError without a token; StoreError for a used
        directory; EngineError or DiskError when no cell can run. Finished cells are kept.
    """
    design = study if isinstance(study, Study) else load_study(str(study))
    design, _ = as_run_here(design, quick=quick, clock="real" if to is not None or profile else None)
    if to is not None:
        design, _ = over_network(design, to)
    options = RunOptions(
        output=place_of(output) if output else None,
        files=Options(packets=packets, spent=parts, capture=capture, qlog=qlog, profile=profile),
        jobs=jobs,
        on=on,
        observers=[progress] if progress else [],
        command=command,
    )
    return run_design(design, options)


def run_design(study: Study, options: RunOptions) -> StoredRun:
    """Runs a study as it is: nothing of it depends any more on this machine. Raises: as `run`."""
    return session.run(_that_reaches(study, options), options, PrecisionRules())


def resume(
    directory: Path | str | None = None,
    *,
    study: Study | None = None,
    jobs: int | None = None,
    on: str | None = None,
    progress: Observer | None = None,
    command: Sequence[str] | None = None,
) -> StoredRun:
    """Resumes a run: missing and failed repetitions, and the precision's further ones; nothing else.

    Args: directory: the run's; None for the latest (of `study`, if given). study: refuse another study's run. jobs:
        cells at a time; None for the previous number. on, progress, command: as for `run`.
    Raises: StoreError when it is no run, is in use, or holds another study; EngineError or DiskError when no cell can
        run. Finished cells are kept.
    """
    options = RunOptions(
        output=place_of(directory) if directory else None,
        jobs=jobs,
        on=on,
        observers=[progress] if progress else [],
        command=command,
    )
    return resume_with(options, study)


def resume_with(options: RunOptions, study: Study | None) -> StoredRun:
    """Goes on with the run in `options.output`, or with the latest. Args, Raises: as of `resume`."""
    return session.resume(options, PrecisionRules(), study=study)


def _that_reaches(study: Study, options: RunOptions) -> Study:
    """A study without the transports blocked on the way to its server; unchanged without a server."""
    server = server_of(study)
    if server is None:
        return study
    use_token(None)
    tried = list(reach(server, transports_of(study), binary=find_binary()))
    for observer in options.observers:
        observer.reached(server, tried)
    answers = "; ".join(f"{reached.transport} {reached.text}" for reached in tried)
    noted = study.with_notes([f"Tried before the run: {answers}."])
    return noted.without_transports({reached.transport: reached.obstacle for reached in tried if reached.is_blocked})


class PrecisionRules:
    """Makes the stopping rules of runs. Statistics are imported where a run has one: the others should not wait."""

    def check(self, asked: Mapping[str, Any], cells: Mapping[int, tuple[Mapping[str, Any], PathEffect]]) -> None:
        """Raises: StudyError for a precision unreachable in one of the cells, given by index."""
        from crosswind.analysis.precision import why_unreachable

        reason = why_unreachable(asked, cells)
        if reason:
            raise StudyError(f"precision: {reason}", hint="ask for another statistic or metric, or for more exchanges")

    def rule_of(self, manifest: Manifest) -> StoppingRule | None:
        """A run's rule; None with a fixed number of repetitions."""
        if manifest.precision is None:
            return None
        from crosswind.analysis.precision import PrecisionRule

        return PrecisionRule(manifest.precision)
