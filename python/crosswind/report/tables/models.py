"""What models predict for each cell, beside what was measured."""

from crosswind.analysis.result import CellResult, ModelPrediction, Result
from crosswind.report.tables.table import FEW_ROWS, Table, grouped, names, numbers, words
from crosswind.report.text.format import (
    NOTHING,
    interval_or_observed,
    levels,
    number,
    quantity,
    scale_of,
    three_digits,
)

_HELP = (
    "What published models predict for the same path. “Uncapped” is the number of the formula alone, where the link "
    "cannot carry that much. Where a cell breaks a model's assumptions, prediction and measurement need not agree."
)
_ABSENT = "none"
_NARROW = (0, 1, 3, 5, 6)
"""The columns of the narrow form."""


def model_tables(result: Result) -> list[Table]:
    """A row for each model and cell."""
    predictions = [(cell, prediction) for cell in result.cells for prediction in cell.models]
    if not predictions:
        return []
    rows = [_row(cell, prediction) for cell, prediction in predictions]
    columns = [
        *names("cell", "model"),
        *numbers("RTT", "predicted", "uncapped", "measured mean", "ratio"),
        *words("assumptions hold"),
    ]
    remarks = grouped(
        (remark, prediction.title)
        for _, prediction in predictions
        for remark in (*prediction.violated, *prediction.notes)
    )
    notes = [f"{'; '.join(titles)}: {remark}" for remark, titles in remarks.items()]
    narrow = [[row[index] for index in _NARROW] for row in rows]
    small = Table("Models", [columns[index] for index in _NARROW], narrow)
    return [Table("Models", columns, rows, footnotes=notes, narrow=small, help=_HELP, terminal_rows=FEW_ROWS)]


def _row(cell: CellResult, prediction: ModelPrediction) -> list[str]:
    measured = prediction.measured.value if prediction.measured else None
    divisor, unit = scale_of([prediction.value, measured, *(prediction.observed or ())], prediction.unit)
    rtt_s = prediction.inputs.get("rtt_s")
    return [
        levels(cell.levels),
        prediction.title,
        NOTHING if rtt_s is None else quantity(1e9 * rtt_s, "ns"),
        _ABSENT if prediction.value is None else f"{number(prediction.value, divisor)} {unit}",
        _uncapped(prediction),
        f"{interval_or_observed(prediction.measured, prediction.observed, divisor)} {unit}",
        three_digits(prediction.ratio),
        NOTHING if prediction.uncapped is None else "no" if prediction.violated else "yes",
    ]


def _uncapped(prediction: ModelPrediction) -> str:
    """The bare formula's value where the link caps it."""
    if prediction.uncapped is None:
        return _ABSENT
    return NOTHING if prediction.uncapped == prediction.value else quantity(prediction.uncapped, prediction.unit)
