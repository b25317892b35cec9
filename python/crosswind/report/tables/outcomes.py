"""Unsuccessful exchanges, by cause."""

from crosswind.analysis.result import CellResult, Result
from crosswind.report.tables.table import Table, grouped, invalid_rows, names, numbers, sentences
from crosswind.report.text.format import NOTHING, count, levels, listed, outcome_text, percent_interval


def outcome_tables(result: Result) -> list[Table]:
    """How many exchanges of each cell were lost and why, where any were."""
    cells = [cell for cell in result.cells if cell.loss is not None]
    if not any(cell.lost for cell in cells):
        return []
    rows = [
        [levels(cell.levels), count(cell.n), count(cell.lost), percent_interval(cell.loss), _causes(cell)]
        for cell in cells
        if cell.loss is not None
    ]
    columns = [*names("cell"), *numbers("n", "lost", "share, 95 %"), *sentences("causes")]
    notes = [*_first_errors(cells), *dict.fromkeys(f"Intervals: {cell.loss.method}." for cell in cells if cell.loss)]
    return [Table("Exchanges lost, by cause", columns, rows, invalid_rows(cells), notes)]


def _causes(cell: CellResult) -> str:
    return ", ".join(outcome_text(failures.outcome, failures.count) for failures in cell.failures) or NOTHING


def _first_errors(cells: list[CellResult]) -> list[str]:
    errors = grouped(
        (f"{failures.outcome}: {failures.first_error}", levels(cell.levels))
        for cell in cells
        for failures in cell.failures
        if failures.first_error
    )
    return [f"First error of {text} ({listed(concerned, 3)})" for text, concerned in errors.items()]
