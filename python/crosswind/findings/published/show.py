"""Published numbers beside ours."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.findings.published.judge import PublishedComparison
from crosswind.metrics import METRICS
from crosswind.report.page import Section, SectionPlace
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Table, names, numbers, sentences
from crosswind.report.text.format import NOTHING, interval_or_observed, levels, scale_of, three_digits, with_unit

_NARROW = (0, 1, 3, 4, 5)
"""The columns of the narrow form."""


def published_table(result: Result) -> Table | None:
    """A row for each published number and each cell that it belongs to."""
    published = result.of(PublishedComparison)
    if not published:
        return None
    by_cell = {cell.cell: cell.levels for cell in result.cells}
    rows = [_row(number, by_cell) for number in published]
    columns = [
        *names("source", "cell", "metric"),
        *numbers("published", "ours, 95 %", "ours / theirs"),
        *sentences("remark"),
    ]
    notes = list(dict.fromkeys(f"{number.source}: {number.note}" for number in published if number.note))
    narrow = [[row[index] for index in _NARROW] for row in rows]
    small = Table("Published numbers", [columns[index] for index in _NARROW], narrow)
    return Table("Published numbers", columns, rows, footnotes=notes, narrow=small)


def _row(published: PublishedComparison, by_cell: dict[int, dict[str, str]]) -> list[str]:
    divisor, unit = scale_of([published.theirs], published.unit)
    spread = "" if published.theirs_ci is None else f" ± {published.theirs_ci / divisor:.4g}"
    ours = NOTHING
    if published.ours is not None:
        ours = with_unit(interval_or_observed(published.ours, published.observed, divisor), unit)
    metric = METRICS.get(published.metric)
    title = metric.title.lower() if metric else published.metric
    return [
        published.source,
        levels(published.levels if published.cell is None else by_cell[published.cell]),
        f"{published.statistic} {title}",
        f"{published.theirs / divisor:.4g}{spread} {unit}",
        ours,
        three_digits(published.ratio),
        published.remark,
    ]


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    del has_charts
    if table := published_table(result):
        yield Section(table.title, tables=[table], place=SectionPlace.AFTER_METRICS)


SHOWING = Showing(_sections)
