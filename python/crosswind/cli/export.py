"""`crosswind export`: a run as one archive for others to read, cite and repeat."""

from pathlib import Path

import click

from crosswind.cli.places import RUN_PATH
from crosswind.cli.text import warn_of_damage
from crosswind.errors import UsageError


@click.command()
@click.argument("run", required=False, type=RUN_PATH, metavar="[RUN]")
@click.option(
    "--ro-crate",
    "crate",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.zip",
    help="Write the run, its report and its description as an RO-Crate.",
)
@click.option(
    "--author", "authors", multiple=True, metavar="NAME", help="Add an author, as `Name (ORCID)`; repeatable."
)
@click.option("--licence", metavar="NAME|URL", help="Set the data's licence, as `CC-BY-4.0` or an address.")
@click.option("--zenodo", is_flag=True, help="Add a .zenodo.json.")
def command(
    *, run: Path | None, crate: Path | None, authors: tuple[str, ...], licence: str | None, zenodo: bool
) -> int:
    """Export RUN, or the latest run, for publication.

    An RO-Crate is a zip archive with a description of its content as JSON-LD: who measured what, when, with which
    versions, over which factors.

    Exit status: 0, or 1 when a file of the run is damaged.
    """
    if crate is None:
        raise UsageError("nothing to export", hint="--ro-crate FILE.zip")
    if zenodo and not authors:
        raise UsageError("--zenodo needs an author", hint="--author 'Name (0000-0000-0000-0000)'")
    # Charts and statistics take over a second to import: --help should not wait.
    from crosswind.api import results
    from crosswind.ro_crate import check_people, write_crate
    from crosswind.store.listing import latest_run
    from crosswind.store.run import load

    check_people(authors, licence)
    loaded = load(run or latest_run())
    made = results.analysed(loaded)
    warn_of_damage(made.record)
    files = write_crate(loaded, made, crate, authors=authors, licence=licence, zenodo=zenodo)
    click.echo(f"wrote {'standard output' if crate == Path('-') else crate}: {files} files", err=True)
    return 1 if made.record.damaged else 0
