"""What a command that has no place for warnings in its output says of a damaged run."""

from typing import TYPE_CHECKING

import click

from crosswind.damage import damage_sentences

if TYPE_CHECKING:
    from crosswind.record import RunRecord


def warn_of_damage(record: "RunRecord") -> None:
    """Says on standard error which files of a run are damaged."""
    for text in damage_sentences(record.damaged):
        click.echo(f"warning: {text}", err=True)
