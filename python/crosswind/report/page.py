"""What stands on the report's page: its sections in order, each with its charts and tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crosswind.analysis import CellData
from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.report.charts.answers import figures_of_answers
from crosswind.report.charts.distributions import CURVE_POINTS, distribution, drawn_cells
from crosswind.report.charts.figures import figure_charts
from crosswind.report.charts.fits import fit_charts
from crosswind.report.charts.forest import comparison_forests, equivalence_forest
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.models import goodput_by_loss
from crosswind.report.charts.panels import Panels
from crosswind.report.charts.phases import phase_charts
from crosswind.report.charts.profiles import profile_charts
from crosswind.report.charts.shifts import quantile_shifts
from crosswind.report.charts.waterfall import waterfalls
from crosswind.report.tables import (
    AFTER_METRICS,
    BEFORE_METRICS,
    comparison_tables,
    equivalence_tables,
    fit_tables,
    metric_tables,
    model_tables,
    profile_tables,
)
from crosswind.report.tables.quantiles import quantile_table
from crosswind.report.tables.table import Shown, Table
from crosswind.report.text.format import count

_HOW_TO_READ = (
    "Dot and line: mean and its 95 % interval; a dot alone: too few repetitions; half a line: only one limit. Upright "
    "stroke: median. Faint dots: single samples, if few."
)


@dataclass(frozen=True)
class Section:
    """A section of the page: charts of one or several kinds, how to read them, and tables below.

    Attributes:
        tables: one that is Shown.FOLDED opens when it is clicked. folded: whether the whole section does.
    """

    title: str
    charts: Sequence[Panels] = ()
    tables: Sequence[Table] = ()
    caption: str = ""
    folded: bool = False


_Charts = Callable[[RunRecord, Result, Sequence[CellData]], Panels]

_CHARTS_ABOVE: dict[Callable[[Result], list[Table]], Sequence[_Charts]] = {
    profile_tables: [lambda _, result, data: profile_charts(result, data)],
    model_tables: [lambda record, result, data: goodput_by_loss(result, data, record.models)],
    comparison_tables: [
        lambda _, result, __: comparison_forests(result),
        lambda _, result, data: quantile_shifts(result, data),
    ],
}
"""Tables that have charts above them."""


def sections_of(record: RunRecord, result: Result, data: Sequence[CellData]) -> list[Section]:
    """The sections of a page that have something to show, in order."""
    sections = _sections(record, result, data)
    return [section for section in sections if section.tables or any(panels.charts for panels in section.charts)]


def _sections(record: RunRecord, result: Result, data: Sequence[CellData]) -> Iterator[Section]:
    def of_tables(makers: Sequence[Callable[[Result], list[Table]]]) -> Iterator[Section]:
        for make in makers:
            if make is equivalence_tables:
                yield from _equivalences(result)
                continue
            if make is fit_tables:
                yield from _fits(result)
                continue
            tables = make(result)
            makers_above = _CHARTS_ABOVE.get(make, ()) if tables else ()
            charts = [draw(record, result, data) for draw in makers_above]
            yield from _with_folds(tables, charts)

    beside = figures_of_answers(result)
    figures = [chart for chart in figure_charts(result) if chart.caption not in beside]
    yield Section("Figures", [Panels(figures, len(figures))])
    yield from of_tables(BEFORE_METRICS)
    yield Section("Setting connections up, by phase", [phase_charts(result, data)])
    yield Section("The page of median load time", [waterfalls(data)])
    metrics = metric_tables(result)
    for name in sorted(metrics, key=lambda name: metrics[name].shown is Shown.FOLDED):
        yield _of_metric(name, metrics[name], result, data)
    yield from of_tables(AFTER_METRICS)


def _with_folds(tables: Sequence[Table], charts: Sequence[Panels]) -> Iterator[Section]:
    """A section for each table; one that is folded stands in the section of the table before it."""
    groups: list[list[Table]] = []
    for table in tables:
        if table.shown is Shown.FOLDED and groups:
            groups[-1].append(table)
        else:
            groups.append([table])
    yield from (Section(group[0].title, charts, group) for group in groups)


def _equivalences(result: Result) -> Iterator[Section]:
    """A section for each claim of equivalence: its forest plot above its table."""
    for claim, table in zip(result.equivalences, equivalence_tables(result), strict=True):
        forest = equivalence_forest(claim)
        yield Section(table.title, [Panels([forest], 1)] if forest else [], [table])


def _fits(result: Result) -> Iterator[Section]:
    """A section for each fit: its coefficients as charts above their table, and its single curves folded away."""
    tables = fit_tables(result)
    for fit, coefficients, curves in zip(result.fits, tables[::2], tables[1::2], strict=True):
        yield Section(coefficients.title, [fit_charts(fit)], [coefficients, curves])


def _of_metric(name: str, table: Table, result: Result, data: Sequence[CellData]) -> Section:
    """A metric's charts and table; of a metric that is a detail the table alone, folded away."""
    if table.shown is Shown.FOLDED:
        return Section(table.title, tables=[table], folded=True)
    distributions = distribution(name, result, data)
    caption = _HOW_TO_READ
    largest = max(cell.samples[name].values.size for cell in data if name in cell.samples)
    if distributions.charts and largest > CURVE_POINTS:
        drawn = f"{CURVE_POINTS} of up to {count(largest)} samples"
        caption += f" Curves are drawn through {drawn} a cell, half of them in the slowest tenth."
    curves = drawn_cells(name, data)
    tables = [table, quantile_table(name, result.cells, curves)] if curves else [table]
    return Section(table.title, [intervals(name, result, data), distributions], tables, caption)
