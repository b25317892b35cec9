"""Lines over time, with events as upright lines, on one axis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.report.charts.style import PALETTE, Along, Specification, axis, colour_of, inline, specification, tips

HAPPENED = {"dropped": PALETTE[1], "marked": PALETTE[8]}
"""Colours for the path's effects on packets."""

_HEIGHT = 180


@dataclass(frozen=True)
class Point:
    """A point on the line `what`."""

    at: float
    value: float
    what: str


@dataclass(frozen=True)
class Moment:
    """When something happened."""

    at: float
    what: str


@dataclass(frozen=True)
class TimeAxis:
    """The charts' common axis, from 0 to `end`, and the events along it, drawn with this opacity."""

    title: str
    end: float
    moments: Sequence[Moment]
    opacity: float


def lines_over_time(
    points: Sequence[Point],
    unit: str,
    time: TimeAxis,
    colours: Mapping[str, str],
    *,
    columns: int,
    tooltip: Sequence[str] = (),
) -> Specification:
    """Args: colours: for every line and event; the legend has this order, in so many columns. tooltip: fields."""
    x = Along(time.title, alt.Scale(domain=[0, time.end], nice=False)).x("at")
    colour = colour_of("what", colours, columns=columns)
    lines = (
        alt.Chart(inline(points))
        .mark_line(interpolate="step-after", strokeWidth=1.5)
        .encode(x=x, y=alt.Y("value:Q", title=unit, axis=axis(log=False)), color=colour)
    )
    if tooltip:
        lines = lines.encode(tooltip=tips(*tooltip))
    rules = alt.Chart(inline(time.moments)).mark_rule(opacity=time.opacity).encode(x=x, color=colour)
    return specification([rules, lines], _HEIGHT)
