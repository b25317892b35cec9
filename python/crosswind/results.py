"""From a run to what people read: its analysis, and its report."""

from pathlib import Path

from crosswind import analysis, report
from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.store.run import Run

REPORT = "report.html"


def analyse(run: Run) -> Result:
    """The result of a run: estimates with their intervals, comparisons, and what the study asks for.

    Raises: StoreError when a result cannot be read.
    """
    return analysis.analyse(run.record())


def write_html(run: Run, path: Path | str | None = None) -> Path:
    """Writes the HTML report of a run, into the run's directory where no path is given.

    Returns: where it is. Raises: StoreError when a result cannot be read, DiskError when the page cannot be written.
    """
    record, result = analysed(run)
    return write_page(run, record, result, None if path is None else Path(path))


def analysed(run: Run) -> tuple[RunRecord, Result]:
    """The run's record, and its analysis. Raises: StoreError."""
    record = run.record()
    return record, analysis.analyse(record)


def write_page(run: Run, record: RunRecord, result: Result, path: Path | None = None) -> Path:
    """As `write_html`, of a run that is analysed already."""
    page = path or run.directory / REPORT
    report.write_html(record, result, page)
    return page
