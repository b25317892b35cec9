"""The options of commands that judge a run: `--fail-if`, `--require-answer`, `--junit`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from crosswind.analysis.result import Result

F = TypeVar("F", bound=Callable[..., Any])

SHOWN = 3
"""Exit status when a condition is shown."""
CANNOT_TELL = 4
"""Exit status when a condition can neither be shown nor excluded, and an answer is required."""


def threshold_options(function: F) -> F:
    """Gives a command the three options."""
    for option in (
        click.option(
            "--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help="Write a JUnit XML file: a test case for each cell, and for each cell of each threshold.",
        ),
        click.option("--require-answer", is_flag=True, help="Fail also when nobody can tell whether a bound is kept."),
        click.option(
            "--fail-if", "fail_if", multiple=True, metavar="THRESHOLD",
            help='Fail when this is shown: "p95(rtt) > 200ms where loss = 2%"; repeatable.',
        ),
    ):  # fmt: skip
        option(function)
    return function


def status_of(result: "Result", *, require_answer: bool, valid: bool = True) -> int:
    """The exit status: a threshold that fails comes before a cell that is not valid. Args: valid: of the run."""
    verdicts = {threshold.verdict for threshold in result.thresholds}
    if "fail" in verdicts:
        return SHOWN
    if not (result.valid and valid):
        return 1
    return CANNOT_TELL if require_answer and "cannot tell" in verdicts else 0
