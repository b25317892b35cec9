"""`crosswind verify`: whether cells of a run in virtual time come out the same again."""

from pathlib import Path

import click

from crosswind.cli.places import RUN_PATH
from crosswind.errors import UsageError
from crosswind.text.terminal_table import TextColumn, table_lines
from crosswind.text.visible import visible

_CELLS = 5


@click.command()
@click.argument("run", required=False, type=RUN_PATH, metavar="[RUN]")
@click.option("--cells", type=click.IntRange(1), metavar="N", help=f"Number of cells to rerun. Default: {_CELLS}.")
@click.option("--all", "all_cells", is_flag=True, help="Rerun every cell in virtual time.")
@click.option("--on", metavar="CLUSTER", help="Rerun the cells on a Dask cluster, as `crosswind run --on` does.")
@click.option("--files", "files_only", is_flag=True, help="Only check the run's files; run nothing.")
def command(*, run: Path | None, cells: int | None, all_cells: bool, files_only: bool, on: str | None) -> int:
    """Rerun cells of RUN, or of the latest run, and compare every bit.

    The seed, the kernel and crosswind-cell determine a cell in virtual time: samples, packets, captures and result are
    the same each time. The command checks every file of the run against its checksum, and then reruns a sample of these
    cells in a temporary directory. It does not touch the run.

    Exit status: 0 when everything is the same, 1 when something differs or a file is damaged, 2 when there is nothing
    to rerun, or the manifest or the plan is damaged.
    """
    if (cells is not None) + all_cells + files_only > 1:
        raise UsageError("--cells, --all and --files exclude each other", hint="give only one of them")
    # The runner takes a while to import: --help should not wait.
    from crosswind.cell.process import CellEnd
    from crosswind.execution.observer import Observer
    from crosswind.execution.verify import check_files, verify
    from crosswind.store.listing import latest_run
    from crosswind.store.plan import PlannedCell

    class Progress(Observer):
        """Says on standard error when a cell has ended."""

        def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
            click.echo(f"{planned.key} was rerun in {end.elapsed_ns / 1e9:.1f} s", err=True)

    place = run or latest_run()
    checked = check_files(place)
    for sentence in checked.sentences:
        click.echo(visible(f"damaged: {sentence}"))
    if files_only:
        click.echo(f"{checked.files - len(checked.sentences)} of {checked.files} files are unchanged")
        return 1 if checked.sentences else 0
    asked = None if all_cells else cells or _CELLS
    verification = verify(place, cells=asked, observer=Progress(), on=on)
    for remark in verification.remarks:
        click.echo(visible(f"note: {remark}"), err=True)
    if verification.added:
        click.echo(f"note: new in this crosswind-cell, and not compared: {', '.join(verification.added)}", err=True)
    rows = [
        [comparison.key, "same" if comparison.same else f"differs: {', '.join(comparison.differing)}"]
        for comparison in verification.comparisons
    ]
    for line in table_lines([TextColumn(), TextColumn()], rows):
        click.echo(visible(line.plain))
    rerun = len(verification.comparisons)
    same = rerun - len(verification.differing)
    click.echo(f"{same} of {rerun} cells came out the same, of {verification.repeatable} in virtual time")
    if verification.real:
        click.echo(f"{verification.real} cells ran on the machine's clock; they cannot be repeated exactly")
    return 1 if verification.differing or checked.sentences else 0
