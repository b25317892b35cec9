"""Published numbers beside ours, and documents' statements decided by their own numbers."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.findings.published.judge import PublishedNumber, PublishedResult
from crosswind.report.page import Section, SectionPlace, Sentence
from crosswind.report.showing import PublishedProfile, Showing, verdict_row
from crosswind.report.tables.table import Table, names, numbers, sentences
from crosswind.report.text.format import (
    NOTHING,
    count,
    count_of,
    interval_or_observed,
    levels,
    scale_of,
    three_digits,
    with_unit,
)

_OF_PROGRAMS = "send_time"
"""The metric with possibly published functions."""
_NARROW = (0, 1, 3, 4, 5)
"""The narrow form's columns."""
_HOW_TO_READ = (
    "Each verdict follows from a formula that the study declares over numbers that the document prints. No measurement "
    "enters it."
)


def published_table(result: Result) -> Table | None:
    """A row for each published number and each of its cells."""
    published = [each for each in result.of(PublishedResult) if not each.says]
    if not published:
        return None
    by_cell = {cell.cell: cell.levels for cell in result.cells}
    rows = [_row(each, number, by_cell) for each in published for number in each.numbers]
    columns = [
        *names("source", "cell", "metric"),
        *numbers("published", "ours, 95 %", "ours / theirs"),
        *sentences("remark"),
    ]
    notes = list(dict.fromkeys(f"{each.source}: {each.note}" for each in published if each.note))
    narrow = [[row[index] for index in _NARROW] for row in rows]
    small = Table("Published numbers", [columns[index] for index in _NARROW], narrow)
    return Table("Published numbers", columns, rows, footnotes=notes, narrow=small)


def _row(published: PublishedResult, number: PublishedNumber, by_cell: dict[int, dict[str, str]]) -> list[str]:
    theirs = published.theirs or 0.0
    divisor, unit = scale_of([theirs], published.unit)
    spread = "" if published.theirs_ci is None else f" ± {published.theirs_ci / divisor:.4g}"
    ours = NOTHING
    if number.ours is not None:
        ours = with_unit(interval_or_observed(number.ours, number.observed, divisor), unit)
    return [
        published.source,
        levels(published.levels if number.cell is None else by_cell[number.cell]),
        f"{published.statistic} {METRICS[published.metric].title.lower()}",
        f"{theirs / divisor:.4g}{spread} {unit}",
        ours,
        three_digits(number.ratio),
        number.remark,
    ]


def _statements(result: Result) -> list[PublishedResult]:
    return [each for each in result.of(PublishedResult) if each.says]


def _statement_table(result: Result) -> Table | None:
    """A row for each statement."""
    rows = []
    for each in _statements(result):
        verdict, said, source = verdict_row(str(each.sentence), each.source, each.note)
        rows.append([verdict, said, each.value, source])
    columns = [*names("verdict"), *sentences("statement, and what the numbers come to", "formula", "source")]
    title = "The documents by their own numbers"
    return Table(title, columns, rows, footnotes=[_HOW_TO_READ]) if rows else None


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    if table := published_table(result):
        yield Section(table.title, tables=[table], place=SectionPlace.AFTER_METRICS)
    if table := _statement_table(result):
        yield Section(table.title, tables=[table])


def _banners(result: Result) -> Iterator[Sentence]:
    """How many statements hold by the documents' own numbers, and the first that do not."""
    statements = _statements(result)
    if not statements:
        return
    failing = [each.says.rstrip(".") for each in statements if each.verdict == "no"]
    counted = f"{count(len(failing))} of {count_of(len(statements), 'statement')} by their own numbers"
    named = f", as: {failing[0]}" if failing else ""
    yield Sentence(f"Documents fail {counted}{named}.")


def _profiles(result: Result) -> Iterator[PublishedProfile]:
    for each in result.of(PublishedResult):
        if each.metric == _OF_PROGRAMS and each.functions:
            yield PublishedProfile(each.source, each.note, each.theirs or 0.0, each.functions)


SHOWING = Showing(_sections, _banners, profiles=_profiles)
