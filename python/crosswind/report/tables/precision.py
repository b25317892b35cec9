"""Requested and reached precision, and each cell's end."""

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.precision import Ended
from crosswind.report.tables.table import Table, names, numbers, words
from crosswind.report.text.format import EXACT, NOTHING, count, levels, number, scale_of
from crosswind.report.text.precision import ENDED, asked_text, half_width_text

_HOW_TO_READ = (
    "95 % intervals of the mean over repetitions, one number each. They stay valid despite repeated checks (repeated "
    "confidence intervals, Lan and DeMets 1983), and are wider for it; intervals of other tables assume a number of "
    "repetitions fixed in advance."
)


def precision_tables(result: Result) -> list[Table]:
    """A table for each metric and statistic with a requested precision."""
    asked = dict.fromkeys((row.metric, row.statistic) for row in result.precisions)
    return [_table(result, metric, statistic) for metric, statistic in asked]


def _table(result: Result, metric: str, statistic: str) -> Table:
    of_cell = {cell.cell: levels(cell.levels) for cell in result.cells}
    rows = [row for row in result.precisions if (row.metric, row.statistic) == (metric, statistic)]
    divisor, unit = scale_of([row.value for row in rows], METRICS[metric].unit.name)
    shown = []
    for row in rows:
        half = row.half_width
        reached = EXACT if row.ended is Ended.EXACT else NOTHING if half is None else f"± {half_width_text(row)}"
        if half == 0:
            reached = "the same in all"
        ended = "continues" if row.ended is None else row.reason or ENDED[row.ended]
        value = number(row.value, divisor, resolution=half or None)
        asked = f"± {asked_text(row) if row.wanted is not None else row.target}"
        shown.append([of_cell.get(row.cell, str(row.cell)), value, reached, asked, count(row.units), ended])
    columns = [*names("cell"), *numbers(f"{statistic}, {unit}", "reached", "asked", "repetitions"), *words("ended by")]
    title = f"Precision: {METRICS[metric].title.lower()}"
    return Table(title, columns, shown, footnotes=[_HOW_TO_READ])
