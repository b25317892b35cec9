"""A large run's page: its answers, maps of its cells, the worst and best ones. A second page has all cells."""

from dataclasses import replace
from pathlib import Path

from crosswind.analysis.overview import Overview
from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.cell.record import RunRecord
from crosswind.report.cells_page import render_cells
from crosswind.report.files import is_stream, write_text
from crosswind.report.page import Page, Section, SectionPlace
from crosswind.report.run_page import finding_sections, page_with
from crosswind.report.tables.cut import cut_to
from crosswind.report.tables.summary import MOST_ROWS, summary_tables
from crosswind.report.tables.table import Shown
from crosswind.report.text.exploration import main_metrics, statistic_of

MOST_MAPS = 4
_CAPTION = "Colour: the {statistic} of each cell. Cross: a cell that is not valid."
_LEADS = " A cell leads to its repetitions, in the page {beside}."


def write_overview(record: RunRecord, result: Result, overview: Overview, path: Path) -> None:
    """Write the page as HTML, and beside it one of the cells; into a stream the first alone. Raises: DiskError."""
    from crosswind.report import html

    beside = "" if is_stream(path) else f"{path.stem}-cells.html"
    if beside:
        write_text(path.with_name(beside), render_cells(record, result, overview, path.name))
    write_text(path, html.render(overview_page_of(result, beside)))


def overview_page_of(result: Result, beside: str = "") -> Page:
    """A large run's page. Args: beside: name of its cells' page."""
    return page_with(result, _sections(result, beside))


def _sections(result: Result, beside: str) -> list[Section]:
    from crosswind.report.charts.heat_map import heat_map, map_of_losses

    of_findings = finding_sections(result, has_charts=True)
    leads = _LEADS.format(beside=beside) if beside else ""
    summary = cut_to(summary_tables(result), MOST_ROWS)
    tables = {table.title.partition(", ")[0]: replace(table, shown=Shown.EVERYWHERE) for table in summary}
    sections = [
        section for place in SectionPlace for section in of_findings[place] if place is not SectionPlace.AFTER_METRICS
    ]
    for name in main_metrics(result)[:MOST_MAPS]:
        title = METRICS[name].title
        sections.append(
            Section(
                title,
                charts=[heat_map(name, [cell for cell in result.cells if name in cell.estimates], beside)],
                tables=[tables.pop(title)] if title in tables else [],
                caption=_CAPTION.format(statistic=statistic_of(METRICS[name])) + leads,
            )
        )
    if any(cell.lost for cell in result.cells):
        caption = _CAPTION.format(statistic="share") + leads
        sections.append(Section("Exchanges lost", charts=[map_of_losses(result.cells, beside)], caption=caption))
    sections += of_findings[SectionPlace.AFTER_METRICS]
    return [section for section in sections if not section.is_empty]
