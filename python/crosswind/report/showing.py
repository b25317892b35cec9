"""What a page has of the findings of a kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from crosswind.analysis.result import Result
from crosswind.catalog.finding_kinds import of_each_kind
from crosswind.report.page import Section, Sentence


@dataclass(frozen=True)
class JUnitCase:
    """A test case of JUnit XML. said: what decided it; empty of what is as it should be. levels: of its cell."""

    name: str
    verdict: str
    said: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedProfile:
    """What somebody published of a client program's time for a message, in ns: all of it, and that of its functions."""

    source: str
    note: str | None
    whole: float
    functions: Mapping[str, float]


def nothing(result: Result) -> Sequence[Any]:
    """That a kind has nothing of a sort."""
    del result
    return ()


@dataclass(frozen=True)
class Showing:
    """How findings of a kind are shown.

    Attributes:
        sections: of the page. With charts where its second argument asks for them: what draws takes a while to import.
        banners: what a run was made for and no section answers. They stand first, and are never left out.
        remarks: further sentences of the first screen.
        answers: what answers for the run, which then needs no sentences about what it shows by itself.
        conclusion: the last lines of a terminal.
        metrics: names of the metrics that it asks about, whose tables come first, each with its statistic.
        cases: test cases of JUnit XML.
        profiles: of client programs, beside those that were measured.
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
    """Of a table of statements: the verdict, the rest of the sentence, and whose statement it is."""
    verdict, _, said = sentence.partition(": ")
    return [verdict, said, ". ".join(filter(None, (source, note)))]


@cache
def showings() -> tuple[Showing, ...]:
    """How findings of each kind are shown."""
    return tuple(of_each_kind("show", "SHOWING").values())
