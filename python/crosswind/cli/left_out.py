"""Says what of a study this machine runs otherwise than it is written, where the study allows that."""

import click

from crosswind.first_look import first_look
from crosswind.study.design import Study
from crosswind.study.optional_peers import for_this_machine


def with_what_is_here(study: Study, *, quick: bool = False, clock: str | None = None) -> Study:
    """A study without the cells of its optional peers that are not installed, each of which it names on standard error.

    Args: quick: its quick variant. clock: that it is to have; None where nobody chose one.
    Raises: StudyError.
    """
    here, notes = first_look(study, clock=clock) if quick else for_this_machine(study)
    for sentence in notes:
        click.echo(f"note: {sentence}", err=True)
    return here
