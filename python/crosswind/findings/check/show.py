"""Statements of documents that their own numbers decide."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.findings.check.judge import CheckResult
from crosswind.report.page import Section, Sentence
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Shown, Table, names, sentences
from crosswind.report.text.format import NOTHING

_HOW_TO_READ = (
    "Each verdict follows from a formula that the study declares over numbers that the document prints. No measurement "
    "enters it."
)


def check_table(result: Result) -> Table | None:
    """A row for each statement; a terminal has them as sentences."""
    checks = result.of(CheckResult)
    if not checks:
        return None
    rows = [
        [
            check.verdict.capitalize(),
            check.sentence.split(": ", 1)[1],
            check.value,
            ". ".join(filter(None, (check.source, check.note))) or NOTHING,
        ]
        for check in checks
    ]
    columns = [*names("verdict"), *sentences("statement, and what the numbers come to", "formula", "source")]
    return Table("The documents by their own numbers", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.HTML)


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    if table := check_table(result):
        yield Section(table.title, tables=[table])


def _remarks(result: Result) -> Iterator[Sentence]:
    yield from (Sentence(check.sentence, shown=Shown.TERMINAL) for check in result.of(CheckResult))


SHOWING = Showing(_sections, remarks=_remarks)
