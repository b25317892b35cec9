"""`crosswind explain`: why single exchanges or connections of a run took as long as they did."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.cli.places import RUN_PATH
from crosswind.errors import UsageError
from crosswind.text.console import plain_console
from crosswind.text.terminal_table import TextColumn, print_table

if TYPE_CHECKING:
    from crosswind.catalog.explained import Timed
    from crosswind.report.tables.table import Column

_SLOWEST = 3
_ROWS = 40


@click.command()
@click.argument("run", required=False, type=RUN_PATH, metavar="[RUN]")
@click.option(
    "--cell", type=click.IntRange(0), metavar="N", help="Explain cell N alone, as `crosswind show` counts them."
)
@click.option(
    "--repetition", type=click.IntRange(0), metavar="N", help="Explain only repetition N of each cell; the first is 0."
)
@click.option(
    "--slowest",
    type=click.IntRange(1, 200),
    metavar="N",
    help=f"Explain the N slowest exchanges or the N longest connections. Default: {_SLOWEST}.",
)
@click.option("--message", type=click.IntRange(0), metavar="N", help="Explain exchange N of a cell; the first is 0.")
@click.option(
    "--connection", type=click.IntRange(0), metavar="N", help="Explain connection N of a program; the first is 0."
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write an HTML page instead."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")
def command(
    *,
    run: Path | None,
    cell: int | None,
    repetition: int | None,
    slowest: int | None,
    message: int | None,
    connection: int | None,
    html: Path | None,
    as_json: bool,
) -> int:
    """Show why exchanges of RUN, or of the latest run, took as long as they did.

    Each has a sentence, and a timeline of what its time was spent on, the pieces of which sum to its whole time.
    Of programs, peers and pages these are connections. Times are those of the packets through the emulator
    (docs/explain.md). Of a run with `sample_tcp` a page also draws
    what the kernel knew of the TCP socket that sent the most, and, where packets are kept, what the path did to them.

    Exit status: 0; 2 when there is no such exchange, or nothing tells what its time was spent on.
    """
    for one, other, excluded in (
        ("slowest", "message", slowest is not None and message is not None),
        ("slowest", "connection", slowest is not None and connection is not None),
        ("message", "connection", message is not None and connection is not None),
        ("html", "json", html and as_json),
    ):
        if excluded:
            raise UsageError(f"--{one} and --{other} exclude each other", hint="give only one of them")
    # Readers for tables take a while to import: --help should not wait.
    from crosswind.catalog.explained import SCHEMA, Connection, Explained
    from crosswind.store.connections import explained_connections, has_connections
    from crosswind.store.directory import Store
    from crosswind.store.explained import check_sockets, explained, socket_histories
    from crosswind.store.listing import latest_run

    store = Store.read(run or latest_run())
    most = slowest or _SLOWEST
    shown: Sequence[Timed]
    if connection is not None and store.manifest.options.spent and not has_connections(store):
        raise UsageError(
            "connections are told of programs, peers and pages, and this run has none",
            hint="--message N explains exchange N of a cell",
        )
    if connection is not None or (message is None and has_connections(store)):
        shown = explained_connections(store, cell=cell, repetition=repetition, number=connection, longest=most)
    else:
        shown = explained(store, cell=cell, repetition=repetition, message=message, slowest=most)
    exchanges = [item for item in shown if isinstance(item, Explained)]
    if html:
        from crosswind.report.explain_page import write_explained

        histories = socket_histories(store, exchanges)
        write_explained(shown, histories, store.manifest.presentation["title"], html)
        click.echo(f"wrote {html}", err=True)
        return 0
    # A page alone shows sockets, but a damaged table is an error everywhere.
    check_sockets(store, exchanges)
    if as_json:
        from crosswind.report.explain_page import sentence_of

        what = "connections" if any(isinstance(item, Connection) for item in shown) else "exchanges"
        every = [{**item.to_json(), "sentence": sentence_of(item)} for item in shown]
        click.echo(json.dumps({"schema": SCHEMA, what: every}, indent=2, ensure_ascii=False))
        return 0
    for item in shown:
        _print(item)
    return 0


def _print(each: "Timed") -> None:
    """The sentence, a connection's time breakdown, and the timeline."""
    from crosswind.catalog.explained import Connection
    from crosswind.report.explain_page import PARTS, TIMELINE, part_rows, sentence_of
    from crosswind.report.text.explained import timeline

    console = plain_console()
    console.print(sentence_of(each))
    if isinstance(each, Connection):
        print_table(console, _columns(PARTS), part_rows(each))
        console.print()
    rows = timeline(each)
    print_table(console, _columns(TIMELINE), rows[:_ROWS])
    if len(rows) > _ROWS:
        console.print(f"and {len(rows) - _ROWS} more: --json and --html have them all")
    console.print()


def _columns(columns: "Sequence[Column]") -> list[TextColumn]:
    """The same on a terminal; a narrow one has no packets."""
    return [
        TextColumn(column.heading, right=column.kind.value == "number", spare=int(column.heading == "packet"))
        for column in columns
    ]
