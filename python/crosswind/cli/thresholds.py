"""Options for judging a run: `--fail-if`, `--require-answer`, `--junit`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

SHOWN = 3
"""Exit status when a condition fails."""
CANNOT_TELL = 4
"""Exit status when a condition is inconclusive and an answer is required."""


require_answer_option = click.option("--require-answer", is_flag=True, help="Fail also if a threshold is inconclusive.")


def threshold_options(function: F) -> F:
    """Gives a command the three options."""
    for option in (
        click.option(
            "--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help="Write JUnit XML: a test case per cell, and one per cell of each threshold.",
        ),
        require_answer_option,
        click.option(
            "--fail-if", "fail_if", multiple=True, metavar="THRESHOLD",
            help='Fail if this is shown: "p95(rtt) > 200ms where loss = 2%"; repeatable.',
        ),
    ):  # fmt: skip
        option(function)
    return function


def status_of(verdicts: Iterable[str], *, require_answer: bool, valid: bool) -> int:
    """The exit status: a failure comes before an invalid measurement, an invalid measurement before an open question.

    Args: verdicts: from thresholds or conditions. valid: whether the rest is in order.
    """
    distinct = set(verdicts)
    if "fail" in distinct:
        return SHOWN
    if not valid:
        return 1
    return CANNOT_TELL if require_answer and "inconclusive" in distinct else 0
