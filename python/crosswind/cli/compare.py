"""`crosswind compare`: changes between two runs, and whether they exceed a limit."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.cli.places import RUN_PATH
from crosswind.cli.thresholds import status_of
from crosswind.errors import StoreError, UsageError
from crosswind.text.console import plain_console

if TYPE_CHECKING:
    from crosswind.analysis.two_runs.conditions import Condition
    from crosswind.analysis.two_runs.result import RunComparison
    from crosswind.analysis.two_runs.why import Packets
    from crosswind.store.run import StoredRun

_FILE = click.Path(path_type=Path, dir_okay=False)

_EPILOG = """\b
A condition is STATISTIC(METRIC) worse|better|differs by AMOUNT:
  --fail-if "p95(rtt) worse by 10%"      --fail-if "mean(rtt) worse by 2ms"
  --fail-if "mean(goodput) worse by 5%"  --fail-if "share(lost) worse by 1%"

\b
Exit status:
  0  no condition fails; without --require-answer, one may be inconclusive
  1  a common cell failed or is invalid, or a file of a run is damaged
  2  the command line or a run is wrong, or the runs have no common cell
  3  a condition fails
  4  with --require-answer: a condition is inconclusive
"""


@click.command(epilog=_EPILOG)
@click.argument("run_a", type=RUN_PATH)
@click.argument("run_b", type=RUN_PATH)
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Compare this metric; repeatable.")
@click.option(
    "--fail-if",
    "fail_if",
    multiple=True,
    metavar="CONDITION",
    help='Fail if this is shown: "p95(rtt) worse by 10%"; repeatable.',
)
@click.option("--require-answer", is_flag=True, help="Fail also if a condition is inconclusive.")
@click.option("--why", is_flag=True, help="Show what each change is made of, and the packet at which the runs diverge.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.comparison/2.")
@click.option(
    "--junit", type=_FILE, metavar="FILE",
    help="Write JUnit XML: a test case per common cell, and one per cell of each condition.",
)  # fmt: skip
@click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page with verdicts, charts and tables.")
def command(
    *,
    run_a: Path,
    run_b: Path,
    metrics: tuple[str, ...],
    fail_if: tuple[str, ...],
    require_answer: bool,
    why: bool,
    as_json: bool,
    html: Path | None,
    junit: Path | None,
) -> int:
    """Compare RUN_B with RUN_A: two commits, two machines, two clocks.

    Cells are matched by their parameters, else by their levels. Repetitions with the same number and seed are compared
    pair by pair. A condition fails if a test excludes chance (2.5 %, corrected over all cells and conditions).
    --why needs pairs of repetitions, and packets that both runs kept (--packets) to say at which one they part.
    """
    if require_answer and not fail_if:
        raise UsageError("--require-answer without a condition", hint='add one: --fail-if "p95(rtt) worse by 10%"')
    # Statistics take over a second to import: neither --help nor a mistake should wait.
    from crosswind.report.text.terminal import print_summary
    from crosswind.report.two_runs import page_of

    comparison = _compared(run_a, run_b, metrics, fail_if, why=why)
    if html:
        # Drawing takes more than a second to import.
        from crosswind.report.html import write_html

        write_html(page_of(comparison, has_charts=True), html)
        click.echo(f"wrote {html}", err=True)
    if junit:
        from crosswind.report.junit import write_junit

        write_junit(comparison, junit, require_answer=require_answer)
        click.echo(f"wrote {junit}", err=True)
    if as_json:
        click.echo(comparison.to_json())
    else:
        print_summary(page_of(comparison), plain_console())
    answers = [condition.answer for condition in comparison.conditions]
    damaged = comparison.a.damaged or comparison.b.damaged
    valid = not damaged and not any(cell.invalid_a or cell.invalid_b for cell in comparison.common)
    return status_of(answers, require_answer=require_answer, valid=valid)


def _compared(
    run_a: Path, run_b: Path, metrics: tuple[str, ...], fail_if: tuple[str, ...], *, why: bool
) -> "RunComparison":
    """Raises: UsageError for an unknown metric or condition; StoreError for incomparable runs."""
    from crosswind.analysis.two_runs.compare import ComparedRun, compare_runs
    from crosswind.analysis.two_runs.why import NotPairedError
    from crosswind.catalog.metrics import LOST, METRICS, metric_named
    from crosswind.errors import did_you_mean
    from crosswind.stats.estimate import TooFewSamples
    from crosswind.store.addresses import shown
    from crosswind.store.run import load

    for name in metrics:
        if metric_named(name) is None:
            raise UsageError(
                f"--metric {name}: there is no such metric", hint=did_you_mean(name, [*METRICS, LOST.name])
            )
    conditions = [_condition(text) for text in fail_if]
    if run_a.resolve() == run_b.resolve():
        raise UsageError(
            f"{shown(run_a)} and {shown(run_b)} are the same run", hint="name two runs: `crosswind runs` lists them"
        )
    runs = load(run_a), load(run_b)
    named = [(runs[0], shown(run_a)), (runs[1], shown(run_b))]
    try:
        if any(run.is_large for run in runs) and not (metrics or conditions or why):
            sides = [ComparedRun.large(run.large((), results=False), name) for run, name in named]
        else:
            sides = [ComparedRun.whole(run.measured(), name) for run, name in named]
        return compare_runs(
            *sides,
            metrics=metrics,
            conditions=conditions,
            packets=(_packets(runs[0]), _packets(runs[1])) if why else None,
        )
    except NotPairedError as error:
        raise StoreError(f"--why: {error.message}", hint=error.hint) from None
    except TooFewSamples as error:
        raise StoreError(
            error.message, hint="cells match when all their parameters, or all their levels, are the same"
        ) from None


def _packets(run: "StoredRun") -> "Packets":
    """A reader for one repetition's packets."""
    results = run.results()
    return lambda repetition: run.packets(results[repetition.key])


def _condition(text: str) -> "Condition":
    from crosswind.analysis.two_runs.conditions import ConditionError, read_condition

    try:
        return read_condition(text)
    except ConditionError as error:
        raise UsageError(f"--fail-if {error.message}", hint=error.hint) from None
