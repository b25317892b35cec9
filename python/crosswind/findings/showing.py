"""How findings of a kind are shown, on a page and on a terminal."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crosswind.analysis.result import Result
from crosswind.report.page import Section, Sentence


def nothing(result: Result) -> Iterable[Sentence]:
    """That a kind says nothing."""
    del result
    return ()


def no_metrics(result: Result) -> Iterable[str]:
    """That a kind asks about no metric."""
    del result
    return ()


@dataclass(frozen=True)
class Showing:
    """How findings of a kind are shown.

    Attributes:
        sections: of the page, whose tables a terminal prints with `--all` unless they are Shown.PAGE. With charts where
            its second argument asks for them: what draws takes a while to import.
        answers: what a run was made for, which stands first and is never left out.
        remarks: further sentences of the first screen, of page and terminal.
        listed: those of the first screen of a terminal that a page has as a table.
        metrics: names of the metrics that it asks about, whose tables come first.
    """

    sections: Callable[[Result, bool], Iterable[Section]]
    answers: Callable[[Result], Iterable[Sentence]] = nothing
    remarks: Callable[[Result], Iterable[Sentence]] = nothing
    listed: Callable[[Result], Iterable[Sentence]] = nothing
    metrics: Callable[[Result], Iterable[str]] = no_metrics
