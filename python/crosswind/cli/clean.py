"""`crosswind clean`: lists removable runs; removes them by name or kind."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.text import Text

from crosswind.cli.places import RUN_PATH
from crosswind.cli.runs import STYLES
from crosswind.cli.text import size_text, time_text
from crosswind.errors import StoreError, UsageError
from crosswind.store.addresses import address_of, shown
from crosswind.store.listing import (
    DEFAULT_ROOT,
    Listed,
    ListedRun,
    Unreadable,
    attempts_of,
    disk_size,
    examine_directory,
    half_written,
    is_leftover,
    is_run,
    list_runs,
)
from crosswind.store.lock import in_use, used_by_another
from crosswind.store.manifest import Status
from crosswind.store.removal import not_a_run, remove_entries, remove_run
from crosswind.text.console import Console, plain_console
from crosswind.text.terminal_table import TextCell, TextColumn, number_columns, print_table

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_SHOWN = 40


@dataclass(frozen=True)
class _Removal:
    """A run, or some of its entries. `status`: as shown in the table."""

    directory: Path
    status: str
    size_bytes: int
    active: datetime | None = None
    entries: tuple[Path, ...] | None = None

    def is_current(self) -> bool:
        """Whether no session has been at work since this was looked at: the answer may have been long in coming."""
        now = examine_directory(self.directory)
        if self.active == (now.active if isinstance(now, ListedRun) else None):
            return True
        click.echo(f"{shown(self.directory)} has changed meanwhile: left alone", err=True)
        return False

    def carry_out(self) -> None:
        if self.entries is None:
            remove_run(self.directory)
        else:
            remove_entries(self.directory, self.entries)


@click.command()
@click.argument("named", nargs=-1, type=RUN_PATH, metavar="[RUN]...")
@click.option("--unfinished", is_flag=True, help="Remove runs that died, were interrupted or stopped by an error.")
@click.option("--older-than", metavar="AGE", help="Remove runs unchanged for this long: 12h, 30d, 8w.")
@click.option("--leftovers", is_flag=True, help="Remove no run, only leftovers of dead sessions and replaced attempts.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(*, named: tuple[Path, ...], unfinished: bool, older_than: str | None, leftovers: bool, yes: bool) -> int:
    """Remove runs, or leftovers in them.

    A run in crosswind-runs/ is removed if every option applies to it: --unfinished --older-than 30d removes runs that
    are both. Without arguments, the command shows what can be removed, and removes nothing. It never touches a run in
    use, or a directory that is not a run.
    """
    age = None if older_than is None else _age(older_than)
    runs = _named(named) if named else list_runs(DEFAULT_ROOT) if DEFAULT_ROOT.exists() else []
    if not (named or unfinished or age is not None or leftovers):
        _offer(plain_console(), runs)
        return 0
    now = datetime.now(UTC)

    def is_meant(listed: Listed) -> bool:
        if isinstance(listed, ListedRun):
            return (listed.unfinished or not unfinished) and (age is None or now - listed.active > age)
        # Nothing says how old these are. Damaged runs, and those of another version, have to be named.
        return age is None and (listed.leftover or (bool(named) and not leftovers))

    removals = _removals([listed for listed in runs if is_meant(listed) and _is_free(listed)], leftovers=leftovers)
    if not removals:
        click.echo("nothing to remove")
        return 0
    _show(plain_console(), removals)
    if not (yes or _agreed()):
        click.echo("nothing was removed", err=True)
        return 0
    current = [removal for removal in removals if removal.is_current()]
    for removal in current:
        removal.carry_out()
    click.echo(f"removed {_sum(current)}" if current else "nothing was removed", err=True)
    return 0


def _named(named: Sequence[Path]) -> list[Listed]:
    """Runs by path or by name in crosswind-runs/. Raises: StoreError for a directory not to be removed."""
    listed = []
    for path in dict.fromkeys(named):
        is_name = path.name == str(path) and not path.exists() and (DEFAULT_ROOT / path).exists()
        directory = DEFAULT_ROOT / path if is_name else path
        if address_of(directory) is not None:
            listed.append(_on_objects(directory))
            continue
        if not (is_run(directory) or is_leftover(directory)):
            raise not_a_run(directory)
        if in_use(directory):
            raise used_by_another(shown(directory))
        listed.append(examine_directory(directory))
    return listed


def _on_objects(place: Path) -> Listed:
    """A run on an object store. Raises: StoreError where there is none, or it is in use."""
    listed = examine_directory(place)
    if isinstance(listed, Unreadable) and not listed.leftover:
        raise StoreError(f"{shown(place)}: {listed.problem}", hint="`crosswind runs s3://...` lists the runs there")
    if isinstance(listed, ListedRun) and listed.status is Status.RUNNING:
        raise used_by_another(shown(place))
    return listed


def _is_free(listed: Listed) -> bool:
    """Whether it is not in use and no link; reports one in use."""
    if isinstance(listed, ListedRun) and in_use(listed.directory):
        click.echo(f"{shown(listed.directory)} is in use: left alone", err=True)
        return False
    return not listed.directory.is_symlink()


def _removals(all_runs: Sequence[Listed], *, leftovers: bool = False) -> list[_Removal]:
    """Whole directories, or only the leftovers in runs."""
    removals = []
    for listed in all_runs:
        place = listed.directory
        if not isinstance(listed, ListedRun):
            removals.append(_Removal(place, "half removed" if listed.leftover else "unreadable", disk_size(place)))
        elif not leftovers:
            removals.append(_Removal(place, listed.status.value, listed.size_bytes, listed.active))
        elif entries := (*half_written(place), *attempts_of(place)):
            size_bytes = sum(map(disk_size, entries))
            removals.append(_Removal(place, f"{len(entries)} left over", size_bytes, listed.active, entries))
    return removals


def _offer(console: Console, all_runs: Sequence[Listed]) -> None:
    """Shows removable runs, and the options for removing them."""
    runs = [listed for listed in all_runs if isinstance(listed, ListedRun)]
    free = [run for run in runs if not in_use(run.directory) and not run.directory.is_symlink()]
    broken = [other for other in all_runs if isinstance(other, Unreadable) and other.leftover]
    unfinished = _removals([*(run for run in free if run.unfinished), *broken])
    if unfinished:
        _show(console, unfinished)
        console.print()
    offers = [
        ("crosswind clean --unfinished", unfinished, ""),
        ("crosswind clean --leftovers", _removals([*free, *broken], leftovers=True), ""),
        ("finished runs", _removals([run for run in free if run.status == "done"]), ": name them, or --older-than 30d"),
    ]
    for option, removals, how in offers:
        if removals:
            console.print(f"{option:<30}{_sum(removals)}{how}")
    if not any(removals for _, removals, _ in offers):
        console.print(f"there is nothing to remove in {DEFAULT_ROOT}/")
    for run in runs:
        if run not in free:
            console.print(Text(f"{run.directory} is in use", style="cyan"))


def _show(console: Console, removals: Sequence[_Removal]) -> None:
    listed = removals[:_SHOWN]
    rows: list[list[TextCell]] = [
        [
            shown(removal.directory),
            time_text(removal.active) if removal.active else "–",
            Text(removal.status, style=STYLES.get(removal.status, "")),
            size_text(removal.size_bytes),
        ]
        for removal in listed
    ]
    columns = [TextColumn("run"), TextColumn("last active (UTC)", spare=1), TextColumn("what"), *number_columns("size")]
    print_table(console, columns, rows)
    if len(removals) > len(listed):
        console.print(f"and {len(removals) - len(listed)} more")


def _sum(removals: Sequence[_Removal]) -> str:
    """How much some removals are together: "2 runs and 3 entries of runs, 1.23 MB"."""
    runs = sum(removal.entries is None for removal in removals)
    entries = sum(len(removal.entries) for removal in removals if removal.entries is not None)
    parts = [f"{runs} run{'s' * (runs != 1)}"] if runs else []
    parts += [f"{entries} {'entries' if entries != 1 else 'entry'} of runs"] if entries else []
    return f"{' and '.join(parts)}, {size_text(sum(removal.size_bytes for removal in removals))}"


def _agreed() -> bool:
    """Whether whoever sits at the terminal wants it. Raises: UsageError where there is none."""
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm this removal", hint="--yes removes it without asking")
    return click.confirm("remove this?", err=True)


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if match is None:
        raise UsageError(f"--older-than {text!r} is not an age", hint="as 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
