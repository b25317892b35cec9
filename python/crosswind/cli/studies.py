"""`crosswind studies`: lists the built-in studies."""

import json

import click

from crosswind.study.files import builtin_studies
from crosswind.text.console import plain_console
from crosswind.text.terminal_table import TextColumn, print_table


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: name to title.")
def command(as_json: bool) -> None:
    """List the built-in studies."""
    studies = builtin_studies()
    if as_json:
        click.echo(json.dumps(dict(studies), indent=2, ensure_ascii=False))
        return
    print_table(plain_console(), [TextColumn(), TextColumn()], studies)
