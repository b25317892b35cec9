"""Shifts between two distributions: the difference at every decile, with its interval.

A difference of means does not say whether all exchanges are slower by as much, or few of them by a lot. Each repetition
has its own quantiles; the intervals are for their differences, repetition by repetition.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import altair as alt
import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import LevelComparison, Result
from crosswind.catalog.metrics import METRICS
from crosswind.report.charts.panels import MAX_PANELS
from crosswind.report.charts.style import GREY, PALETTE, Along, Specification, inline, specification, tips
from crosswind.report.page import Chart, Panels
from crosswind.report.tables.comparisons import largest
from crosswind.report.text.format import factor_and_level, interval, level_text, levels, scale_of, with_unit
from crosswind.stats.differences import difference
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import Interval, TooFewSamples

QUANTILES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_FEWEST = 3
"""Minimum quantiles for a chart: one or two are a table's."""
_LEVEL = 0.95
_LEAST = 0.001
"""The smallest shift worth drawing, relative to the reference's median."""
_HOW_TO_READ = (
    "Dots: difference of the repetitions' own quantiles; shaded: its 95 % interval, if the repetitions support one; "
    "dashed: no difference."
)
_CUT = "Intervals beyond the axis end at its edge."
_BEYOND = 1.0
"""Maximum reach of an interval beyond the shifts, relative to their range, no difference included."""


def quantile_shifts(result: Result, data: Sequence[CellData]) -> Panels:
    """Shifts for each metric's and factor's largest comparisons, a chart each, given enough messages per repetition."""
    cells = {cell.cell: cell for cell in data}
    charts: list[Chart] = []
    for compared in largest(
        [comparison for comparison in result.comparisons if comparison.difference.value is not None], MAX_PANELS
    ):
        shifts = list(_shifts(compared, cells))
        if len(shifts) >= _FEWEST and _is_worth_a_look(compared, cells, shifts):
            charts.append(_chart(compared, shifts, is_first=not charts))
    return Panels(charts, len(charts))


def _is_worth_a_look(
    compared: LevelComparison, cells: dict[int, CellData], shifts: Sequence[tuple[float, Interval]]
) -> bool:
    """Whether any shift is visible: nanoseconds among milliseconds are left to the table."""
    middle = float(np.median(cells[compared.reference_cell].samples[compared.metric].values))
    return max(abs(made.value or 0.0) for _, made in shifts) > _LEAST * abs(middle)


@dataclass(frozen=True)
class _Shift:
    """The difference at one quantile, in the drawn unit; low and high with an interval."""

    quantile: float
    shift: float
    low: float | None
    high: float | None
    effect: str


def _shifts(compared: LevelComparison, cells: dict[int, CellData]) -> Iterator[tuple[float, Interval]]:
    """Each quantile common to both cells, and the difference there."""
    try:
        reference, other = (
            cells[cell].side(compared.metric) for cell in (compared.reference_cell, compared.other_cell)
        )
    except TooFewSamples:
        return
    for quantile in QUANTILES:
        try:
            effect = difference(reference, other, quantile)
            made = estimate_of(effect, level=_LEVEL)
        except TooFewSamples:
            continue
        if made.value is not None:
            yield quantile, made


def _chart(compared: LevelComparison, shifts: Sequence[tuple[float, Interval]], *, is_first: bool) -> Chart:
    """Args: is_first: among the charts below each other: only the first has the legend."""
    divisor, unit = scale_of([max((abs(made.value or 0) for _, made in shifts), default=0.0)], compared.unit)
    marks = [_mark(quantile, made, divisor, unit) for quantile, made in shifts]
    at = f" · {levels(compared.fixed)}" if compared.fixed else ""
    metric = METRICS[compared.metric].title
    pair = f"{factor_and_level(compared.factor, compared.other)} less {level_text(compared.reference)}"
    caption = f"{metric}: {pair}{at}"
    reach = _reach(marks)
    is_cut = any(end is not None and not reach[0] <= end <= reach[1] for mark in marks for end in (mark.low, mark.high))
    notes = " ".join(filter(None, (_HOW_TO_READ if is_first else "", _CUT if is_cut else "")))
    return Chart(caption, _drawing([_within(mark, *reach) for mark in marks], unit), (notes,) if notes else ())


def _reach(marks: Sequence[_Shift]) -> tuple[float, float]:
    """From where to where the axis goes: all shifts and no difference, and as much again on either side."""
    low, high = min(0.0, *(mark.shift for mark in marks)), max(0.0, *(mark.shift for mark in marks))
    beyond = _BEYOND * (high - low)
    return low - beyond, high + beyond


def _within(mark: _Shift, floor: float, ceiling: float) -> _Shift:
    """A shift with its interval limited to the axis."""
    low, high = (None if end is None else min(max(end, floor), ceiling) for end in (mark.low, mark.high))
    return replace(mark, low=low, high=high)


def _mark(quantile: float, made: Interval, divisor: float, unit: str) -> _Shift:
    low, high = (None if end is None else end / divisor for end in (made.low, made.high))
    return _Shift(100 * quantile, (made.value or 0.0) / divisor, low, high, with_unit(interval(made, divisor), unit))


def _drawing(marks: Sequence[_Shift], unit: str) -> Specification:
    x = Along("quantile, %", alt.Scale(domain=[0, 100])).x("quantile")
    y = alt.Y("shift:Q", title=f"shift, {unit}", scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=5))
    base, said = alt.Chart(inline(marks)).encode(x=x), tips("quantile:Q", "effect")
    layers = [
        alt.Chart(inline([_Zero()])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="shift:Q"),
        base.mark_area(color=PALETTE[0], opacity=0.18).encode(y=alt.Y("low:Q", title=""), y2="high:Q"),
        base.mark_line(color=PALETTE[0], strokeWidth=1.8).encode(y=y),
        base.mark_point(color=PALETTE[0], size=50, filled=True, opacity=1).encode(y=y, tooltip=said),
    ]
    return specification(layers, 240)


@dataclass(frozen=True)
class _Zero:
    shift: float = 0.0
