"""How many round trips exchanges take, a row for each group of cells that differ in delay alone."""

from crosswind.analysis.result import Result
from crosswind.metrics import METRICS
from crosswind.report.tables.metrics import method_name, why_no_interval
from crosswind.report.tables.table import Table, grouped, names, numbers
from crosswind.report.text.format import NOTHING, interval, levels, quantity, scale_of, with_unit
from crosswind.report.text.sentences import sentence

_SAID = "Time = what it takes besides + round trips x the round trip of the path: a line through the means of cells."
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
    made = [(line, part) for line in result.round_trips for part in (line.trips, line.offset)]
    used = grouped((method_name(part.method), "lines") for _, part in made if part.is_whole or part.is_exact)
    reasons = [(part.reason, levels(line.fixed)) for line, part in made if part.reason]
    columns = [*names("cells", "time"), *numbers("round trips [95 %]", "besides [95 %]", "off the line")]
    notes = [_OFF, *(sentence(method) for method in used), *why_no_interval(reasons)]
    return [Table("Round trips", columns, rows, footnotes=notes, help=_SAID)]
