"""From a store to what people read: analysis, terminal, HTML, exports."""

from pathlib import Path

from rich.console import Console

from crosswind.analysis import analyse
from crosswind.record import RunRecord
from crosswind.report import html, terminal
from crosswind.result import Result
from crosswind.store import Store, disk_errors

REPORT = "report.html"


def analysed(store: Store) -> tuple[RunRecord, Result]:
    """The run and what it says."""
    record = store.record()
    return record, analyse(record)


def write_html(store: Store, record: RunRecord, result: Result, path: Path | None = None) -> Path:
    """Writes the report, into the run directory unless `path` says otherwise. Returns where it is."""
    page = path or store.directory / REPORT
    text = html.render(record, result)
    with disk_errors(page):
        page.write_text(text, encoding="utf-8")
    return page


def print_terminal(result: Result) -> None:
    """Prints the tables to standard output."""
    Console(highlight=False).print(terminal.render(result))
