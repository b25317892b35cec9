"""Thresholds: what became of each, and of each cell that it is about."""

from crosswind.analysis.result import Result
from crosswind.report.tables.table import Shown, Table, names, numbers
from crosswind.report.text.format import NOTHING, count, named_levels
from crosswind.report.text.thresholds import VERDICTS, value_text

_HOW_TO_READ = (
    "A cell passes where its whole 95 % interval is within the bound, and fails where the whole interval, widened for "
    "the number of cells of all thresholds (Bonferroni), is beyond it. “Cannot tell”: inconclusive; the last column "
    "is the number of further repetitions that would probably decide."
)


def threshold_tables(result: Result) -> list[Table]:
    """A row for each cell of each threshold."""
    if not result.thresholds:
        return []
    rows = [
        [
            VERDICTS[cell.verdict],
            threshold.fail_if,
            named_levels(cell.levels) or NOTHING,
            value_text(cell.value, threshold.unit),
            str(cell.value.units or NOTHING),
            NOTHING if cell.needed is None else count(cell.needed),
        ]
        for threshold in result.thresholds
        for cell in threshold.cells
    ]
    columns = [*names("verdict", "fail if", "at"), *numbers("measured [95 %]", "repetitions", "more needed")]
    return [Table("Thresholds", columns, rows, footnotes=[_HOW_TO_READ], shown=Shown.PAGE)] if rows else []
