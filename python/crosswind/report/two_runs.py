"""The page of two runs compared: verdicts, what the runs do not share, and for each metric its changes, drawn and in
numbers."""

from collections.abc import Iterator
from pathlib import Path

from crosswind.analysis.two_runs.result import MetricChange, RunComparison
from crosswind.metrics import metric_named
from crosswind.report.charts.forest import ForestRow, cut_note, ratio_forest
from crosswind.report.charts.panels import MAX_BARS, Chart, Panels
from crosswind.report.files import write_text
from crosswind.report.html import document
from crosswind.report.markup import Markup
from crosswind.report.page import Section
from crosswind.report.tables.two_runs import change_tables, condition_table, surroundings_table
from crosswind.report.text.format import count_of, levels, listed
from crosswind.report.text.headline import Trust
from crosswind.report.text.two_runs import change_text, condition_text, matched_text, side_text

_HOW_TO_READ = (
    "Mark and line: B divided by A and its 95 % interval, if any; dashed: no change. A change is “worse” or “better” "
    "if p is below 5 % after Holm's correction over all cells of the metric and statistic."
)


def write_html(found: RunComparison, path: Path) -> None:
    """Write the page whole or not at all. Raises: DiskError."""
    write_text(path, render(found))


def render(found: RunComparison) -> str:
    """The comparison as one HTML document, which opens offline."""
    page = Markup()
    title = f"{found.b.title}: what changed"
    head = page.header(title, "Crosswind comparison of two runs", _verdict(found), list(_lines(found)))
    return document(title, [head, *(page.section(section) for section in _sections(found))], page)


def _verdict(found: RunComparison) -> tuple[Trust, str]:
    """Whether to trust the comparison, and what came of its conditions."""
    invalid = [cell for cell in found.common if cell.invalid_a or cell.invalid_b]
    if invalid:
        are = "is" if len(invalid) == 1 else "are"
        return Trust.BAD, f"{len(invalid)} of {count_of(len(found.common), 'common cell')} {are} invalid."
    failed = [asked.condition for asked in found.conditions if asked.answer == "fail"]
    if failed:
        return Trust.BAD, f"Failed: {'; '.join(failed)}."
    inconclusive = [asked.condition for asked in found.conditions if asked.answer == "inconclusive"]
    if inconclusive:
        return Trust.DOUBTFUL, f"Inconclusive: {'; '.join(inconclusive)}."
    if found.conditions:
        return Trust.GOOD, f"Passed: {'; '.join(condition_text(asked) for asked in found.conditions)}."
    changed = {change.verdict for cell in found.common for change in cell.changes}
    worse, better = ("worse" in changed), ("better" in changed)
    said = " and ".join(word for word, holds in (("worse", worse), ("better", better)) if holds)
    return (Trust.DOUBTFUL if worse else Trust.GOOD), f"Something is {said}." if said else "No change is shown."


def _lines(found: RunComparison) -> Iterator[str]:
    yield from (side_text(name, side) for name, side in (("A", found.a), ("B", found.b)))
    yield f"{count_of(len(found.common), 'common cell')}, matched by {matched_text(found.common)}."
    for name, cells in (("A", found.only_a), ("B", found.only_b)):
        if cells:
            yield f"Only in {name}: {listed([levels(cell) for cell in cells])}."
    for cell in found.common:
        for name, reason in (("A", cell.invalid_a), ("B", cell.invalid_b)):
            if reason:
                yield f"Not valid in {name}: {levels(cell.levels)}: {reason}."


def _sections(found: RunComparison) -> Iterator[Section]:
    for table in filter(None, (condition_table(found),)):
        yield Section(table.title, tables=[table])
    for name, table in change_tables(found).items():
        chart = _forest(found, name)
        charts = [Panels([chart], 1)] if chart is not None else []
        yield Section(table.title, charts, [table], _HOW_TO_READ if charts else "")
    for table in filter(None, (surroundings_table(found),)):
        yield Section(table.title, tables=[table])


def _forest(found: RunComparison, name: str) -> Chart | None:
    """The ratios of a metric in the common cells; None where there is none, as of a share."""
    metric = metric_named(name)
    rows = [
        _row(levels(cell.levels), change)
        for cell in found.common[:MAX_BARS]
        for change in cell.changes
        if change.metric == name and change.ratio.value
    ]
    if metric is None or not rows:
        return None
    left = len(found.common) - MAX_BARS
    more = f"{left} more cells are in the table." if left > 0 else ""
    notes = " ".join(filter(None, (more, cut_note(rows))))
    return Chart("", ratio_forest(rows, metric), (notes,) if notes else ())


def _row(cell: str, change: MetricChange) -> ForestRow:
    ratio = change.ratio
    value = ratio.value or 1.0
    ends = (value if ratio.low is None else ratio.low), (value if ratio.high is None else ratio.high)
    text = change_text(ratio, is_ratio=True, unit=change.unit)
    return ForestRow(cell, value, *ends, text, change.n_a + change.n_b, change.verdict, change.statistic)
