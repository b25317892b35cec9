"""Packets in sending order, a bar for each cost; and the mean over the loss rate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.findings.each_packet.result import EachPacket, PacketCost
from crosswind.findings.each_packet.sentence import (
    HELD,
    WAYS,
    cause_noun,
    cost_text,
    effect_of,
    packets_caption,
    time_text,
    timeline_title,
)
from crosswind.report.charts.style import (
    GREY,
    PALETTE,
    Along,
    colour_of,
    inline,
    is_log,
    specification,
    tips,
)
from crosswind.report.page import Chart, link_name
from crosswind.report.text.format import named_levels, scale_of
from crosswind.text.quantities import TIME

_FREE, _FAILED = "nothing", "an exchange fails"
_RED = "#B5304A"
_HEIGHT, _CURVE_HEIGHT = 260, 200
_BARS_WIDTH = 260.0
_BELOW, _ABOVE = 3, 1.1
"""A logarithmic axis is linear below a third of the smallest cost; any ends above the largest."""
_NOTE = (
    "A bar for each packet: what {} alone adds to all connections and exchanges. Upwards: packets to the server; "
    "downwards: to the client. No bar: nothing, or less than nothing."
)
_CLICK = " A click shows the timeline."
_CURVE_NOTE = "Line: what the slope alone says. Band: what repetitions with more losses than were tried may add."


@dataclass(frozen=True)
class _Bar:
    """A packet. `place`: in the order of sending. `adds`: in the axis's unit; `said`: with its own."""

    place: int
    direction: str
    packet: int
    carries: str
    sent: str
    adds: float
    said: str
    kind: str
    href: str | None


@dataclass(frozen=True)
class _Rate:
    """The mean at a loss rate, in percent; line: by the slope alone."""

    loss: float
    mean: float
    low: float
    high: float
    line: float


def packet_chart(each: EachPacket) -> Chart:
    """A cell's packets: those to the server upwards, those to the client downwards."""
    added = [abs(cost.cost_ns) for cost in each.costs if cost.cost_ns]
    divisor, unit = scale_of([max(added, default=0.0)], "ns")
    highest = max(added, default=divisor) / divisor
    links = _links(each)
    bars = [
        _bar(place, cost, each.hold_ns, highest, divisor=divisor, href=links.get(cost.key))
        for place, cost in enumerate(_ordered(each.costs), 1)
    ]
    shown = [abs(bar.adds) for bar in bars if bar.adds]
    log = is_log(shown, TIME)
    colour = colour_of("kind", _colours(bars), shown={bar.kind for bar in bars if bar.adds})
    x = alt.X("place:Q", title="packets in the order of sending", scale=_places(len(bars)), axis=_WHOLE)
    y = alt.Y("adds:Q", title=f"adds, {unit}{', log scale' if log else ''}", scale=_scale(highest, shown, log=log))
    width = max(1.0, min(14.0, _BARS_WIDTH / max(len(bars), 1)))
    drawing = (
        alt.Chart(inline(bars))
        .mark_bar(width=width)
        .encode(x=x, y=y.axis(_amounts(highest, shown, log=log)), color=colour, tooltip=_TIPS, href="href:N")
    )
    note = _NOTE.format("losing it" if each.hold_ns is None else f"holding it back by {time_text(each.hold_ns)}")
    note += _CLICK if links else ""
    return Chart(packets_caption(each), specification(drawing, _HEIGHT), (note,))


def _bar(
    place: int, cost: PacketCost, hold_ns: int | None, highest: float, *, divisor: float, href: str | None
) -> _Bar:
    adds = highest if cost.cost_ns is None else max(cost.cost_ns, 0.0) / divisor
    sent = "" if cost.at_ns is None else time_text(cost.at_ns)
    sign = 1 if cost.direction == "forward" else -1
    kind = _kind(cost, hold_ns)
    return _Bar(
        place, WAYS[cost.direction], cost.index, cost.carries or "", sent, sign * adds, cost_text(cost), kind, href
    )


def _links(each: EachPacket) -> dict[str, str]:
    """Each packet's timeline, or that of another with its cost."""
    by_cost = {}
    packets = {cost.key: cost for cost in each.costs}
    for exchange in each.timelines:
        cost = packets[exchange.key]
        by_cost[cost_text(cost)] = f"#{link_name(timeline_title(cost))}"
    return {cost.key: by_cost[cost_text(cost)] for cost in each.costs if cost_text(cost) in by_cost}


def _ordered(costs: Sequence[PacketCost]) -> list[PacketCost]:
    """By the time of sending, where it is known."""
    return sorted(
        costs, key=lambda cost: (cost.index if cost.at_ns is None else cost.at_ns, cost.direction, cost.index)
    )


def _places(count: int) -> alt.Scale:
    return alt.Scale(domain=[0.25, count + 0.75], nice=False)


def _scale(highest: float, shown: Sequence[float], *, log: bool) -> alt.Scale:
    """The same in both directions; logarithmic from a third of the smallest cost on."""
    domain = [-highest * _ABOVE, highest * _ABOVE]
    return alt.Scale(type="symlog", constant=min(shown) / _BELOW, domain=domain) if log else alt.Scale(domain=domain)


def _amounts(highest: float, shown: Sequence[float], *, log: bool) -> alt.Axis:
    """Amounts without a sign."""
    label = "format(abs(datum.value), ',~r')"
    if not log:
        return alt.Axis(labelExpr=label, tickCount=5)
    first, last = math.floor(math.log10(min(shown))), math.ceil(math.log10(highest * _ABOVE))
    powers = [10.0**power for power in range(first, last + 1) if 10.0**power <= highest * _ABOVE]
    return alt.Axis(labelExpr=label, values=[*(-power for power in powers), 0, *powers], labelOverlap="greedy")


def curve_charts(each: EachPacket) -> list[Chart]:
    """The mean over the loss rate; none where single losses do not tell it."""
    curve = each.curve
    if curve is None or len(curve.points) < 2 or each.slope_ns is None:
        return []
    divisor, unit = scale_of([curve.points[-1].high_ns], "ns")
    rates = [
        _Rate(
            100 * point.rate,
            point.mean_ns / divisor,
            point.low_ns / divisor,
            point.high_ns / divisor,
            (each.mean_ns + point.rate * each.slope_ns) / divisor,
        )
        for point in curve.points
    ]
    base = alt.Chart(inline(rates))
    x = Along.of("loss, %", log=False, nice=False, domain=[0, rates[-1].loss]).x("loss")
    y = Along.of(f"mean, {unit}", log=False, zero=False).y
    hint = tips("loss:Q", "mean:Q", "low:Q", "high:Q")
    layers = [
        base.mark_area(opacity=0.25, color=PALETTE[0]).encode(x=x, y=y("low"), y2="high:Q"),
        base.mark_line(color=GREY, strokeDash=[4, 4]).encode(x=x, y=y("line")),
        base.mark_line(color=PALETTE[0]).encode(x=x, y=y("mean"), tooltip=hint),
    ]
    caption = ", ".join(filter(None, (named_levels(each.levels), "mean over the rate of loss")))
    return [Chart(caption, specification(layers, _CURVE_HEIGHT), (_CURVE_NOTE,))]


def _kind(cost: PacketCost, hold_ns: int | None) -> str:
    if cost.cost_ns is None:
        return _FAILED
    if hold_ns is not None:
        return effect_of(cost, hold_ns)
    return cause_noun(cost.cause) if cost.cost_ns else _FREE


def _colours(bars: Sequence[_Bar]) -> dict[str, str]:
    kinds = [kind for kind in HELD if any(bar.kind == kind for bar in bars)] or [bar.kind for bar in bars]
    causes = list(dict.fromkeys(kind for kind in kinds if kind not in (_FREE, _FAILED)))
    return dict(zip(causes, PALETTE, strict=False)) | {_FAILED: _RED, _FREE: GREY}


_WHOLE = alt.Axis(format="d", tickMinStep=1, grid=False)
_TIPS = tips("direction", "packet:Q", "carries", "sent", "said", "kind")
