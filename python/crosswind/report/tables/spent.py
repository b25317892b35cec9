"""The exchanges' time breakdown, a row for each cell."""

from crosswind.analysis.result import CellResult, Result
from crosswind.catalog import SpentGroup
from crosswind.catalog.spent import GROUPS, WHOLE
from crosswind.report.tables.metrics import interval_notes
from crosswind.report.tables.table import Shown, Table, cell_table, numbers
from crosswind.report.text.format import finest_of, interval, levels, number, scale_of_metric

SMALL = 0.001
"""Share of a cell's whole time; smaller groups in all cells have no column."""


def spent_tables(result: Result) -> list[Table]:
    """Each group's mean with its interval; narrower, without."""
    cells = [cell for cell in result.cells if WHOLE in cell.estimates]
    if not cells:
        return []
    divisor, unit = scale_of_metric(WHOLE, cells)
    shown = [group for group in GROUPS if any(share_of(cell, group) >= SMALL for cell in cells)]
    names = [WHOLE, *(group.metric for group in shown)]
    headings = ["whole", *(group.title for group in shown)]
    means = [[cell.estimates[name].mean for name in names] for cell in cells]
    finest = finest_of(unit)
    rows = [[interval(mean, divisor, finest=finest) for mean in of_cell] for of_cell in means]
    short = [[number(mean.value, divisor, finest=finest) for mean in of_cell] for of_cell in means]
    made = [(mean, levels(cell.levels)) for cell, of_cell in zip(cells, means, strict=True) for mean in of_cell]
    title, form = f"What time was spent on, {unit}", (numbers(*(f"{heading} [95 %]" for heading in headings)), rows)
    narrow = [(numbers(*headings), short)]
    said = "Means over exchanges, which sum to the whole time. What is under a thousandth of it everywhere is left out."
    notes = interval_notes(made, "mean")
    return [cell_table(title, cells, form, notes, narrow=narrow, help=said, shown=Shown.FOLDED)]


def share_of(cell: CellResult, group: SpentGroup) -> float:
    """A group's share of a cell's whole time."""
    own, whole = (cell.estimates[name].mean.value if name in cell.estimates else None for name in (group.metric, WHOLE))
    return (own or 0.0) / whole if whole else 0.0
