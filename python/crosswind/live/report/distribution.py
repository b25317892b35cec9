"""The round-trip times' distribution: a histogram, and cumulative shares."""

from dataclasses import dataclass

import altair as alt
import numpy as np

from crosswind.live.report.account import Account
from crosswind.report.charts.distributions import CURVE_POINTS, curve
from crosswind.report.charts.style import axis, inline, is_log, scale_type, specification
from crosswind.report.page import Chart
from crosswind.report.text.format import count, count_of, number, scale_of
from crosswind.stats.arrays import Array
from crosswind.text.quantities import TIME

_HEIGHT = 250
_BINS = 41
_MOST, _FAR = 0.99, 3
"""A linear axis three times longer than the 99 % quantile ends there."""


@dataclass(frozen=True)
class _Bin:
    """So many round trips are at least `begin` and less than `end`."""

    begin: float
    end: float
    n: int
    from_to: str


@dataclass(frozen=True)
class _Step:
    """`share` percent of the round trips are `x` or less."""

    x: float
    share: float
    text: str


@dataclass(frozen=True)
class _Axis:
    """Where both charts begin and end, in `unit`."""

    low: float
    high: float
    unit: str
    log: bool

    @property
    def x(self) -> alt.Scale:
        return alt.Scale(type=scale_type(log=self.log), domain=[self.low, self.high], nice=False, zero=False)

    @property
    def title(self) -> str:
        return f"round-trip time, {self.unit}{', log scale' if self.log else ''}"


def distribution_charts(account: Account) -> list[Chart]:
    """A histogram and the empirical distribution function; none without an answer."""
    answered = account.part.answered
    if not answered.size:
        return []
    divisor, unit = scale_of([float(np.median(answered))], "ns")
    values = np.sort(answered) / divisor
    along = _axis(values, unit)
    beyond = int((values > along.high).sum())
    note = f"{count_of(beyond, 'round trip')} of {count(values.size)} {'is' if beyond == 1 else 'are'} beyond the axis."
    notes = (note,) if beyond else ()
    return [
        Chart(f"Histogram, n = {count(values.size)}", _histogram(values, along), notes),
        Chart(f"Distribution function, n = {count(values.size)}", _function(values, along), notes),
    ]


def _axis(values: Array, unit: str) -> _Axis:
    low, high, most = float(values[0]), float(values[-1]), float(np.quantile(values, _MOST))
    if is_log(map(float, values), TIME):
        return _Axis(low * 0.9, high * 1.1, unit, log=True)
    top = most if high > _FAR * most else high
    # Equal round trips stand in the middle of an axis.
    margin = 0.03 * (top - low) or 0.05 * top or 1.0
    return _Axis(max(0.0, low - margin), top + margin, unit, log=False)


def _histogram(values: Array, along: _Axis) -> dict[str, object]:
    spaced = np.geomspace if along.log else np.linspace
    edges = spaced(along.low, along.high, _BINS + 1)
    counts, _ = np.histogram(values, bins=edges)
    bins = [
        _Bin(float(begin), float(end), int(n), f"{number(float(begin))} to {number(float(end))} {along.unit}")
        for begin, end, n in zip(edges[:-1], edges[1:], counts, strict=True)
        if n
    ]
    drawing = (
        alt.Chart(inline(bins))
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("begin:Q", title=along.title, scale=along.x, axis=axis(log=along.log)),
            x2="end:Q",
            y=alt.Y("n:Q", title="round trips", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6, tickMinStep=1)),
            y2=alt.datum(0),
            tooltip=[alt.Tooltip("from_to:N"), alt.Tooltip("n:Q")],
        )
    )
    return specification(drawing, _HEIGHT)


def _function(values: Array, along: _Axis) -> dict[str, object]:
    points, shares = curve(values, CURVE_POINTS)
    steps = [
        _Step(round(float(x), 6), round(100 * float(share), 3), f"{number(float(x))} {along.unit}")
        for x, share in zip(points, shares, strict=True)
    ]
    drawing = (
        alt.Chart(inline(steps))
        .mark_line(interpolate="step-after", strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X("x:Q", title=along.title, scale=along.x, axis=axis(log=along.log)),
            y=alt.Y("share:Q", title="share of round trips, %", scale=alt.Scale(domain=[0, 100])),
            order=alt.Order("share:Q"),
            tooltip=[alt.Tooltip("text:N"), alt.Tooltip("share:Q", title="%")],
        )
    )
    return specification(drawing, _HEIGHT)
