"""Runs for the page's list, read from the disk."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from crosswind.api.results import REPORT
from crosswind.cli.text import size_text, time_text
from crosswind.errors import StoreError
from crosswind.files.inside import reader_inside
from crosswind.report.html import description_in
from crosswind.store.listing import Listed, ListedRun, is_run, list_runs
from crosswind.text.visible import no_utf8_in, visible


def run_named(name: str, root: Path) -> Path:
    """The run of a name in a list. Raises: StoreError where there is none: a name is never a way to another place."""
    with suppress(OSError):  # It may be longer than any.
        if "/" not in name and not name.startswith(".") and is_run(root / name):
            return root / name
    raise StoreError(f"there is no run {name[:80]!r}", hint="the list of runs has those that there are")


def listed(root: Path) -> list[dict[str, Any]]:
    """Every run, the latest first, with its report's short answer. Raises: StoreError."""
    runs = list_runs(root) if root.exists() else []
    return [{**summary(run), "answer": _answer(run.directory)} for run in runs]


def _answer(directory: Path) -> str:
    with suppress(OSError), reader_inside(directory, REPORT) as page:
        return description_in(page)
    return ""


def summary(run: Listed) -> dict[str, Any]:
    """A run as the list has it."""
    name = run.directory.name
    problem = "its name is not UTF-8: rename it" if no_utf8_in(name) else run.problem
    if problem or not isinstance(run, ListedRun):
        return {"name": visible(name), "problem": problem}
    return {
        "name": name,
        "study": run.study,
        "title": run.title,
        "status": run.status.value,
        "started": time_text(run.started),
        "done": run.done,
        "planned": run.planned,
        "size": size_text(run.size_bytes),
    }
