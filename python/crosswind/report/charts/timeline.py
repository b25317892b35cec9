"""An exchange between its two hosts: time goes downwards, packets across, and a delay's cause stands at its host."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import altair as alt

from crosswind.catalog.explained import Piece, Timed
from crosswind.catalog.spent import AFTER_LOSS, GROUPS
from crosswind.report.charts.stacked import COLOURS
from crosswind.report.charts.style import Along, Specification, colour_of, inline, specification, tips
from crosswind.report.page import Chart, Panels
from crosswind.report.text.explained import packet_name
from crosswind.report.text.format import quantity
from crosswind.text.quantities import TIME

_HEIGHT = 420
_HOSTS = {"client": 0.0, "server": 1.0}
_TITLES = {part: group.title for group in GROUPS for part in group.parts}
_LOST_AT = 0.6
"""How far a lost packet is drawn, of the way: where it was lost on it, nobody needs to know."""
_MOST = 2000
_NOTE = "Thick: what it waited for at a host. Thin: packets in the path; dashed, one that was lost."


@dataclass(frozen=True)
class _Line:
    """A line from one place and time to another. Attributes: kind: wait, packet or lost."""

    x: float
    x2: float
    at: float
    until: float
    kind: str
    group: str
    what: str
    takes: str


def timeline_chart(exchange: Timed) -> Panels:
    """The exchange or connection; a very long one shows its first pieces."""
    first = exchange.pieces[0].from_ns if exchange.pieces else 0
    divisor, unit = TIME.scale_for([exchange.whole_ns])
    lines = list(_lines(exchange.pieces[:_MOST], first, divisor))
    notes: tuple[str, ...] = (_NOTE,)
    if len(exchange.pieces) > _MOST:
        notes += (f"The first {_MOST} of {len(exchange.pieces)} pieces.",)
    return Panels([Chart("", _drawing(lines, exchange.whole_ns / divisor, unit), notes)], 1)


def _lines(pieces: Sequence[Piece], first: int, divisor: float) -> Iterator[_Line]:
    for run in _runs(pieces):
        if run[0].place == "path":
            yield from _across(run, first, divisor)
            continue
        (piece,) = run
        at, until = ((ns - first) / divisor for ns in (piece.from_ns, piece.to_ns))
        group, what, takes = _TITLES[piece.part], piece.part.replace("_", " "), quantity(piece.length_ns, "ns")
        x = _HOSTS[piece.place]
        yield _Line(x, x, at, until, "wait", group, what, takes)
        if piece.part in AFTER_LOSS:
            towards = x + (_LOST_AT if x == 0 else -_LOST_AT)
            yield _Line(x, towards, at, at, "lost", group, f"{packet_name(piece)}, lost", takes)


def _across(run: Sequence[Piece], first: int, divisor: float) -> Iterator[_Line]:
    """A packet from one host to the other, with each piece's share of the way equal to its share of time."""
    begun, ended = run[0].from_ns, run[-1].to_ns
    ends = (0.0, 1.0) if run[0].direction == "forward" else (1.0, 0.0)

    def place(ns: int) -> float:
        share = (ns - begun) / (ended - begun)
        return ends[0] + share * (ends[1] - ends[0])

    for piece in run:
        at, until = ((ns - first) / divisor for ns in (piece.from_ns, piece.to_ns))
        what = f"{packet_name(piece)}: {piece.part.replace('_', ' ')}"
        ways = place(piece.from_ns), place(piece.to_ns)
        yield _Line(*ways, at, until, "packet", _TITLES[piece.part], what, quantity(piece.length_ns, "ns"))


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """A packet's pieces in the path together, and each other piece."""

    def of_run(piece: Piece) -> object:
        return (piece.direction, piece.index) if piece.place == "path" else piece.from_ns

    for _, run in groupby(pieces, of_run):
        yield list(run)


def _drawing(lines: Sequence[_Line], whole: float, unit: str) -> Specification:
    shown = {line.group for line in lines}
    colours = {title: colour for title, colour in COLOURS.items() if title in shown}
    hosts = alt.Axis(values=[0, 1], labelExpr="datum.value == 0 ? 'client' : 'server'", orient="top", grid=True)
    drawing = (
        alt.Chart(inline(lines))
        .mark_rule()
        .encode(
            x=alt.X("x:Q", title=None, scale=alt.Scale(domain=[-0.05, 1.05], nice=False), axis=hosts),
            x2="x2:Q",
            y=Along(f"time, {unit}", alt.Scale(domain=[whole, 0], nice=False)).y("at"),
            y2="until:Q",
            color=colour_of("group", colours, columns=2),
            strokeWidth=alt.condition("datum.kind == 'wait'", alt.value(7), alt.value(2)),
            strokeDash=alt.condition("datum.kind == 'lost'", alt.value([4, 3]), alt.value([1, 0])),
            tooltip=tips("what", "takes"),
        )
    )
    return specification(drawing, _HEIGHT)
