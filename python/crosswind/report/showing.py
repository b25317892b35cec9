"""The findings' parts on a page, by kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from crosswind.analysis.result import Result
from crosswind.catalog.finding_kinds import of_each_kind
from crosswind.report.page import Section, Sentence


@dataclass(frozen=True)
class JUnitCase:
    """A JUnit XML test case. said: the deciding fact; empty after a pass. levels: its cell's."""

    name: str
    verdict: str
    said: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedProfile:
    """A published profile of a client program's time per message, in ns: the whole, and by function."""

    source: str
    note: str | None
    whole: float
    functions: Mapping[str, float]


def nothing(result: Result) -> Sequence[Any]:
    """A kind without such parts."""
    del result
    return ()


@dataclass(frozen=True)
class Showing:
    """The display of one kind of findings.

    Attributes:
        sections: the page's. With charts if its second argument is true: drawing takes a while to import.
        banners: the run's purpose, unanswered by any section. They stand first, and are never left out.
        remarks: further sentences on the first screen.
        answers: sentences answering for the run, which then needs none on its own comparisons.
        conclusion: a terminal's last lines.
        metrics: names of its metrics; their tables come first, each with its statistic.
        cases: JUnit XML test cases.
        profiles: published ones of client programs, beside the measured ones.
    """

    sections: Callable[[Result, bool], Iterable[Section]]
    banners: Callable[[Result], Iterable[Sentence]] = nothing
    remarks: Callable[[Result], Iterable[Sentence]] = nothing
    answers: Callable[[Result], Sequence[object]] = nothing
    conclusion: Callable[[Result], Sequence[str]] = nothing
    metrics: Callable[[Result], Iterable[tuple[str, str | None]]] = nothing
    cases: Callable[[Result], Iterable[JUnitCase]] = nothing
    profiles: Callable[[Result], Iterable[PublishedProfile]] = nothing


def verdict_row(sentence: str, source: str, note: str | None) -> list[str]:
    """A row in a table of statements: the verdict, the rest of the sentence, and the source."""
    verdict, _, said = sentence.partition(": ")
    return [verdict, said, ". ".join(filter(None, (source, note)))]


@cache
def showings() -> tuple[Showing, ...]:
    """The display of each kind of findings."""
    return tuple(of_each_kind("show", "SHOWING").values())


def conclusion_of(result: Result) -> list[str]:
    """A run's last lines."""
    return [line for showing in showings() for line in showing.conclusion(result)]
