"""From a run to what people read: its analysis, and the report in the run directory."""

from pathlib import Path

from crosswind import report
from crosswind.analysis import analyse
from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.store.run import Run

REPORT = "report.html"


def analysed(run: Run) -> tuple[RunRecord, Result]:
    """The run's record, and its analysis."""
    record = run.record()
    return record, analyse(record)


def write_page(run: Run, record: RunRecord, result: Result) -> Path:
    """Writes the HTML report into the run directory. Returns where it is. Raises: DiskError."""
    page = run.directory / REPORT
    report.write_html(record, result, page)
    return page
