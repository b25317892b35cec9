"""`crosswind schema`: the published schemas, for editors and checks."""

import click


@click.command()
@click.argument("what", type=click.Choice(["study", "result", "page"]), default="study")
def command(what: str) -> None:
    """Print the JSON Schema of study files, of --json results, or of a report as data."""
    if what == "study":
        from crosswind.study.schema import schema_text
    elif what == "result":
        from crosswind.findings.result import schema_text
    else:
        from crosswind.report.page import schema_text
    click.echo(schema_text(), nl=False)
