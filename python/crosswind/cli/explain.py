"""`crosswind explain`: why single exchanges of a run took as long as they did."""

import json
from pathlib import Path

import click

from crosswind.cli.output import plain_console
from crosswind.cli.standard_output import readers_may_leave
from crosswind.errors import UsageError
from crosswind.terminal_table import Column, numbers, print_table

_SLOWEST = 3
_ROWS = 40


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option("--cell", type=click.IntRange(0), metavar="N", help="Only of cell N, as `crosswind show` counts them.")
@click.option("--repetition", type=click.IntRange(0), metavar="N", help="Only of repetition N of each cell, from 0.")
@click.option(
    "--slowest", type=click.IntRange(1, 200), metavar="N", help=f"The N slowest exchanges. Default: {_SLOWEST}."
)
@click.option("--message", type=click.IntRange(0), metavar="N", help="Exchange N of a cell, from 0.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def command(
    *,
    run: Path | None,
    cell: int | None,
    repetition: int | None,
    slowest: int | None,
    message: int | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Show why exchanges of RUN, or of the latest run, took as long as they did.

    Each has a sentence, and a timeline of what its time was spent on, the pieces of which sum to its whole time.
    Times are those of the packets through the emulator (docs/explain.md). Of a run with `sample_tcp` a page also draws
    what the kernel knew of the TCP socket that sent the most, and, where packets are kept, what the path did to them.

    Exit status: 0; 2 when there is no such exchange, or nothing tells what its time was spent on.
    """
    if slowest is not None and message is not None:
        raise UsageError("--slowest and --message exclude each other", hint="give only one of them")
    if html and as_json:
        raise UsageError("--html and --json exclude each other", hint="give only one of them")
    # Reading tables takes a while to import, for which --help should not wait.
    from crosswind.explained import SCHEMA
    from crosswind.report.text.explained import timeline, why
    from crosswind.store.directory import Store
    from crosswind.store.explained import explained, socket_histories
    from crosswind.store.listing import latest_run

    store = Store.read(run or latest_run())
    found = explained(store, cell=cell, repetition=repetition, message=message, slowest=slowest or _SLOWEST)
    if html:
        from crosswind.report.explain_page import write_explained

        histories = socket_histories(store, found)
        write_explained(found, histories, store.manifest.presentation["title"], html)
        click.echo(f"wrote {html}", err=True)
        return 0
    with readers_may_leave():
        if as_json:
            exchanges = [{**each.to_json(), "sentence": why(each)} for each in found]
            click.echo(json.dumps({"schema": SCHEMA, "exchanges": exchanges}, indent=2, ensure_ascii=False))
            return 0
        console = plain_console()
        for each in found:
            console.print(why(each))
            rows = timeline(each)
            columns = [*numbers("at", "takes", "share"), Column("spent on"), Column("where"), Column("packet", spare=1)]
            print_table(console, columns, rows[:_ROWS])
            if len(rows) > _ROWS:
                console.print(f"and {len(rows) - _ROWS} more: --json and --html have them all")
            console.print()
    return 0
