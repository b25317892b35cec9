"""`crosswind run`: a study from a file, a built-in one, or one made of options; run, kept, reported."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crosswind.cell.token import use_token
from crosswind.cli.places import RUN_PATH
from crosswind.cli.settings import picked, setting_options, variant_options
from crosswind.cli.study_options import StudyOptions
from crosswind.cli.thresholds import status_of, threshold_options
from crosswind.cli.to import to_option, token_file_option
from crosswind.errors import UsageError
from crosswind.store.addresses import place_of, shown

if TYPE_CHECKING:
    from crosswind.store.manifest import Options
    from crosswind.store.run import StoredRun

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
@click.option("--output", type=RUN_PATH, metavar="DIR|s3://...", help="Where the run is kept.")
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[DIR]", help="Continue the run in DIR, or the latest run."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Cells in parallel. Default: as many as the fidelity budget allows, or as the resumed run had.",
)
@click.option(
    "--on",
    metavar="CLUSTER",
    help="Run the cells on a Dask cluster: local:4, tcp://HOST:PORT, slurm:8.",
)
@click.option("--packets", is_flag=True, help="Keep one record per packet.")
@click.option("--no-parts", is_flag=True, help="Do not keep what time was spent on, and leave it out of reports.")
@click.option(
    "--no-keys", is_flag=True, help="Do not have programs and peers log the keys of their connections for the parts."
)
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
    output: Path | None,
    resume: str | None,
    jobs: int | None,
    on: str | None,
    token_file: Path | None,
    **given: Any,
) -> int:
    """Run a study (built-in, from a file or made of options) and report.

    STUDY is a built-in study (`crosswind studies`), FILE a study file (- is standard input), KIND one of echo,
    transfer, connect, multiplex, page, program.
    """
    from crosswind.store.manifest import Options

    reporting = picked(_Reporting, given)
    files = Options(
        packets=given["packets"],
        spent=not given["no_parts"],
        keys=not given["no_keys"],
        capture=given["capture"],
        qlog=given["qlog"],
        profile=given["cpu_profile"],
    )
    asked = StudyOptions.of(study, given, needs_machine=files.profile)
    if resume is not None and study is None and asked.changes_something:
        raise UsageError(
            "--resume continues a run as it was planned, and takes no settings",
            hint="leave the settings out, or run the study anew without --resume",
        )
    wanted = asked.study()
    wanted = wanted.with_thresholds(reporting.fail_if) if wanted is not None and reporting.fail_if else wanted
    reporting.check(has_study=wanted is not None)
    if asked.to is not None and (files.packets or files.profile):
        raise UsageError(
            "--packets needs the emulator, and --cpu-profile both hosts: --to has neither",
            hint="leave them out; --capture captures packets at both ends",
        )
    if token_file is not None:
        use_token(token_file)
    # The runner takes a while to import: neither --help nor a mistake should wait.
    from crosswind.api import running
    from crosswind.cli.progress import progress_for
    from crosswind.execution.options import RunOptions
    from crosswind.execution.session import resume_command
    from crosswind.text.console import Console

    options = RunOptions(
        output=output if resume is None else _directory_to_resume(resume, output, files),
        files=files,
        jobs=jobs,
        on=on,
        observers=[progress_for(Console(stderr=True, highlight=False))],
        command=["crosswind", *sys.argv[1:]],
    )
    if resume is not None:
        run = running.resume_with(options, wanted)
    elif wanted is not None:
        run = running.run_design(wanted, options)
    else:
        raise UsageError("nothing to run", hint="name a study: `crosswind studies` lists them")
    if run.interrupted:
        click.echo(
            f"interrupted: {len(run.results())} of {run.planned} repetitions are kept in {shown(run.directory)}",
            err=True,
        )
        click.echo(f"hint: {resume_command(run.directory)} continues", err=True)
        return 130
    if reporting.no_report:
        click.echo(f"run:  {shown(run.directory)}", err=True)
        click.echo(f"kept: {_kept(run)}", err=True)
        return 0 if run.valid else 1
    return _report(run, reporting)


@dataclass(frozen=True)
class _Reporting:
    """Output and judgement, by option."""

    as_json: bool
    everything: bool
    no_report: bool
    fail_if: tuple[str, ...]
    require_answer: bool
    junit: Path | None

    def check(self, *, has_study: bool) -> None:
        """Raises: UsageError for thresholds beside --no-report, or beside --resume without a study."""
        if self.no_report and (self.fail_if or self.require_answer or self.junit):
            raise UsageError(
                "--no-report leaves nothing to judge",
                hint="leave it out, or judge later: crosswind report DIR --fail-if ...",
            )
        if self.fail_if and not has_study:
            raise UsageError(
                "--resume takes no --fail-if", hint="judge the run when it is done: crosswind report DIR --fail-if ..."
            )


def _directory_to_resume(place: str, output: Path | None, files: "Options") -> Path | None:
    """The directory for --resume; None for the latest run. Raises: UsageError."""
    from crosswind.store.manifest import Options

    if place and output and place_of(place) != output:
        raise UsageError(
            "--resume and --output name two directories",
            hint="a run continues in its own directory: leave out --output",
        )
    if files != Options():
        raise UsageError(
            "--resume takes no --packets, --no-parts, --no-keys, --capture, --qlog or --cpu-profile",
            hint="a run keeps what it was started with",
        )
    return place_of(place) if place else output


def _kept(run: "StoredRun") -> str:
    """Cost of time breakdowns, packets and captures: "parts 1.2 MB, 0.3 s; packets 12 MB, 2.1 s"."""
    from crosswind.report.text.format import bytes_text, quantity
    from crosswind.store.kept import KINDS

    sums = run.sums()
    kept = []
    for kind in (kind for kind in KINDS if kind in sums.sizes):
        time_ns = sums.times_ns.get(kind, 0)
        kept.append(", ".join([f"{kind} {bytes_text(sums.sizes[kind])}", *([quantity(time_ns, "ns")] * (time_ns > 0))]))
    without = [] if run.manifest.options.spent else ["no parts (--no-parts)"]
    return "; ".join([*kept, *without]) or "samples alone"


def _report(run: "StoredRun", asked: _Reporting) -> int:
    # Imported here, since drawing and statistics take more than a second to import, for which no run should wait.
    from crosswind.api import results
    from crosswind.cell.record import output_of_program
    from crosswind.report.junit import write_junit
    from crosswind.report.run_page import page_of
    from crosswind.report.text.terminal import print_screen
    from crosswind.store.objects import send_pages

    made = results.analysed(run)
    result, file = made.result, results.write_page(run, made)
    send_pages(run.directory)
    if asked.junit:
        write_junit(result, asked.junit, require_answer=asked.require_answer)
    page = page_of(result)
    if asked.as_json:
        click.echo(result.to_json())
    else:
        print_screen(page, everything=asked.everything)
    click.echo(f"run:    {shown(run.directory)}", err=True)
    click.echo(f"kept:   {_kept(run)}", err=True)
    click.echo(f"report: {file}", err=True)
    if any(result.planned.runs_programs for result in run.iter_results()):
        click.echo(f"output: {run.directory / output_of_program('*', 'client.out')}", err=True)
    if not asked.as_json:
        for line in page.conclusion:
            click.echo(line)
    from crosswind.findings.threshold.result import ThresholdResult

    verdicts = [threshold.verdict for threshold in result.of(ThresholdResult)]
    return status_of(verdicts, require_answer=asked.require_answer, valid=result.valid and run.valid)
