"""Packets in order, each direction apart: a bar is as high as what losing its packet adds."""

from dataclasses import dataclass

import altair as alt

from crosswind.findings.each_loss.result import EachLoss
from crosswind.findings.each_loss.sentence import WAYS, cause_noun, cost_text
from crosswind.report.charts.style import GREY, PALETTE, Along, colour_of, inline, is_log, specification, tips
from crosswind.report.page import Chart
from crosswind.report.text.format import named_levels, scale_of
from crosswind.text.quantities import TIME

_FREE, _FAILED = "nothing", "an exchange fails"
_RED = "#B5304A"
_HEIGHT = 150
_BELOW = 3
"""The lower end of a logarithmic axis is so many times below the smallest cost."""
_NOTE = "A bar for each packet: what losing it alone adds to all connections and exchanges. No bar: nothing."


@dataclass(frozen=True)
class _Bar:
    """A packet. `adds`: in the axis's unit; `said`: with its own."""

    direction: str
    packet: int
    adds: float
    said: str
    cause: str


def each_loss_charts(each: EachLoss) -> list[Chart]:
    """A cell's charts, one for each direction, with one scale."""
    costs = [abs(loss.cost_ns) for loss in each.losses if loss.cost_ns]
    divisor, unit = scale_of([max(costs, default=0.0)], "ns")
    highest = max(costs, default=1.0)
    bars = [
        _Bar(
            loss.direction,
            loss.index + 1,
            (highest if loss.cost_ns is None else loss.cost_ns) / divisor,
            cost_text(loss),
            _FAILED if loss.cost_ns is None else cause_noun(loss.cause) if loss.cost_ns else _FREE,
        )
        for loss in each.losses
    ]
    causes = list(dict.fromkeys(bar.cause for bar in bars if bar.cause not in (_FREE, _FAILED)))
    colours = dict(zip(causes, PALETTE, strict=False)) | {_FAILED: _RED, _FREE: GREY}
    colour = colour_of("cause", colours, shown={bar.cause for bar in bars if bar.adds})
    shown = [bar.adds for bar in bars if bar.adds > 0]
    log = is_log(shown, TIME)
    # A bar on a logarithmic axis begins at its lower end.
    least = min(shown) / _BELOW if log else 0.0
    y = Along.of(f"adds, {unit}", log=log, domain=[least, highest / divisor], nice=not log, clamp=True).y("adds")
    charts, base = [], alt.Y2Datum(least)
    for direction, way in WAYS.items():
        own = [bar for bar in bars if bar.direction == direction]
        drawing = alt.Chart(inline(own)).mark_bar().encode(x=_X, y=y, y2=base, color=colour, tooltip=_TIPS)
        caption = ", ".join(filter(None, (named_levels(each.levels), f"packets {way}")))
        charts.append(Chart(caption, specification(drawing, _HEIGHT), (_NOTE,)))
    return charts


_X = alt.X("packet:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap="greedy"))
_TIPS = tips("packet:Q", "said", "cause")
