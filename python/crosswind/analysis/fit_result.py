"""The result of `crosswind fit`."""

from crosswind.decisions.model import ResultModel
from crosswind.models.fitting import LeftOut


class FittedCoefficient(ResultModel):
    """A coefficient with its 95 % interval.

    Attributes: value: None if undetermined by these cells, as the exponent of a constant round trip. low, high: None
        there too, and without an interval's support. reason: for a missing number. at_bound: whether the search ended
        at one of its bounds.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    at_bound: bool


class ModelFit(ResultModel):
    """One model fitted to one congestion control's cells. Errors are |predicted / measured - 1|; `held_out`: by a fit
    without the cell's tenth.

    Attributes: cells: fitted. worst_cell: with the largest held-out error. levels: errors by factor and level.
    """

    congestion_control: str
    cells: int
    model: str
    title: str
    formula: str
    coefficients: list[FittedCoefficient]
    fitted_median: float
    held_out_median: float
    held_out_mean: float
    worst: float
    worst_cell: int
    levels: list[LeftOut]


class FitResult(ResultModel):
    """A run's fits: each congestion control by itself, the best held-out error first.

    Attributes: cells: in all fits together. left_out: cells without a fit, by reason.
    """

    schema_: str = "crosswind.fit/1"
    study: str
    simulated: bool
    cells: int
    measured_error: float
    method: str
    left_out: dict[str, int]
    cell_levels: dict[int, dict[str, str]]
    fits: list[ModelFit]
