"""`crosswind clean`: what could be removed; and its removal, asked for by name or by kind."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from crosswind.cli.output import plain_console
from crosswind.cli.runs import STYLES, Column, print_columns, size_text, time_text
from crosswind.errors import UsageError
from crosswind.store import listing as runs
from crosswind.store.directory import DEFAULT_ROOT
from crosswind.store.listing import Run, Unreadable

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_SHOWN = 40


@dataclass(frozen=True)
class _Removal:
    """A run, or entries of it. `status` is what the table says of it."""

    directory: Path
    status: str
    size_bytes: int
    active: datetime | None = None
    entries: tuple[Path, ...] | None = None

    def is_current(self) -> bool:
        """Whether no session has been at work since this was looked at: the answer may have been long in coming."""
        now = runs.examine(self.directory)
        if self.active == (now.active if isinstance(now, Run) else None):
            return True
        click.echo(f"{self.directory} has changed meanwhile: left alone", err=True)
        return False

    def do(self) -> None:
        if self.entries is None:
            runs.remove_run(self.directory)
        else:
            runs.remove_entries(self.directory, self.entries)


@click.command()
@click.argument("named", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN]...")
@click.option("--unfinished", is_flag=True, help="Runs that died, were interrupted, or stopped by an error.")
@click.option("--older-than", metavar="AGE", help="Runs without a sign of life for that long: 12h, 30d, 8w.")
@click.option("--parts", is_flag=True, help="Only what dead sessions and broken-off removals left half-way.")
@click.option("--attempts", is_flag=True, help="Only attempts that do not count, of repetitions that have a later one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(
    *, named: tuple[Path, ...], unfinished: bool, older_than: str | None, parts: bool, attempts: bool, yes: bool
) -> int:
    """Remove runs, or what is left over in them.

    Without arguments it shows what could be removed from crosswind-runs/, and removes nothing. Options narrow each
    other down: --unfinished --older-than 30d are the runs that are both. A run that is in use is never touched, nor is
    a directory that is no run.
    """
    age = None if older_than is None else _age(older_than)
    found = _named(named) if named else _all()
    if not (named or unfinished or age is not None or parts or attempts):
        _offer(plain_console(), found)
        return 0
    now = datetime.now(UTC)

    def is_meant(run: Run) -> bool:
        return (run.unfinished or not unfinished) and (age is None or now - run.active > age)

    free = _free([one for one in found if not isinstance(one, Run) or is_meant(one)])
    kinds = [kind for kind, wanted in ((runs.parts_of, parts), (runs.attempts_of, attempts)) if wanted]
    removals = _inside(free, kinds) if kinds else _whole(free)
    if age is None and not (attempts and not parts):
        removals += _leftovers(free)
    if named and age is None and not kinds:
        removals += _unreadable(free)
    if not removals:
        click.echo("nothing to remove")
        return 0
    _show(plain_console(), removals)
    if not (yes or _agreed()):
        click.echo("nothing was removed", err=True)
        return 0
    current = [removal for removal in removals if removal.is_current()]
    for removal in current:
        removal.do()
    click.echo(f"removed {_sum(current)}" if current else "nothing was removed", err=True)
    return 0


def _all() -> list[Run | Unreadable]:
    return runs.list_runs(DEFAULT_ROOT) if DEFAULT_ROOT.exists() else []


def _named(named: Sequence[Path]) -> list[Run | Unreadable]:
    """What was named, by path or by its name in crosswind-runs/. Raises: StoreError for what may not be removed."""
    found = []
    for path in dict.fromkeys(named):
        is_name = path.name == str(path) and not path.exists() and (DEFAULT_ROOT / path).exists()
        directory = DEFAULT_ROOT / path if is_name else path
        if not (runs.is_run(directory) or runs.is_leftover(directory)):
            raise runs.not_a_run(directory)
        if runs.in_use(directory):
            raise runs.used_by_another(directory)
        found.append(runs.examine(directory))
    return found


def _free(found: Sequence[Run | Unreadable]) -> list[Run | Unreadable]:
    """What nobody uses; of the others it says so."""
    free = []
    for one in found:
        if isinstance(one, Run) and runs.in_use(one.directory):
            click.echo(f"{one.directory} is in use: left alone", err=True)
        elif not one.directory.is_symlink():
            free.append(one)
    return free


def _whole(found: Sequence[Run | Unreadable]) -> list[_Removal]:
    return [_Removal(run.directory, run.status, run.size_bytes, run.active) for run in found if isinstance(run, Run)]


def _inside(found: Sequence[Run | Unreadable], kinds: Sequence[Callable[[Path], list[Path]]]) -> list[_Removal]:
    """Single entries of runs; `kinds` find them."""
    removals = []
    for run in found:
        entries = tuple(entry for kind in kinds for entry in kind(run.directory)) if isinstance(run, Run) else ()
        if isinstance(run, Run) and entries:
            size_bytes = sum(map(runs.size_of, entries))
            removals.append(_Removal(run.directory, f"{len(entries)} left over", size_bytes, run.active, entries))
    return removals


def _leftovers(found: Sequence[Run | Unreadable]) -> list[_Removal]:
    """Removals that did not end."""
    broken = [one.directory for one in found if isinstance(one, Unreadable) and one.leftover]
    return [_Removal(directory, "half removed", runs.size_of(directory)) for directory in broken]


def _unreadable(found: Sequence[Run | Unreadable]) -> list[_Removal]:
    """Damaged runs, and those of another version: they have to be named."""
    damaged = [one.directory for one in found if isinstance(one, Unreadable) and not one.leftover]
    return [_Removal(directory, "unreadable", runs.size_of(directory)) for directory in damaged]


def _offer(console: Console, found: Sequence[Run | Unreadable]) -> None:
    all_runs = [one for one in found if isinstance(one, Run)]
    free = [run for run in all_runs if not runs.in_use(run.directory) and not run.directory.is_symlink()]
    broken = [one for one in found if isinstance(one, Unreadable) and one.leftover]
    unfinished = _whole([run for run in free if run.unfinished]) + _leftovers(broken)
    offers = [
        ("--unfinished", unfinished),
        ("--parts", _inside(free, [runs.parts_of]) + _leftovers(broken)),
        ("--attempts", _inside(free, [runs.attempts_of])),
    ]
    if unfinished:
        _show(console, unfinished)
        console.print()
    for option, removals in offers:
        if removals:
            console.print(f"crosswind clean {option:<14}{_sum(removals)}")
    finished = _whole([run for run in free if run.status == "done"])
    if finished:
        console.print(f"finished runs                 {_sum(finished)}: name them, or --older-than 30d")
    if not finished and not any(removals for _, removals in offers):
        console.print(f"there is nothing to remove in {DEFAULT_ROOT}/")
    for run in all_runs:
        if run not in free:
            console.print(Text(f"{run.directory} is in use", style="cyan"))


def _show(console: Console, removals: Sequence[_Removal]) -> None:
    shown = removals[:_SHOWN]
    columns = [
        Column("run", [str(one.directory) for one in shown]),
        Column("last active (UTC)", [time_text(one.active) if one.active else "–" for one in shown], spare=1),
        Column("what", [one.status for one in shown]),
        Column("size", [size_text(one.size_bytes) for one in shown], "right"),
    ]
    print_columns(console, columns, [{"what": STYLES.get(one.status, "")} for one in shown])
    if len(removals) > len(shown):
        console.print(f"and {len(removals) - len(shown)} more")


def _sum(removals: Sequence[_Removal]) -> str:
    whole = [one for one in removals if one.entries is None]
    entries = sum(len(one.entries) for one in removals if one.entries is not None)
    parts = [f"{len(whole)} run{'s' * (len(whole) != 1)}"] if whole else []
    parts += [f"{entries} {'entries' if entries != 1 else 'entry'} of runs"] if entries else []
    return f"{' and '.join(parts)}, {size_text(sum(one.size_bytes for one in removals))}"


def _agreed() -> bool:
    """Whether whoever sits at the terminal wants it. Raises: UsageError where there is none."""
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether to remove this", hint="--yes removes it without asking")
    return click.confirm("remove this?", err=True)


def _age(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([hdw])", text.strip())
    if match is None:
        raise UsageError(f"--older-than {text!r} is not an age", hint="as 12h, 30d or 8w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
