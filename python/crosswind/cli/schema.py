"""`crosswind schema`: the published schemas, for editors and checks."""

import click

from crosswind.analysis import result
from crosswind.study import schema as study_schema


@click.command()
@click.argument("what", type=click.Choice(["study", "result"]), default="study")
def command(what: str) -> None:
    """Print the JSON Schema of study files, or of --json results."""
    click.echo(study_schema.schema_text() if what == "study" else result.schema_text(), nl=False)
