"""Statements of documents that their own numbers decide."""

from crosswind.analysis.result import Result
from crosswind.report.tables.table import Shown, Table, names, sentences
from crosswind.report.text.format import NOTHING

_HOW_TO_READ = (
    "Each verdict follows from a formula that the study declares over numbers that the document prints. No measurement "
    "enters it."
)


def check_tables(result: Result) -> list[Table]:
    """A row for each statement; a terminal has them as sentences."""
    if not result.checks:
        return []
    rows = [
        [
            check.verdict.capitalize(),
            check.sentence.split(": ", 1)[1],
            check.value,
            ". ".join(filter(None, (check.source, check.note))) or NOTHING,
        ]
        for check in result.checks
    ]
    columns = [*names("verdict"), *sentences("statement, and what the numbers come to", "formula", "source")]
    return [Table("The documents by their own numbers", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.PAGE)]
