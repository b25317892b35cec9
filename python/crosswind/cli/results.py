"""From a store to what people read: its analysis, and the report in the run directory."""

from pathlib import Path

from crosswind import report
from crosswind.analysis import analyse
from crosswind.analysis.result import Result
from crosswind.record import RunRecord
from crosswind.store.directory import Store

REPORT = "report.html"


def analysed(store: Store) -> tuple[RunRecord, Result]:
    """The run, and what it says."""
    record = store.record()
    return record, analyse(record)


def write_page(store: Store, record: RunRecord, result: Result) -> Path:
    """Writes the HTML report into the run directory. Returns where it is. Raises: DiskError."""
    page = store.directory / REPORT
    report.write_html(record, result, page)
    return page
