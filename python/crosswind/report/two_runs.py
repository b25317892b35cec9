"""The page of two runs compared: verdicts, what the runs do not share, and for each metric its changes, drawn and in
numbers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crosswind.analysis.two_runs.result import MetricChange, RunComparison
from crosswind.catalog.metrics import metric_named
from crosswind.report.page import VERDICT_TONES, Chart, Page, Panels, Section, Sentence, Tone
from crosswind.report.tables.table import Shown
from crosswind.report.tables.two_runs import change_tables, condition_table, part_tables, surroundings_table
from crosswind.report.text.format import count_of, levels, listed
from crosswind.report.text.two_runs import (
    answer_text,
    change_text,
    common_text,
    condition_text,
    is_negligible,
    overall_of_runs,
    overview_sentences,
    side_text,
)
from crosswind.report.text.two_runs_why import why_sentences

if TYPE_CHECKING:
    from crosswind.report.charts.forest import ForestRow

_MOST_CELLS = 12
"""Cells of a condition that have a sentence each."""
_HOW_TO_READ = (
    "Mark and line: B divided by A and its 95 % interval, if any; dashed: no change. A change is “worse” or “better” "
    "if p is below 5 % after Holm's correction over all cells of the metric and statistic."
)


def page_of(comparison: RunComparison, *, has_charts: bool = False) -> Page:
    """The page of a comparison."""
    return Page(
        title=f"{comparison.b.title}: what changed",
        about="Crosswind comparison of two runs",
        verdict=_verdict(comparison),
        lines=[*map(Sentence, _lines(comparison))],
        doubts=list(_doubts(comparison)),
        sections=list(_sections(comparison, has_charts=has_charts)),
    )


def _verdict(comparison: RunComparison) -> Sentence:
    """Whether to trust the comparison, and what came of its conditions."""
    invalid = [cell for cell in comparison.common if cell.invalid_a or cell.invalid_b]
    if invalid:
        are = "is" if len(invalid) == 1 else "are"
        return Sentence(f"{len(invalid)} of {count_of(len(comparison.common), 'common cell')} {are} invalid.", Tone.BAD)
    failed = [asked.condition for asked in comparison.conditions if asked.answer == "fail"]
    if failed:
        return Sentence(f"Failed: {'; '.join(failed)}.", Tone.BAD)
    inconclusive = [asked.condition for asked in comparison.conditions if asked.answer == "inconclusive"]
    if inconclusive:
        return Sentence(f"Inconclusive: {'; '.join(inconclusive)}.", Tone.DOUBTFUL)
    if comparison.conditions:
        return Sentence(f"Passed: {'; '.join(condition_text(asked) for asked in comparison.conditions)}.", Tone.GOOD)
    changed = {change.verdict for cell in comparison.common for change in cell.changes if not is_negligible(change)}
    worse, better = ("worse" in changed), ("better" in changed)
    said = " and ".join(word for word, holds in (("worse", worse), ("better", better)) if holds)
    return Sentence(f"Something is {said}." if said else "No change is shown.", Tone.DOUBTFUL if worse else Tone.GOOD)


def _lines(comparison: RunComparison) -> Iterator[str]:
    yield from (side_text(name, side) for name, side in (("A", comparison.a), ("B", comparison.b)))
    yield f"{common_text(comparison)}."
    yield from overview_sentences(comparison)
    yield from overall_of_runs(comparison)
    for name, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        if cells:
            yield f"Only in {name}: {listed([levels(cell) for cell in cells])}."


def _doubts(comparison: RunComparison) -> Iterator[Sentence]:
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        yield from (Sentence(f"damaged: {name}: {text}", Tone.DOUBTFUL) for text in side.damaged)
    for cell in comparison.common:
        for name, reason in (("A", cell.invalid_a), ("B", cell.invalid_b)):
            if reason:
                yield Sentence(f"not valid in {name}: {levels(cell.levels)}: {reason}", Tone.BAD)


def _sections(comparison: RunComparison, *, has_charts: bool) -> Iterator[Section]:
    for table in filter(None, (condition_table(comparison),)):
        yield Section(table.title, sentences=list(_condition_sentences(comparison)), tables=[table])
    for table in filter(None, (surroundings_table(comparison),)):
        yield Section(table.title, tables=[table], folded=True)
    reasons = [Sentence(text) for text in why_sentences(comparison)]
    if reasons:
        yield Section("Why", sentences=reasons, tables=part_tables(comparison))
    for name, table in change_tables(comparison).items():
        chart = _forest(comparison, name) if has_charts else None
        charts = [Panels([chart], 1)] if chart is not None else []
        yield Section(table.title, charts=charts, tables=[table], caption=_HOW_TO_READ if charts else "")


def _condition_sentences(comparison: RunComparison) -> Iterator[Sentence]:
    """Each condition with the cells that decide it, for the terminal. HTML has a table of them."""
    for asked in comparison.conditions:
        said = f"{asked.answer.capitalize()}: {condition_text(asked)}"
        yield Sentence(said, VERDICT_TONES[asked.answer], shown=Shown.TERMINAL)
        cells = [cell for cell in asked.cells if cell.answer == asked.answer]
        for cell in cells[:_MOST_CELLS]:
            yield Sentence(f"{levels(cell.levels)}: {answer_text(cell, asked)}", shown=Shown.TERMINAL)
        if len(cells) > _MOST_CELLS:
            yield Sentence(f"and {len(cells) - _MOST_CELLS} more cells, which --json lists", shown=Shown.TERMINAL)


def _forest(comparison: RunComparison, name: str) -> Chart | None:
    """The ratios of a metric in the common cells; None where there is none, as of a share."""
    # Altair takes a while to import.
    from crosswind.report.charts.forest import cut_note, ratio_forest
    from crosswind.report.charts.panels import MAX_BARS

    metric = metric_named(name)
    rows = [
        _row(levels(cell.levels), change)
        for cell in comparison.common[:MAX_BARS]
        for change in cell.changes
        if change.metric == name and change.ratio.value
    ]
    if metric is None or not rows:
        return None
    left = len(comparison.common) - MAX_BARS
    more = f"{left} more cells are in the table." if left > 0 else ""
    notes = " ".join(filter(None, (more, cut_note(rows))))
    return Chart("", ratio_forest(rows, metric), (notes,) if notes else ())


def _row(cell: str, change: MetricChange) -> "ForestRow":
    from crosswind.report.charts.forest import ForestRow

    ratio = change.ratio
    value = ratio.value or 1.0
    ends = (value if ratio.low is None else ratio.low), (value if ratio.high is None else ratio.high)
    text = change_text(ratio, is_ratio=True, unit=change.unit)
    return ForestRow(cell, value, *ends, text, change.n_a + change.n_b, change.verdict, change.statistic)
