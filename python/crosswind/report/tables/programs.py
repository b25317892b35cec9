"""Client programs by function, beside a published profile."""

import re
from collections.abc import Mapping

from crosswind.analysis.result import CellResult, ClientProgram, Result
from crosswind.catalog.metrics import METRICS
from crosswind.report.showing import PublishedProfile, showings
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.format import NOTHING, count, levels, mean_or_observed, number, percent

_TITLE = "Client programs"
_METRIC = "send_time"
_MAX_FUNCTIONS = 5
_MIN_SHARE = 0.001
_NAME_WIDTH = 40
_NOTES = (
    "Sending time per message, as reported by the client program; n messages. In all: mean over repetitions, with a "
    "95 % interval by Student's t. Functions: own time, averaged over all messages.",
    "A profiler that records every call, as Python's does, slows down functions with many calls, but hardly a loop "
    "within one function.",
)


def program_tables(result: Result) -> list[Table]:
    """For each program a row for its whole time and one for each of its largest functions; published ones below."""
    timed = [program for program in result.peers if program.time_ns is not None]
    if not timed:
        return []
    by_cell = {cell.cell: cell for cell in result.cells}
    published = [profile for showing in showings() for profile in showing.profiles(result)]
    times = [program.time_ns for program in timed if program.time_ns]
    times += [profile.whole for profile in published if profile.whole]
    divisor, unit = METRICS[_METRIC].unit.scale_for([min(times, default=None)])
    rows: list[list[str]] = []
    marked: set[int] = set()
    for program in timed:
        cell = by_cell[program.cell]
        added = _program_rows(program, cell, divisor)
        if not cell.valid:
            marked |= set(range(len(rows), len(rows) + len(added)))
        rows += added
    for profile in published:
        rows += _published_rows(profile, divisor)
    notes = [
        *_NOTES,
        *dict.fromkeys(f"{profile.source}: {profile.note}" for profile in published if profile.note),
    ]
    time = numbers(f"{unit} a message [95 %]", "share")
    narrow = [[_short(head or f"  {function}"), own, share] for head, function, _, own, share in rows]
    small = Table(_TITLE, [*names("program, and its functions"), *time], narrow, frozenset(marked), notes)
    return [Table(_TITLE, [*names("program", "function"), *numbers("n"), *time], rows, frozenset(marked), notes, small)]


def readable(name: str) -> str:
    """A function as Python's profiler names it, its own name first: "frames.py:12(mask)" -> "mask, frames.py:12"."""
    match = re.fullmatch(r"(.+:\d+)\((.+)\)", name)
    return f"{match[2]}, {match[1]}" if match else name


def _program_rows(program: ClientProgram, cell: CellResult, divisor: float) -> list[list[str]]:
    head = " · ".join(filter(None, (levels(cell.levels), program.version)))
    assert program.time_ns is not None  # The table has only timed programs.
    largest = [function for function in program.functions if function.share >= _MIN_SHARE][:_MAX_FUNCTIONS]
    functions = {readable(function.name): function.own_ns for function in largest}
    estimates = cell.estimates.get(_METRIC)
    whole = mean_or_observed(estimates, divisor) if estimates else number(program.time_ns, divisor)
    return [
        [head, "in all", count(program.messages), whole, percent(1.0)],
        *_function_rows(functions, program.time_ns, divisor),
    ]


def _published_rows(published: PublishedProfile, divisor: float) -> list[list[str]]:
    head = [published.source, "in all, published", NOTHING, number(published.whole, divisor), percent(1.0)]
    return [head, *_function_rows(published.functions, published.whole, divisor)]


def _function_rows(functions: Mapping[str, float], whole: float, divisor: float) -> list[list[str]]:
    remainder = whole - sum(functions.values())
    every = {**functions, **({"the rest": remainder} if remainder >= _MIN_SHARE * whole else {})}
    return [["", name, "", number(time, divisor), percent(time / whole)] for name, time in every.items()]


def _short(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 1].rstrip()}…"
