"""`crosswind studies`: what can be run by name."""

import json

import click
from rich.table import Table

from crosswind.cli.output import plain_console
from crosswind.study.files import builtin_studies


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: name to title.")
def command(as_json: bool) -> None:
    """List the built-in studies."""
    studies = builtin_studies()
    if as_json:
        click.echo(json.dumps(dict(studies), indent=2, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, title in studies:
        table.add_row(name, title)
    plain_console().print(table)
