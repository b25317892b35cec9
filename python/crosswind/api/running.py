"""Running a study, for as long as the precision of its intervals takes.

    run = crosswind.run("quickstart", quick=True)
    run = crosswind.resume(run.directory)

What runs cells (crosswind.execution) judges nothing, and what judges (crosswind.analysis) runs nothing: they meet here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosswind.api.first_look import as_run_here
from crosswind.catalog.path_effect import PathEffect
from crosswind.catalog.precision import StoppingRule
from crosswind.cell.binary import find_binary
from crosswind.cell.token import use_token
from crosswind.errors import StudyError
from crosswind.execution import session
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
        study: a study, the name of a built-in one, or the path of a study file.
        output: where the run is kept, a directory that is absent or empty, or `s3://bucket/prefix`; None for
            `crosswind-runs/<study>-<UTC time>`.
        quick: its variant for a first look.
        jobs: cells at a time; None for as many as the fidelity budget allows.
        packets, capture, qlog: files to keep of every cell. parts: keep what its time was spent on, too.
        profile: sample where processor time goes.
        to: HOST[:PORT] of a `crosswind serve`, to which it runs over the network; the token is in CROSSWIND_TOKEN.
        on: the Dask cluster that runs the cells, as `--on` (docs/clusters.md); None for this machine.
        progress: sees the run go by.
        command: what the run's provenance says it was started by; None for this process's command line.
    Raises: StudyError when the study is wrong or a cell impossible; UsageError without a token; StoreError when the
        directory is taken; EngineError or DiskError when no cell can run. What was finished is kept.
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
    """Goes on with a run: runs what has no result, what failed, and what its precision still takes; nothing else.

    Args: directory: of the run; None for the latest (of `study`, when one is given). study: refuse a run of another
        one. jobs: cells at a time; None for what the run had before. on, progress, command: as of `run`.
    Raises: StoreError when it is no run, is in use, or holds another study; EngineError or DiskError when no cell can
        run. What was finished is kept.
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
    """A study without the transports that do not reach its server, which are tried; as it is without a server."""
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
        """Raises: StudyError when a precision cannot be reached by the design of one of the cells, by their indices."""
        from crosswind.analysis.precision import why_unreachable

        reason = why_unreachable(asked, cells)
        if reason:
            raise StudyError(f"precision: {reason}", hint="ask for another statistic or metric, or for more exchanges")

    def rule_of(self, manifest: Manifest) -> StoppingRule | None:
        """The rule of a run; None where every cell is run a fixed number of times."""
        if manifest.precision is None:
            return None
        from crosswind.analysis.precision import PrecisionRule

        return PrecisionRule(manifest.precision)
