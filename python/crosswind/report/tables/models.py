"""The models' predictions for each cell, beside the measurements."""

from collections.abc import Mapping

from crosswind.analysis.result import CellResult, ModelErrors, ModelPrediction, Result
from crosswind.report.tables.table import Table, grouped, names, numbers, sentences, words
from crosswind.report.text.format import (
    MINUS,
    NOTHING,
    interval_or_observed,
    levels,
    number,
    quantity,
    scale_of,
    three_digits,
    with_unit,
)

_HELP = (
    "Predictions of published models for the same path, and 95 % intervals of simulated means in brackets. “Loss”: "
    "what the model knows of. “Dropped”: the share of the data's packets that the path dropped, at random or because "
    "a queue was full. “Uncapped”: the formula's own number, where it exceeds the link's rate. In a cell that breaks "
    "a model's assumptions, prediction and measurement may disagree."
)
_ERRORS_HELP = (
    "How far each model's mean is from the measured one, |predicted / measured − 1|, over the cells that it has a "
    "number for, with loss and without it. “Measured ±”: the standard error of the measured means."
)
_ABSENT = "none"
_NARROW = (0, 1, 5, 7, 8)
"""The narrow form's columns."""


def model_error_tables(result: Result) -> list[Table]:
    """A row for each model: its median, mean and worst error over the cells."""
    if not result.model_errors:
        return []
    names_of = {cell.cell: levels(cell.levels) for cell in result.cells}
    rows = [_error_row(errors, names_of) for errors in result.model_errors]
    columns = [
        *names("model", "loss"),
        *numbers("cells", "median error", "mean", "worst", "bias", "measured ±", "outside range"),
        *sentences("worst cell"),
    ]
    notes = [
        f"{errors.title}: {errors.left_out} cells in which transfers failed are left out"
        for errors in result.model_errors
        if errors.left_out
    ]
    narrow = [row[:6] for row in rows]
    small = Table("Errors of the models", columns[:6], narrow)
    return [Table("Errors of the models", columns, rows, footnotes=notes, narrow=small, help=_ERRORS_HELP)]


def _error_row(errors: ModelErrors, names_of: Mapping[int, str]) -> list[str]:
    return [
        errors.title,
        "with" if errors.lossy else "without",
        str(errors.cells),
        _percent(errors.median),
        _percent(errors.mean),
        _percent(errors.worst),
        _percent(errors.bias, sign=True),
        NOTHING if errors.measured is None else _percent(errors.measured),
        str(errors.outside),
        names_of[errors.worst_cell],
    ]


def _percent(share: float, *, sign: bool = False) -> str:
    text = f"{100 * abs(share):.1f} %" if abs(share) < 0.995 else f"{100 * abs(share):.0f} %"
    return f"{'+' if share >= 0 else MINUS}{text}" if sign else text


def model_tables(result: Result) -> list[Table]:
    """A row for each model and cell."""
    predictions = [(cell, prediction) for cell in result.cells for prediction in cell.models]
    if not predictions:
        return []
    rows = [_row(cell, prediction) for cell, prediction in predictions]
    columns = [
        *names("cell", "model"),
        *numbers("RTT", "loss", "dropped", "predicted", "uncapped", "measured mean", "ratio"),
        *words("assumptions hold"),
    ]
    remarks = grouped(
        (remark, prediction.title)
        for _, prediction in predictions
        for remark in (*prediction.violated, *prediction.notes)
    )
    notes = [f"{'; '.join(titles)}: {remark}" for remark, titles in remarks.items()]
    narrow = [[row[index] for index in _NARROW] for row in rows]
    is_inferred = result.conditions is not None and result.conditions.network is not None
    title = "Models, of inferred loss and round-trip time" if is_inferred else "Models"
    small = Table(title, [columns[index] for index in _NARROW], narrow)
    return [Table(title, columns, rows, footnotes=notes, narrow=small, help=_HELP)]


def _row(cell: CellResult, prediction: ModelPrediction) -> list[str]:
    measured = prediction.measured.value if prediction.measured else None
    divisor, unit = scale_of([prediction.value, measured, *(prediction.observed or ())], prediction.unit)
    rtt_s, dropped = prediction.inputs.get("rtt_s"), prediction.dropped
    return [
        levels(cell.levels),
        prediction.title,
        NOTHING if rtt_s is None else quantity(1e9 * rtt_s, "ns"),
        *(NOTHING if share is None else f"{100 * share:.3g} %" for share in (prediction.inputs.get("loss"), dropped)),
        _predicted(prediction, divisor, unit),
        _uncapped(prediction),
        with_unit(interval_or_observed(prediction.measured, prediction.observed, divisor), unit),
        three_digits(prediction.ratio),
        NOTHING if prediction.uncapped is None else "no" if prediction.violated else "yes",
    ]


def _predicted(prediction: ModelPrediction, divisor: float, unit: str) -> str:
    if prediction.value is None:
        return _ABSENT
    value, simulated = number(prediction.value, divisor), prediction.simulated
    if simulated is None or simulated.low is None or simulated.high is None:
        return f"{value} {unit}"
    return f"{value} [{number(simulated.low, divisor)}, {number(simulated.high, divisor)}] {unit}"


def _uncapped(prediction: ModelPrediction) -> str:
    """The bare formula's value where the link caps it."""
    if prediction.uncapped is None:
        return _ABSENT
    return NOTHING if prediction.uncapped == prediction.value else quantity(prediction.uncapped, prediction.unit)
