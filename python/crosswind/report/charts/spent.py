"""What the time of exchanges was spent on, a stacked bar for each cell."""

from collections.abc import Sequence

from crosswind.analysis import CellData
from crosswind.analysis.result import Result
from crosswind.report.charts.stacked import BarKind, Stratum, stacked
from crosswind.report.charts.style import GREY, PALETTE
from crosswind.report.page import Panels
from crosswind.spent import GROUPS

COLOURS = {group.title: colour for group, colour in zip(GROUPS[:-1], PALETTE, strict=False)} | {GROUPS[-1].title: GREY}
_NOTE = "Means of n = {n} exchanges a cell; the table has their intervals."


def spent_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar for each cell whose packets tell, of the means of its groups; those that would not be seen are left out."""
    return stacked(result.cells, {cell.cell: _strata(cell) for cell in data}, BarKind(COLOURS, _NOTE))


def _strata(cell: CellData) -> list[Stratum]:
    known = [(group, cell.samples[group.metric].values) for group in GROUPS if group.metric in cell.samples]
    return [
        Stratum(group.title, group.metric, float(values.mean()), int(values.size))
        for group, values in known
        if values.any()
    ]
