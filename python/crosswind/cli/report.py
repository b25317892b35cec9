"""`crosswind report`: a run's results again, for people or programs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.cli.places import RUN_PATH
from crosswind.cli.text import warn_of_damage
from crosswind.cli.thresholds import status_of, threshold_options
from crosswind.errors import UsageError

if TYPE_CHECKING:
    from crosswind.api.results import Analysed
    from crosswind.store.run import StoredRun

_FILE = click.Path(path_type=Path, dir_okay=False)
_EPILOG = """\b
FILE may be `-` (standard output), a link, a pipe or a device.
"""


@click.command(epilog=_EPILOG)
@click.argument("run", required=False, type=RUN_PATH, metavar="[RUN]")
@click.option(
    "--cell",
    "cells",
    type=click.IntRange(0),
    multiple=True,
    metavar="N",
    help="Report cell N alone, as `crosswind show` counts them; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object only.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Print every table, then the summary; of a large run estimate every cell in depth.",
)
@click.option("--csv", type=_FILE, metavar="FILE", help="Write every estimate as CSV.")
@click.option("--parquet", type=_FILE, metavar="FILE", help="Write every estimate as Parquet.")
@click.option(
    "--samples", type=_FILE, metavar="FILE", help="Write every sample, with the levels of its cell, as Parquet."
)
@click.option("--html", type=_FILE, metavar="FILE", help="Write the HTML report to FILE.")
@click.option(
    "--page",
    "page_data",
    type=_FILE,
    metavar="FILE",
    help="Write the report as data, schema crosswind.page/1, as JSON.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the HTML report in a browser.")
@threshold_options
def command(
    *,
    run: Path | None,
    cells: tuple[int, ...],
    as_json: bool,
    everything: bool,
    csv: Path | None,
    parquet: Path | None,
    samples: Path | None,
    html: Path | None,
    page_data: Path | None,
    open_page: bool,
    fail_if: tuple[str, ...],
    require_answer: bool,
    junit: Path | None,
) -> int:
    """Show or export the results of RUN, or of the latest run.

    Of a run of more than 1,000 cells or 50,000 repetitions it is an overview: what the study asks is answered in depth,
    of all else there are means and medians, and --html writes a page of all cells beside FILE.

    Exit status: 0 when every cell is valid and no file is damaged, 1 otherwise; 3 when a threshold fails, 4 with
    --require-answer: a threshold is inconclusive.
    """
    _check(cells, judged=bool(fail_if or junit))
    files = [file for file in (csv, parquet, samples, html, page_data, junit) if file]
    printed = [file for file in files if file == Path("-")]
    if len(printed) + as_json > 1:
        raise UsageError("standard output takes one thing at a time", hint="give the others the name of a file")
    # Drawing and statistics take more than a second to import, for which --help should not wait.
    from crosswind.api import results
    from crosswind.report.junit import write_junit
    from crosswind.report.run_page import page_of
    from crosswind.report.text.terminal import print_screen
    from crosswind.store.listing import latest_run
    from crosswind.store.run import load

    loaded = load(run or latest_run())
    made = results.analysed(loaded, fail_if, cells=cells, everything=everything)
    record, result = made.record, made.result
    if as_json or files:
        warn_of_damage(record)
    _write_tables(made, csv, parquet, samples)
    if html or page_data:
        _write_pages(loaded, made, html, page_data)
    if junit:
        write_junit(result, junit, require_answer=require_answer)
    if as_json:
        click.echo(result.to_json())
    elif not files:
        page = page_of(result)
        print_screen(page, everything=everything)
        for line in page.conclusion:
            click.echo(line)
    for path in files:
        click.echo(f"wrote {'standard output' if path in printed else path}", err=True)
    if open_page:
        path = html if html and html not in printed else results.write_page(loaded, made)
        click.launch(str(path))
    from crosswind.findings.threshold.result import ThresholdResult

    verdicts = [threshold.verdict for threshold in result.of(ThresholdResult)]
    return status_of(verdicts, require_answer=require_answer, valid=result.valid)


def _check(cells: tuple[int, ...], *, judged: bool) -> None:
    """Raises: UsageError when options ask for some cells and judge the whole run."""
    if cells and judged:
        raise UsageError(
            "--cell reports some cells, and --fail-if and --junit judge the whole run", hint="leave out one of them"
        )


def _write_tables(made: "Analysed", csv: Path | None, parquet: Path | None, samples: Path | None) -> None:
    """Writes estimates and samples as files. Raises: DiskError; UsageError for the samples of a large run."""
    from crosswind.report.export import estimates_frame, samples_frame, write_csv, write_parquet

    if samples and made.overview is not None:
        raise UsageError(
            "--samples of so large a run takes --cell or --all",
            hint="or read its partitions in place: RUN/partitions/*/samples.parquet",
        )
    if csv:
        write_csv(made.result, csv)
    if parquet:
        write_parquet(estimates_frame(made.result), parquet)
    if samples:
        write_parquet(samples_frame(made.record), samples)


def _write_pages(run: "StoredRun", made: "Analysed", html: Path | None, data: Path | None) -> None:
    """The report as a page, and as data. Raises: DiskError."""
    from crosswind.api import results
    from crosswind.report.files import write_text
    from crosswind.report.overview_page import overview_page_of
    from crosswind.report.run_page import drawn_page

    if html:
        results.write_page(run, made, html)
    if data:
        page = (
            drawn_page(made.record, made.result, data=made.data)
            if made.overview is None
            else overview_page_of(made.result)
        )
        write_text(data, page.to_json() + "\n")
