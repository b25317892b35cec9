"""Round trips per exchange, a row for each group of cells with different delays only."""

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.report.tables.metrics import interval_notes
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.format import NOTHING, interval, levels, quantity, scale_of, with_unit

_HELP = "A line through the means of the cells: time = besides + round trips x the round trip of the path."
_OFF = "Off the line: how far the mean of a cell is from it at most. A time that bends has no number of round trips."


def round_trip_tables(result: Result) -> list[Table]:
    """The slope and the rest of each line, and how straight it is."""
    rows = []
    for line in result.round_trips:
        divisor, unit = scale_of([line.offset.value], "ns")
        rows.append(
            [
                levels(line.fixed),
                METRICS[line.metric].title,
                interval(line.trips),
                with_unit(interval(line.offset, divisor), unit),
                quantity(line.deviation, "ns") if len(line.cells) > 2 else NOTHING,
            ]
        )
    if not rows:
        return []
    made = [(part, levels(line.fixed)) for line in result.round_trips for part in (line.trips, line.offset)]
    columns = [*names("cells", "time"), *numbers("round trips [95 %]", "besides [95 %]", "off the line")]
    notes = [_OFF, *interval_notes(made)]
    return [Table("Round trips", columns, rows, footnotes=notes, help=_HELP)]
