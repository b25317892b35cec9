"""Two runs compared: what changed in each common cell, a table for each metric."""

from collections.abc import Sequence

from crosswind.analysis.two_runs.result import CommonCell, MetricChange, RunComparison
from crosswind.catalog.metrics import metric_named
from crosswind.report.tables.table import Shown, Table, names, numbers, sentences
from crosswind.report.text.format import levels, number, p_value, scale_of
from crosswind.report.text.two_runs import change_text, notes_on, open_text, scaled, units_text, verdict_text
from crosswind.report.text.two_runs_why import part_rows


def change_tables(comparison: RunComparison) -> dict[str, Table]:
    """A table for each metric that has a number in any common cell, by the metric's name."""
    metrics = dict.fromkeys(change.metric for cell in comparison.common for change in cell.changes)
    rows = {name: _rows(name, comparison.common) for name in metrics}
    return {name: _table(name, own) for name, own in rows.items() if any(change.a is not None for _, change in own)}


def part_tables(comparison: RunComparison) -> list[Table]:
    """What time was spent on in both runs, of each cell in which exchanges differ."""
    return [
        Table(
            levels(cell.levels) or "What time was spent on",
            [*names("spent on"), *numbers("A", "B", "change [95 %]")],
            [list(row) for row in part_rows(cell.why)],
        )
        for cell in comparison.common
        if cell.why is not None and cell.why.differing
    ]


def condition_table(comparison: RunComparison) -> Table | None:
    """Every condition with its answer in each cell; None without a condition."""
    rows = [
        [
            asked.condition,
            levels(cell.levels),
            f"inconclusive: {open_text(cell, asked)}" if cell.answer == "inconclusive" else cell.answer,
            change_text(cell.change, is_ratio=asked.is_ratio, unit=asked.unit),
            p_value(cell.p_holm),
        ]
        for asked in comparison.conditions
        for cell in asked.cells
    ]
    columns = [*names("condition", "cell"), *sentences("answer"), *numbers("change [95 %]", "p (Holm)")]
    return Table("Conditions", columns, rows, shown=Shown.HTML) if rows else None


def surroundings_table(comparison: RunComparison) -> Table | None:
    """Settings, versions and machines that the two runs do not share; None where there is nothing."""
    rows = [
        [row.what, row.a or "not set", row.b or "not set"] for row in (*comparison.settings, *comparison.surroundings)
    ]
    return Table("Differences between the runs", [*names("what"), *sentences("A", "B")], rows) if rows else None


def _rows(name: str, cells: Sequence[CommonCell]) -> list[tuple[CommonCell, MetricChange]]:
    return [(cell, change) for cell in cells for change in cell.changes if change.metric == name]


def _table(name: str, rows: Sequence[tuple[CommonCell, MetricChange]]) -> Table:
    metric = metric_named(name)
    divisor, unit = scale_of([value for _, change in rows for value in (change.a, change.b)], rows[0][1].unit)
    names_cells = any(cell.levels for cell, _ in rows)
    texts = []
    for cell, change in rows:
        shown, is_ratio = scaled(change)
        ends = [number(value, divisor) for value in (change.a, change.b)]
        text = change_text(shown, is_ratio=is_ratio, unit=change.unit)
        texts.append([*([levels(cell.levels)] if names_cells else []), change.statistic, *ends, text,
                      units_text(change), p_value(change.p_holm), verdict_text(change)])  # fmt: skip
    methods = dict.fromkeys(change.method for _, change in rows if change.method != "none")
    title = f"{metric.title if metric else name}, {unit}"
    columns = [
        *names(*(["cell"] if names_cells else []), "statistic"),
        *numbers("A", "B", "change [95 %]", "n", "p (Holm)"),
        *sentences("verdict"),
    ]
    worse, better = (
        frozenset(row for row, (_, change) in enumerate(rows) if change.verdict == verdict)
        for verdict in ("worse", "better")
    )
    without_p = [[*row[:-2], row[-1]] for row in texts]
    return Table(
        title,
        columns,
        texts,
        worse,
        [*(f"Changes: {method}." for method in methods), *notes_on(rows)],
        Table(title, [*columns[:-2], columns[-1]], without_p, worse, better=better),
        metric.help if metric else "",
        better=better,
    )
