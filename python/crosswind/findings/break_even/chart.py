"""The ratio of two levels along a factor, with its intervals."""

from dataclasses import dataclass

import altair as alt

from crosswind.findings.break_even.result import BreakEven, BreakEvenGroup
from crosswind.report.charts.style import GREY, PALETTE, Along, Specification, colour_of, inline, specification, tips
from crosswind.report.text.format import interval, named_levels, varied_levels

_HEIGHT = 300


@dataclass(frozen=True)
class _Point:
    series: str
    x: float
    value: float
    low: float
    high: float
    estimate: str


@dataclass(frozen=True)
class _Line:
    y: float


def ratio_chart(made: BreakEven) -> tuple[Specification, tuple[str, ...]]:
    """The chart, and how to read it."""
    varied = varied_levels(group.levels for group in made.groups)
    points = [point for group in made.groups for point in _points(group, varied)]
    series = list(dict.fromkeys(point.series for point in points))
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(series)}
    base = alt.Chart(inline(points)).encode(color=colour_of("series", colours, shown=series))
    x = Along.of(f"{made.x_title}, {made.x_unit}", log=False, zero=False, nice=False, padding=12).x("x")
    y = Along.of(f"{made.other} / {made.reference}", log=True, nice=False, zero=False, padding=12)
    equal = alt.Chart(inline([_Line(1.0)])).mark_rule(color=GREY, strokeDash=[4, 4], strokeWidth=1.5)
    layers = [
        equal.encode(y=y.y("y")),
        base.mark_area(opacity=0.14).encode(x=x, y=y.y("low"), y2="high:Q"),
        base.mark_line(strokeWidth=1.4).encode(x=x, y=y.y("value")),
        base.mark_rule(strokeWidth=2).encode(x=x, y=y.y("low"), y2="high:Q"),
        base.mark_point(size=52, filled=True, opacity=1).encode(
            x=x, y=y.y("value"), tooltip=tips("series", "x:Q", "estimate")
        ),
    ]
    note = "Dashed: both are equal. Band: 95 % interval of the ratio. A break-even may lie where the band contains 1."
    return specification(layers, _HEIGHT), (note,)


def _points(group: BreakEvenGroup, varied: list[str]) -> list[_Point]:
    """A combination's points with a number; an unknown limit is the number itself."""
    series = named_levels({key: group.levels[key] for key in varied}) or "all"
    known = [(point, point.effect.limits) for point in group.points]
    return [
        _Point(series, point.x, point.effect.value, limits[0], limits[1], interval(point.effect))
        for point, limits in known
        if limits is not None and point.effect.value is not None and min(limits) > 0
    ]
