"""A TCP socket over time: its windows, its round trips, and its packets' fates, on one time axis."""

from collections.abc import Sequence

from crosswind.catalog.explained import SocketHistory, SocketPoint
from crosswind.report.charts.lines_over_time import HAPPENED, Moment, Point, TimeAxis, lines_over_time
from crosswind.report.charts.style import PALETTE, Specification
from crosswind.report.page import Chart, Panels
from crosswind.text.quantities import SIZE, TIME, Unit

_MOST = 2000
"""Points in a line, evenly spaced."""
_COLOURS = {
    "congestion window": PALETTE[0],
    "slow start threshold": PALETTE[4],
    "in flight": PALETTE[2],
    "smoothed round trip": PALETTE[3],
    "waited in queues": PALETTE[5],
    **HAPPENED,
}


def socket_charts(history: SocketHistory) -> list[Panels]:
    """Windows, and below them round trips with each packet's queueing; both with drops and marks."""
    points, packets = _thinned(history.points), history.packets
    end = max([point.at_ns for point in points] + [packet.at_ns for packet in packets[-1:]])
    divisor, unit = TIME.scale_for([end])
    windows = [
        (point.at_ns, value, what)
        for point in points
        for what, value in (
            ("congestion window", point.window_bytes),
            ("slow start threshold", point.threshold_bytes),
            ("in flight", point.in_flight_bytes),
        )
        if value is not None
    ]
    times = [(point.at_ns, point.srtt_ns, "smoothed round trip") for point in points]
    times += [(packet.at_ns, packet.queued_ns, "waited in queues") for packet in packets if not packet.fate]
    events = [
        Moment(packet.at_ns / divisor, packet.fate)
        for fate in ("dropped", "marked")
        for packet in packets
        if packet.fate == fate
    ]
    time = TimeAxis(f"time, {unit}", end / divisor, events, opacity=0.5)
    note = _events_note(history)
    charts = [
        Chart("Windows", _drawing(_scaled(windows, divisor, SIZE), time), (note,)),
        Chart("Round trips and queues", _drawing(_scaled(times, divisor, TIME), time)),
    ]
    return [Panels([chart], 1) for chart in charts]


def _events_note(history: SocketHistory) -> str:
    if not history.packets:
        return "With --packets, what the path dropped, marked and queued would be here."
    return f"Upright: packets that the path dropped ({history.dropped:,}) or marked ({history.marked:,})."


def _thinned(points: Sequence[SocketPoint]) -> Sequence[SocketPoint]:
    step = -(-len(points) // _MOST) or 1
    return points[::step]


def _scaled(values: Sequence[tuple[int, int, str]], divisor: float, quantity: Unit) -> tuple[list[Point], str]:
    scale, unit = quantity.scale_for([value for _, value, _ in values])
    return [Point(at / divisor, value / scale, what) for at, value, what in values], unit


def _drawing(scaled: tuple[list[Point], str], time: TimeAxis) -> Specification:
    points, unit = scaled
    shown = {point.what for point in points} | {moment.what for moment in time.moments}
    return lines_over_time(points, unit, time, {what: _COLOURS[what] for what in _COLOURS if what in shown}, columns=3)
