"""`crosswind runs`: what runs there are, and how far each got."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosswind.cli.output import plain_console
from crosswind.store.directory import DEFAULT_ROOT
from crosswind.store.listing import Run, Unreadable, list_runs

SCHEMA = "crosswind.runs/1"

STYLES = {"done": "green", "running": "cyan", "interrupted": "yellow", "stopped": "yellow", "died": "red"}
"""Colour of each status."""


@dataclass(frozen=True)
class Column:
    """A column of a table that may have too little room. `spare`: in which order it is left out then, 0: never."""

    name: str
    cells: list[str]
    justify: Literal["left", "right"] = "left"
    spare: int = 0

    @property
    def width(self) -> int:
        """Characters that it needs."""
        return max(len(text) for text in (self.name, *self.cells))


@click.command()
@click.argument("root", required=False, type=click.Path(path_type=Path), metavar="[ROOT]")
@click.option("--details", is_flag=True, help="Read every result: valid, invalid and failed cells, and exact sizes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.runs/1.")
def command(root: Path | None, details: bool, as_json: bool) -> None:
    """List the runs in ROOT, else in crosswind-runs/: latest first.

    A run that died says that it is running, but nobody holds its lock; `crosswind run --resume RUN` goes on with it.
    """
    place = root or DEFAULT_ROOT
    found = list_runs(place, details=details) if root or place.exists() else []
    if as_json:
        listing = {"schema": SCHEMA, "root": str(place), "runs": [_as_dict(one) for one in found]}
        click.echo(json.dumps(listing, indent=2, ensure_ascii=False))
        return
    print_runs(plain_console(), place, found)


def print_runs(console: Console, root: Path, found: list[Run | Unreadable]) -> None:
    """The table; what cannot be read stands below it with its reason."""
    runs = [one for one in found if isinstance(one, Run)]
    others = [one for one in found if isinstance(one, Unreadable)]
    if not found:
        console.print(f"there are no runs in {root}/")
        return
    if runs:
        columns = [
            Column("run", [_name(run.directory, root) for run in runs]),
            Column("study", [run.study for run in runs], spare=1),
            Column("started (UTC)", [time_text(run.started) for run in runs], spare=2),
            Column("status", [run.status for run in runs]),
            Column("runs", [f"{run.done}/{run.planned}" for run in runs], "right"),
        ]
        if all(run.details for run in runs):
            counts = [run.details for run in runs if run.details]
            columns.append(Column("invalid", [str(one.invalid) for one in counts], "right"))
            columns.append(Column("failed", [str(one.failed) for one in counts], "right"))
        columns.append(Column("size", [size_text(run.size_bytes) for run in runs], "right"))
        print_columns(console, columns, [{"status": STYLES.get(run.status, "")} for run in runs])
    for run in runs:
        if run.problem:
            console.print(Text(f"{_name(run.directory, root)}: {run.problem}", style="yellow"))
    for other in others:
        console.print(Text(f"{_name(other.directory, root)}: {other.problem}", style="yellow"))


def print_columns(console: Console, columns: list[Column], styles: list[dict[str, str]]) -> None:
    """A grid of as many columns as fit; `styles` has one mapping a row, column name to style."""
    kept = list(columns)
    while _width(kept) > console.width and any(column.spare for column in kept):
        kept.remove(min((column for column in kept if column.spare), key=lambda column: column.spare))
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in kept:
        table.add_column(column.name, justify=column.justify, overflow="fold")
    for number, style in enumerate(styles):
        table.add_row(*(Text(column.cells[number], style=style.get(column.name, "")) for column in kept))
    console.print(table)


def size_text(size_bytes: float) -> str:
    """Bytes for people, three digits: "1.23 MB"."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= 0.9995 * size:
            return f"{size_bytes / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{size_bytes:.0f} B"


def time_text(time: datetime) -> str:
    """A time to the minute."""
    return time.strftime("%Y-%m-%d %H:%M")


def _width(columns: list[Column]) -> int:
    return sum(column.width + 2 for column in columns) - 2


def _name(directory: Path, root: Path) -> str:
    return directory.name if directory.parent == root else str(directory)


def _as_dict(one: Run | Unreadable) -> dict[str, Any]:
    if isinstance(one, Unreadable):
        return {"directory": str(one.directory), "status": "removed" if one.leftover else None, "problem": one.problem}
    return {
        "directory": str(one.directory),
        "study": one.study,
        "title": one.title,
        "status": one.status,
        "started": one.started.isoformat(timespec="milliseconds"),
        "active": one.active.isoformat(timespec="milliseconds"),
        "done": one.done,
        "planned": one.planned,
        "attempts": one.attempts,
        "parts": one.parts,
        "valid": one.details.valid if one.details else None,
        "invalid": one.details.invalid if one.details else None,
        "failed": one.details.failed if one.details else None,
        "size_bytes": one.size_bytes,
        "size_is_exact": one.exact,
        "problem": one.problem,
    }
