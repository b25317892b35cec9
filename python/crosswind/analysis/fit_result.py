"""What `crosswind fit` prints, as a result."""

from crosswind.decisions.model import ResultModel
from crosswind.models.fitting import LeftOut


class FittedCoefficient(ResultModel):
    """A coefficient with its 95 % interval.

    Attributes: value: None where these cells do not tell it, as the exponent of the round trip where all of them have
        the same. low, high: None there too, and where the repetitions do not support an interval. reason: why one is
        missing. at_bound: whether the search ended at one of its bounds, beyond which it did not look.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    at_bound: bool


class ModelFit(ResultModel):
    """One model fitted to the cells of one congestion control. Errors are |predicted / measured - 1|; `held_out`: by a
    fit without the cell's tenth of all.

    Attributes: cells: how many it was fitted to. worst_cell: where the largest held-out error is. levels: errors by
        factor and level.
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
    """The fits to a run: of each congestion control by itself, the best held-out error first.

    Attributes: cells: in all fits together. left_out: cells that were not fitted to, and why.
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
