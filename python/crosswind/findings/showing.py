"""What a page has of the findings of a kind."""

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
        sections: of the page. With charts where its second argument asks for them: what draws takes a while to import.
        banners: what a run was made for and no section answers. They stand first, and are never left out.
        remarks: further sentences of the first screen.
        metrics: names of the metrics that it asks about, whose tables come first.
    """

    sections: Callable[[Result, bool], Iterable[Section]]
    banners: Callable[[Result], Iterable[Sentence]] = nothing
    remarks: Callable[[Result], Iterable[Sentence]] = nothing
    metrics: Callable[[Result], Iterable[str]] = no_metrics
