"""`crosswind schema`: the published schemas, for editors and checks."""

import click


@click.command()
@click.argument("what", type=click.Choice(["study", "result"]), default="study")
def command(what: str) -> None:
    """Print the JSON Schema of study files, or of --json results."""
    if what == "study":
        from crosswind.study.schema import schema_text
    else:
        from crosswind.analysis.result import schema_text
    click.echo(schema_text(), nl=False)
