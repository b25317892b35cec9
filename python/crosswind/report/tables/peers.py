"""Client programs of other people, by function, beside what a document printed of one."""

import re

from crosswind.analysis.result import Cell, Peer, PublishedComparison, Result
from crosswind.report.tables.tables import Table
from crosswind.report.text.format import NOTHING, interval, levels, number, observed, percent, scale_of
from crosswind.report.text.headline import number_of

METRIC = "send_time"
_FUNCTIONS = 5
_LEAST_SHARE = 0.001
_NAME_WIDTH = 40
_NOTES = (
    "Sending alone, by message, as the client program says; n messages. In all: mean over repetitions, with a 95 % "
    "interval by Student's t. Functions: time in themselves, averaged over all messages.",
    "A profiler that notes every call, as Python's own, slows down what calls much, and adds little to a loop within "
    "one function.",
)


def peers_table(result: Result) -> Table | None:
    """For each program a row of its whole time and one for each of its largest functions; published ones below."""
    if not result.peers:
        return None
    by_cell = {cell.cell: cell for cell in result.cells}
    published = _published(result)
    divisor, unit = scale_of([min(_times(result, published), default=None)], "ns")
    rows: list[list[str]] = []
    marked: set[int] = set()
    problems: dict[str, list[str]] = {}
    for peer in result.peers:
        cell = by_cell[peer.cell]
        added = _rows(peer, cell, divisor)
        if not cell.valid:
            marked |= set(range(len(rows), len(rows) + len(added)))
        rows += added
        if peer.problem:
            problems.setdefault(peer.problem, []).append(levels(cell.levels))
    for one in published:
        rows += _published_rows(one, divisor)
    notes = [
        *_NOTES,
        *(f"{', '.join(cells)}: {problem}" for problem, cells in problems.items()),
        *dict.fromkeys(f"{one.source}: {one.note}" for one in published if one.note),
    ]
    columns = ["program", "function", "n", f"{unit} a message [95 %]", "share"]
    narrow = [[_short(head or f"  {function}"), time, share] for head, function, _, time, share in rows]
    small = Table(
        "Peer programs", ["program, and its functions", columns[3], "share"], narrow, 1, frozenset(marked), notes
    )
    return Table("Peer programs", columns, rows, 2, frozenset(marked), notes, small)


def _rows(peer: Peer, cell: Cell, divisor: float) -> list[list[str]]:
    head = " · ".join(filter(None, (levels(cell.levels), peer.version)))
    if peer.time_ns is None:
        return [[head, "it sent nothing: see below", "0", NOTHING, NOTHING]]
    shown = [one for one in peer.functions if one.share >= _LEAST_SHARE][:_FUNCTIONS]
    parts = {readable(one.name): one.own_ns for one in shown}
    whole = [head, "in all", number_of(peer.messages), _whole(peer, cell, divisor), percent(1.0)]
    return [whole, *_parts(parts, peer.time_ns, divisor)]


def _published_rows(one: PublishedComparison, divisor: float) -> list[list[str]]:
    head = [one.source, "in all, published", NOTHING, number(one.theirs, divisor), percent(1.0)]
    return [head, *_parts(one.functions, one.theirs, divisor)]


def _parts(parts: dict[str, float], whole: float, divisor: float) -> list[list[str]]:
    rest = whole - sum(parts.values())
    every = parts | ({"the rest": rest} if rest >= _LEAST_SHARE * whole else {})
    return [["", name, "", number(own, divisor), percent(own / whole)] for name, own in every.items()]


def _whole(peer: Peer, cell: Cell, divisor: float) -> str:
    found = cell.estimates.get(METRIC)
    if found is None:
        return number(peer.time_ns, divisor)
    if found.mean.value is None:
        return observed((found.smallest, found.largest), divisor)
    return interval(found.mean, divisor)


def _published(result: Result) -> list[PublishedComparison]:
    """Each published profile once, beside however many cells it stands."""
    found = {one.source: one for one in result.published if one.metric == METRIC and one.functions}
    return list(found.values())


def _times(result: Result, published: list[PublishedComparison]) -> list[float]:
    return [one.time_ns for one in result.peers if one.time_ns] + [one.theirs for one in published]


def _short(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 1].rstrip()}…"


def readable(name: str) -> str:
    """A function as Python's profiler names it, its own name first: "frames.py:12(mask)" -> "mask, frames.py:12"."""
    found = re.fullmatch(r"(.+:\d+)\((.+)\)", name)
    return f"{found[2]}, {found[1]}" if found else name
