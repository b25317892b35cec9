"""`crosswind run`: a study from a file, a built-in one, or one made of options; run, kept, reported."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crosswind.cell.token import use_token
from crosswind.cli.left_out import with_what_is_here
from crosswind.cli.settings import chosen, options, parse_set, setting_options, variant_options
from crosswind.cli.standard_output import readers_may_leave
from crosswind.cli.thresholds import status_of, threshold_options
from crosswind.cli.to import server_at, study_to, to_option
from crosswind.cli.token_option import token_file_option
from crosswind.errors import UsageError
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.keys import WORKLOAD_KINDS
from crosswind.study.own_question import with_own_question

if TYPE_CHECKING:
    from crosswind.store.run import Run


_EPILOG = """\b
Every setting takes a list, and a list is a factor:
  crosswind run echo --transport tcp,udp --delay 10ms --loss 0%,5% --size 1,1000 --messages 500
  crosswind run latency-by-link --quick
  crosswind run my-study.toml --set path.loss=0%,2%,5%

\b
Exit status: 0 done, 1 a cell failed or is invalid, 2 usage, 3 a threshold fails, 4 with --require-answer: a
threshold is inconclusive, 130 interrupted (finished repetitions are kept).
"""


@click.command(epilog=_EPILOG)
@click.argument("study", required=False, metavar="[STUDY|FILE|KIND]")
@variant_options
@click.option("--seed", type=click.IntRange(0), help="Seed of all random decisions.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Directory of the run.")
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[DIR]", help="Continue the run in DIR, or the latest run."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Cells in parallel. Default: as many as the fidelity budget allows, or as the resumed run had.",
)
@click.option("--packets", is_flag=True, help="Keep one record per packet.")
@click.option("--capture", "--pcapng", is_flag=True, help="Capture the packets of each host as pcapng.")
@click.option("--qlog", is_flag=True, help="Log QUIC events at both ends as qlog.")
@click.option("--cpu-profile", is_flag=True, help="Profile the processor time of client and server.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object only.")
@click.option("--all", "everything", is_flag=True, help="Print every table, then the summary.")
@click.option("--no-report", is_flag=True, help="Do not report; `crosswind report DIR` reports later.")
@to_option
@token_file_option
@threshold_options
@setting_options
def command(
    *,
    study: str | None,
    assignments: tuple[str, ...],
    quick: bool,
    repetitions: int | None,
    precision: str | None,
    repetitions_max: int | None,
    seed: int | None,
    output: Path | None,
    resume: str | None,
    jobs: int | None,
    packets: bool,
    capture: bool,
    qlog: bool,
    cpu_profile: bool,
    as_json: bool,
    everything: bool,
    no_report: bool,
    to: str | None,
    token_file: Path | None,
    fail_if: tuple[str, ...],
    require_answer: bool,
    junit: Path | None,
    **settings: Any,
) -> int:
    """Run a study (built-in, from a file or made of options) and report.

    STUDY is a built-in study (`crosswind studies`), FILE a study file (- is standard input), KIND one of echo,
    transfer, connect, multiplex, page, program.
    """
    given = chosen(settings)
    overrides = Overrides.of(assignments, repetitions=repetitions, repetitions_max=repetitions_max, seed=seed)
    if resume is not None and study is None and (given or overrides.values or quick or precision or to):
        raise UsageError(
            "--resume continues a run as it was planned, and takes no settings",
            hint="leave the settings out, or run the study anew without --resume",
        )
    wanted = study_from(study, given, overrides, quick=quick, precision=precision, to=to, profile=cpu_profile)
    wanted = wanted.with_thresholds(fail_if) if wanted is not None and fail_if else wanted
    _refuse_judging_nothing(no_report and bool(fail_if or require_answer or junit), wanted is None and bool(fail_if))
    asked = {"packets": packets, "capture": capture, "qlog": qlog, "profile": cpu_profile}
    if to is not None and (packets or cpu_profile):
        raise UsageError(
            "--packets needs the emulator, and --cpu-profile both hosts: --to has neither",
            hint="leave them out; --capture captures packets at both ends",
        )
    if token_file is not None:
        use_token(token_file)
    # What runs cells takes a while to import, for which neither --help nor a mistake should wait.
    from crosswind import running
    from crosswind.cli.progress import progress_for
    from crosswind.console import Console
    from crosswind.execution.session import resume_command

    progress = progress_for(Console(stderr=True, highlight=False))
    words = ["crosswind", *sys.argv[1:]]
    if resume is not None:
        directory = _directory_to_resume(resume, output, asked)
        run = running.resume(directory, study=wanted, jobs=jobs, progress=progress, command=words)
    elif wanted is not None:
        run = running.run(
            wanted,
            output=output,
            jobs=jobs,
            packets=packets,
            capture=capture,
            qlog=qlog,
            profile=cpu_profile,
            progress=progress,
            command=words,
        )
    else:
        raise UsageError("nothing to run", hint="name a study: `crosswind studies` lists them")
    if run.interrupted:
        click.echo(
            f"interrupted: {len(run.results())} of {run.planned} repetitions are kept in {run.directory}", err=True
        )
        click.echo(f"hint: {resume_command(run.directory)} continues", err=True)
        return 130
    if no_report:
        click.echo(f"run: {run.directory}", err=True)
        return 0 if run.valid else 1
    return _report(run, as_json=as_json, everything=everything, require_answer=require_answer, junit=junit)


def _refuse_judging_nothing(without_report: bool, without_study: bool) -> None:
    """Raises: UsageError for thresholds beside --no-report, or beside --resume without a study."""
    if without_report:
        raise UsageError(
            "--no-report leaves nothing to judge",
            hint="leave it out, or judge later: crosswind report DIR --fail-if ...",
        )
    if without_study:
        raise UsageError(
            "--resume takes no --fail-if", hint="judge the run when it is done: crosswind report DIR --fail-if ..."
        )


@dataclass(frozen=True)
class Overrides:
    """What `--set` and the options of the design set. Attributes: values: by dotted key. flags: the option of a key."""

    values: dict[str, Any]
    flags: dict[str, str]

    @classmethod
    def of(cls, assignments: tuple[str, ...], **design: int | None) -> "Overrides":
        """Args: assignments: of `--set`. design: options by the name of their key in [study]; None was not given."""
        given = {f"study.{name}": value for name, value in design.items() if value is not None}
        flags = {key: "--" + key.removeprefix("study.").replace("_", "-") for key in given}
        return cls({**parse_set(assignments), **given}, flags)


def study_from(
    name: str | None,
    given: dict[str, str],
    overrides: Overrides,
    *,
    quick: bool,
    precision: str | None = None,
    to: str | None = None,
    profile: bool = False,
) -> Study | None:
    """The study that a command line means: a built-in one, a file, or one made of options; None when it names none.

    Args: to: HOST[:PORT] of a server that it runs to over the network. profile: whether processor time is sampled.

    Raises: UsageError, StudyError when the command line or the study is wrong.
    """
    if name is None:
        if given or overrides.values or quick or precision or to:
            raise UsageError(
                "settings without a study", hint=f"name a study, or one of {', '.join(WORKLOAD_KINDS)}, before them"
            )
        return None
    server = None if to is None else server_at(to)
    design = _design(
        name, given, overrides, quick=quick, precision=precision, needs_machine=server is not None or profile
    )
    if server is None:
        return design
    return study_to(design, server, [*given, *overrides.values], family=given.get("path.family"))


def _design(
    name: str, given: dict[str, str], overrides: Overrides, *, quick: bool, precision: str | None, needs_machine: bool
) -> Study:
    """The same, as it is run on emulated paths. Args: needs_machine: whether only the machine's clock will do."""
    # A file or directory of that name is meant only when it is written as a path.
    if name in WORKLOAD_KINDS:
        if quick:
            raise UsageError(
                f"{name} from options has no quick variant",
                hint="leave out --quick; --messages or --count sets how much",
            )
        study = Study.adhoc(name, given, flags=options())
        given = {}
    else:
        study = load_study(name, kinds=WORKLOAD_KINDS)
        if quick and study.quick_without_table is not None:
            click.echo(f"quick: {study.quick_without_table}", err=True)
        chosen_clock = {**given, **overrides.values}.get("host.clock")
        clock = "real" if needs_machine else None if chosen_clock is None else str(chosen_clock)
        study = with_what_is_here(study, quick=quick, clock=clock)
    # Before the overrides, one of which may say how often a cell is run at most for its precision.
    study = study.with_precision(precision) if precision is not None else study
    twice = sorted(set(given) & set(overrides.values))
    if twice:
        raise UsageError(f"{twice[0]} is set by {options()[twice[0]]} and by --set", hint="give only one of them")
    both = {**given, **overrides.values}
    flags = {key: options()[key] for key in given} | overrides.flags
    study = study.with_overrides(both, flags=flags) if both else study
    return with_own_question(study) if name in WORKLOAD_KINDS else study


def _directory_to_resume(place: str, output: Path | None, asked: Mapping[str, bool]) -> Path | None:
    """The directory of the run that is to go on; None for the latest. Raises: UsageError."""
    if place and output and Path(place) != output:
        raise UsageError(
            "--resume and --output name two directories",
            hint="a run continues in its own directory: leave out --output",
        )
    if any(asked.values()):
        raise UsageError(
            "--resume takes no --packets, --capture, --qlog or --cpu-profile",
            hint="a run keeps what it was started with",
        )
    return Path(place) if place else output


def _report(run: "Run", *, as_json: bool, everything: bool, require_answer: bool, junit: Path | None) -> int:
    # Imported here, since drawing and statistics take more than a second to import, for which no run should wait.
    from crosswind import report, results
    from crosswind.record import output_of_program

    made = results.analysed(run)
    result, page = made.result, results.write_page(run, made)
    if junit:
        report.write_junit(result, junit, require_answer=require_answer)
    with readers_may_leave():
        if as_json:
            click.echo(result.to_json())
        else:
            report.print_result(result, everything=everything)
    click.echo(f"run:    {run.directory}", err=True)
    click.echo(f"report: {page}", err=True)
    if any(result.planned.runs_programs for result in run.results().values()):
        click.echo(f"output: {run.directory / output_of_program('*', 'client.out')}", err=True)
    if not as_json:
        with readers_may_leave():
            for line in report.last_lines(result):
                click.echo(line)
    verdicts = [threshold.verdict for threshold in result.thresholds]
    return status_of(verdicts, require_answer=require_answer, valid=result.valid and run.valid)
