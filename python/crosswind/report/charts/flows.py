"""What each flow gets over time, the queue that packets meet, and drops and marks, on one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt

from crosswind.analysis.result import Result
from crosswind.analysis.result.flows import FlowOverTime, FlowResult
from crosswind.quantities import RATE, TIME, Unit
from crosswind.report.charts.panels import MAX_PANELS, NO_PANELS
from crosswind.report.charts.style import PALETTE, Specification, axis, inline, specification
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import levels

_HEIGHT = 180
_EVENTS = {"dropped": PALETTE[1], "marked": PALETTE[8]}
_LINES = [colour for colour in PALETTE if colour not in _EVENTS.values()]


@dataclass(frozen=True)
class _Point:
    at: float
    value: float
    what: str


@dataclass(frozen=True)
class _Frame:
    """What the charts of a cell have in common: the axis of time, and what happened along it."""

    divisor: float
    unit: str
    end: float
    events: Sequence[_Point]
    colours: dict[str, str]


@dataclass(frozen=True)
class _Interval:
    at_ns: int
    bits: float
    queueing_ns: float | None
    dropped: int
    marked: int


def flow_charts(result: Result) -> Panels:
    """Two panels for each cell: rates, and below them queueing; both with what was dropped and marked."""
    if not result.flows:
        return NO_PANELS
    by_cell: dict[int, list[FlowResult]] = {}
    for flow in result.flows:
        by_cell.setdefault(flow.cell, []).append(flow)
    titles = {cell.cell: levels(cell.levels) for cell in result.cells}
    charts: list[Chart] = []
    for cell, flows in list(by_cell.items())[: MAX_PANELS // 2]:
        charts += _of_cell(titles[cell], flows)
    return Panels(charts, 2 * len(by_cell))


def _of_cell(title: str, flows: Sequence[FlowResult]) -> list[Chart]:
    width = _interval_of([row for flow in flows for row in flow.over_time])
    end = max(row.from_ns for flow in flows for row in flow.over_time) + width
    joined = [(flow.name, row) for flow in flows for row in _joined(flow, width)]
    divisor, unit = TIME.scale_for([end])
    events = [
        _Point(row.at_ns / divisor, count, what)
        for _, row in joined
        for what, count in (("dropped", row.dropped), ("marked", row.marked))
        if count
    ]
    colours = {flow.name: _LINES[place % len(_LINES)] for place, flow in enumerate(flows)}
    frame = _Frame(divisor, unit, end / divisor, events, colours)
    rates = [_Point(row.at_ns, 1e9 * row.bits / width, name) for name, row in joined]
    waits = [_Point(row.at_ns, row.queueing_ns, name) for name, row in joined if row.queueing_ns is not None]
    note = "Of the first repetition. Upright: the path dropped or marked packets then."
    return [
        Chart(": ".join(filter(None, [title, "rate"])), _drawing(rates, RATE, frame), (note,)),
        Chart(": ".join(filter(None, [title, "queueing"])), _drawing(waits, TIME, frame)),
    ]


def _interval_of(rows: Sequence[FlowOverTime]) -> int:
    times = sorted({row.from_ns for row in rows})
    return min((later - earlier for earlier, later in pairwise(times)), default=100_000_000)


def _joined(flow: FlowResult, width: int) -> list[_Interval]:
    """The intervals of the flow's direction, also those in which nothing arrived."""
    sums: dict[int, list[int]] = {}
    for row in flow.over_time:
        if row.direction == flow.direction:
            own = sums.setdefault(row.from_ns // width, [0] * 5)
            counted = (row.bytes, row.packets, row.queueing_ns, row.dropped, row.marked)
            sums[row.from_ns // width] = [total + more for total, more in zip(own, counted, strict=True)]
    if not sums:
        return []
    made = []
    for place in range(min(sums), max(sums) + 1):
        size, packets, queueing, dropped, marked = sums.get(place, [0] * 5)
        made.append(_Interval(place * width, 8 * size, queueing / packets if packets else None, dropped, marked))
    return made


def _drawing(points: Sequence[_Point], quantity: Unit, frame: _Frame) -> Specification:
    scale, unit = quantity.scale_for([max((point.value for point in points), default=0)])
    scaled = [
        _Point(float(f"{point.at / frame.divisor:.6g}"), float(f"{point.value / scale:.5g}"), point.what)
        for point in points
    ]
    happened = {event.what for event in frame.events}
    shown = frame.colours | {what: colour for what, colour in _EVENTS.items() if what in happened}
    domain = alt.Scale(domain=[0, frame.end], nice=False)
    x = alt.X("at:Q", title=f"time, {frame.unit}", scale=domain, axis=axis(log=False))
    colour = alt.Color(
        "what:N",
        scale=alt.Scale(domain=list(shown), range=list(shown.values())),
        legend=alt.Legend(title=None, orient="top", columns=4),
    )
    lines = (
        alt.Chart(inline(scaled))
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=unit, axis=axis(log=False)),
            color=colour,
            tooltip=[alt.Tooltip("what:N"), alt.Tooltip("at:Q"), alt.Tooltip("value:Q")],
        )
    )
    rules = alt.Chart(inline(frame.events)).mark_rule(opacity=0.25).encode(x=x, color=colour)
    return specification([rules, lines] if frame.events else [lines], _HEIGHT)
