"""`crosswind runs`: lists runs and their progress."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from crosswind.cli.places import RUN_PATH
from crosswind.cli.text import size_text, time_text
from crosswind.store.addresses import address_of, shown
from crosswind.store.listing import DEFAULT_ROOT, Listed, ListedRun, Unreadable, list_runs
from crosswind.text.console import Console, plain_console
from crosswind.text.terminal_table import TextColumn, print_table
from crosswind.text.visible import one_line

SCHEMA = "crosswind.runs/1"

STYLES = {"done": "green", "running": "cyan", "interrupted": "yellow", "stopped": "yellow", "died": "red"}
"""Each status's colour."""


@click.command()
@click.argument("root", required=False, type=RUN_PATH, metavar="[ROOT]")
@click.option(
    "--details",
    is_flag=True,
    help="Read every result: clocks, invalid and failed cells, lost exchanges by cause, exact sizes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.runs/1.")
def command(root: Path | None, details: bool, as_json: bool) -> None:
    """List the runs in ROOT (crosswind-runs/), a directory or s3://..., the latest first.

    A run has died when it is marked as running but no process holds its lock. `crosswind run --resume RUN` continues
    it.
    """
    place = root or DEFAULT_ROOT
    runs = list_runs(place, details=details) if root or place.exists() else []
    if as_json:
        listing = {"schema": SCHEMA, "root": shown(place), "runs": [_as_json(listed) for listed in runs]}
        click.echo(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    print_runs(plain_console(), place, runs)


def print_runs(console: Console, root: Path, all_runs: list[Listed]) -> None:
    """The table, followed by lost exchanges and unreadable runs."""
    runs = [listed for listed in all_runs if isinstance(listed, ListedRun)]
    others = [listed for listed in all_runs if isinstance(listed, Unreadable)]
    if not all_runs:
        console.print(f"there are no runs in {shown(root)}/")
        return
    if runs:
        columns: dict[TextColumn, Sequence[str | Text]] = {
            TextColumn("run"): [_name(run.directory, root) for run in runs],
            TextColumn("study", spare=1): [run.study for run in runs],
            TextColumn("started (UTC)", spare=2): [time_text(run.started) for run in runs],
            TextColumn("status"): [Text(run.status.value, style=STYLES[run.status]) for run in runs],
            TextColumn("repetitions", right=True): [f"{run.done}/{run.planned}" for run in runs],
        }
        counts = [run.details for run in runs if run.details]
        if len(counts) == len(runs):
            columns[TextColumn("clock")] = [", ".join(count.clocks) for count in counts]
            columns[TextColumn("invalid", right=True)] = [str(count.invalid) for count in counts]
            columns[TextColumn("failed", right=True)] = [str(count.failed) for count in counts]
        columns[TextColumn("size", right=True)] = [size_text(run.size_bytes) for run in runs]
        print_table(console, list(columns), list(zip(*columns.values(), strict=True)))
    for run in runs:
        for outcome in run.details.outcomes if run.details else ():
            console.print(Text(f"{_name(run.directory, root)}: {outcome.text()}"))
        if run.problem:
            console.print(Text(f"{_name(run.directory, root)}: {run.problem}", style="yellow"))
    for other in others:
        console.print(Text(f"{_name(other.directory, root)}: {other.problem}", style="yellow"))


def _name(directory: Path, root: Path) -> str:
    name, above = one_line(shown(directory)), f"{one_line(shown(root))}/"
    return name.removeprefix(above) if directory.parent == root or address_of(root) is not None else name


def _as_json(listed: Listed) -> dict[str, Any]:
    directory = {"directory": shown(listed.directory)}
    if isinstance(listed, Unreadable):
        return {**directory, "status": "removed" if listed.leftover else None, "problem": listed.problem}
    details = dict.fromkeys(("valid", "invalid", "failed", "clocks", "outcomes", "problem"))
    return {
        **directory,
        "study": listed.study,
        "title": listed.title,
        "status": listed.status,
        "started": listed.started.isoformat(timespec="milliseconds"),
        "active": listed.active.isoformat(timespec="milliseconds"),
        "done": listed.done,
        "planned": listed.planned,
        "attempts": listed.attempts,
        "parts": listed.parts,
        **(listed.details.as_json() if listed.details else details),
        "size_bytes": listed.size_bytes,
        "size_is_exact": listed.exact,
    }
