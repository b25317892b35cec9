"""How far models were from what was measured, over all cells of a run."""

from crosswind.decisions.interval import ResultModel


class ModelErrors(ResultModel):
    """The errors of one model: |predicted / measured - 1| of the mean, over the cells that it gives a number for.

    Attributes:
        model, title, metric: which. lossy: of the cells with loss, or of those without.
        cells: how many. median, mean, worst: of their errors. worst_cell: where the worst one is.
        bias: median of predicted / measured, less 1. measured: median over cells of the relative standard error of the
        measured mean, which no model can be closer than; null where a cell has one repetition.
        outside: cells that break an assumption of the model. left_out: cells in which some exchanges failed.
    """

    model: str
    title: str
    metric: str
    lossy: bool
    cells: int
    median: float
    mean: float
    worst: float
    worst_cell: int
    bias: float
    measured: float | None
    outside: int
    left_out: int
