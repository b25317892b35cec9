"""Says which cells of a study this machine cannot run, where the study allows that."""

import click

from crosswind.study.design import Study
from crosswind.study.optional_peers import for_this_machine


def with_what_is_here(study: Study) -> Study:
    """A study without the cells of its optional peers that are not installed, each of which it names on standard error.

    Raises: StudyError.
    """
    here, left_out = for_this_machine(study)
    for sentence in left_out:
        click.echo(f"note: {sentence}", err=True)
    return here
