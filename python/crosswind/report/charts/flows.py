"""Each flow's rate over time, the queueing, and drops and marks, on one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from crosswind.analysis.result import FlowOverTime, FlowResult, Result
from crosswind.report.charts.lines_over_time import HAPPENED, Moment, Point, TimeAxis, lines_over_time
from crosswind.report.charts.panels import MAX_PANELS, NO_PANELS
from crosswind.report.charts.style import PALETTE, Specification
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import levels
from crosswind.text.quantities import RATE, TIME, Unit

_LINES = [colour for colour in PALETTE if colour not in HAPPENED.values()]


@dataclass(frozen=True)
class _Frame:
    """A cell's common frame: the time axis with its divisor, and the flows' colours."""

    divisor: float
    time: TimeAxis
    colours: dict[str, str]


def flow_charts(result: Result) -> Panels:
    """Two panels for each cell: rates, and below them queueing; both with drops and marks."""
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
    rows = [(flow.name, row) for flow in flows for row in _in_direction(flow, width)]
    divisor, unit = TIME.scale_for([end])
    moments = [
        Moment(row.from_ns / divisor, what)
        for _, row in rows
        for what, count in (("dropped", row.dropped), ("marked", row.marked))
        if count
    ]
    colours = {flow.name: _LINES[place % len(_LINES)] for place, flow in enumerate(flows)}
    frame = _Frame(divisor, TimeAxis(f"time, {unit}", end / divisor, moments, opacity=0.25), colours)
    rates = [Point(row.from_ns, 8e9 * row.bytes / width, name) for name, row in rows]
    waits = [Point(row.from_ns, row.queueing_ns / row.packets, name) for name, row in rows if row.packets]
    note = "Of the first repetition. Upright: the path dropped or marked packets then."
    return [
        Chart(": ".join(filter(None, [title, "rate"])), _drawing(rates, RATE, frame), (note,)),
        Chart(": ".join(filter(None, [title, "queueing"])), _drawing(waits, TIME, frame)),
    ]


def _interval_of(rows: Sequence[FlowOverTime]) -> int:
    times = sorted({row.from_ns for row in rows})
    return min((later - earlier for earlier, later in pairwise(times)), default=100_000_000)


def _in_direction(flow: FlowResult, width: int) -> list[FlowOverTime]:
    """The intervals in the flow's direction, including empty ones."""
    known = {row.from_ns: row for row in flow.over_time if row.direction == flow.direction}
    if not known:
        return []
    nothing = FlowOverTime(direction=flow.direction, from_ns=0, packets=0, bytes=0, dropped=0, marked=0, queueing_ns=0)
    times = range(min(known), max(known) + width, width)
    return [known.get(at) or nothing.model_copy(update={"from_ns": at}) for at in times]


def _drawing(points: Sequence[Point], quantity: Unit, frame: _Frame) -> Specification:
    scale, unit = quantity.scale_for([max((point.value for point in points), default=0)])
    scaled = [
        Point(float(f"{point.at / frame.divisor:.6g}"), float(f"{point.value / scale:.5g}"), point.what)
        for point in points
    ]
    happened = {moment.what for moment in frame.time.moments}
    colours = frame.colours | {what: colour for what, colour in HAPPENED.items() if what in happened}
    return lines_over_time(scaled, unit, frame.time, colours, columns=4, tooltip=("what:N", "at:Q", "value:Q"))
