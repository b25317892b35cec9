"""A metric's quantiles in each cell: its distribution functions in numbers."""

from collections.abc import Sequence

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult
from crosswind.report.tables.metrics import method_name, why_no_interval
from crosswind.report.tables.table import Shown, Table, cell_table, numbers
from crosswind.report.text.format import count, finest_of, interval, levels, scale_of_metric
from crosswind.stats.design import quantile_name
from crosswind.stats.estimate import Interval, exactly
from crosswind.stats.quantile import quantile_interval, quantile_of

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_LEVEL = 0.95


def quantile_table(name: str, cells: Sequence[CellResult], data: Sequence[CellData]) -> Table:
    """A row for each cell, with its quantiles and their supported intervals.

    Args: cells: the result's. data: the cells among them with distribution functions.
    """
    of_cell = {cell.cell: cell for cell in cells}
    shown = [of_cell[cell.cell] for cell in data]
    of_cells = [_quantiles(cell, name) for cell in data]
    divisor, unit = scale_of_metric(name, cells)
    rows = [
        [count(of[0].n), *(interval(quantile, divisor, finest=finest_of(unit)) for quantile in of)] for of in of_cells
    ]
    headings = [quantile_name(q).removeprefix("the ") for q in QUANTILES]
    title, form = f"Quantiles of the curves, {unit} [95 %]", (numbers("n", *headings), rows)
    return cell_table(title, shown, form, _footnotes(shown, of_cells), shown=Shown.FOLDED)


def _quantiles(cell: CellData, name: str) -> list[Interval]:
    units = cell.samples[name]
    made = []
    for q in QUANTILES:
        value = quantile_of(units, q)
        if cell.is_exact and value is not None:
            made.append(exactly(value, n=units.n, level=_LEVEL))
        else:
            made.append(quantile_interval(units, q, level=_LEVEL))
    return made


def _footnotes(cells: Sequence[CellResult], quantiles: Sequence[Sequence[Interval]]) -> list[str]:
    """The methods in use, each once, and reasons for absent intervals, each once with its cells."""
    methods = dict.fromkeys(
        method_name(quantile.method) for of in quantiles for quantile in of if quantile.is_whole or quantile.is_exact
    )
    short = [
        (quantile.reason, levels(cell.levels))
        for cell, of in zip(cells, quantiles, strict=True)
        for quantile in of
        if quantile.reason
    ]
    return [*(f"Intervals: {method}." for method in methods), *why_no_interval(short)]
