"""Effects as a forest plot: one line for each comparison, its interval beside the line of no effect and the margin."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt

from crosswind.analysis.result import MEAN, LevelComparison, Result, StatisticComparison
from crosswind.catalog.metrics import METRICS, Metric
from crosswind.report.charts.panels import MAX_BARS, MAX_PANELS
from crosswind.report.charts.rows import row_axis, row_labels, rows_height
from crosswind.report.charts.style import GREY, PALETTE, Along, Specification, colour_of, inline, specification, tips
from crosswind.report.page import Chart, Panels
from crosswind.report.tables.comparisons import largest
from crosswind.report.text.effects import named_level
from crosswind.report.text.format import count, interval, level_text, levels, plural_of
from crosswind.stats.estimate import Interval

_COLOURS = {
    "larger": PALETTE[1], "larger in most repetitions": PALETTE[1], "smaller": PALETTE[0],
    "smaller in most repetitions": PALETTE[0], "yes": PALETTE[2], "no": PALETTE[1],
    "equal": PALETTE[2], "no difference shown": GREY, "cannot tell": GREY,
    "worse": PALETTE[1], "better": PALETTE[2], "same": PALETTE[2],
}  # fmt: skip
_OTHER = PALETTE[3]
HOW_TO_READ = "Mark and line: ratio and its 95 % interval, if any; dashed: no difference."
_SHAPES = ("circle", "diamond", "square", "triangle-up", "cross")
_WIDEST = 1e5
"""A ratio beyond this is drawn there, for a logarithmic axis has no place for 0 and infinity."""
_CUT = "Intervals beyond the axis end at its edge."


@dataclass(frozen=True)
class ForestRow:
    """A comparison by a statistic: its effect with its interval's ends; without an interval both are the effect."""

    comparison: str
    value: float
    low: float
    high: float
    effect: str
    n: int
    verdict: str
    statistic: str


def comparison_forests(result: Result) -> Panels:
    """Ratios of levels to their factor's first one, by each statistic: a chart for each metric."""
    families: dict[str, list[LevelComparison]] = {}
    for compared in result.comparisons:
        if any(made.ratio.value for made in _effects(compared).values()):
            families.setdefault(compared.metric, []).append(compared)
    charts: list[Chart] = []
    for metric, family in list(families.items())[:MAX_PANELS]:
        chosen = largest(family, MAX_BARS)
        rows = [row for compared in chosen for row in _rows_of(compared)]
        left = len(family) - len(chosen)
        more = f"{count(left)} more are in the JSON result." if left else ""
        notes = (" ".join(filter(None, (more, "" if charts else HOW_TO_READ, cut_note(rows)))),)
        charts.append(Chart(METRICS[metric].title, ratio_forest(rows, METRICS[metric]), notes if notes[0] else ()))
    return Panels(charts, len(families))


def ratio_forest(rows: Sequence[ForestRow], metric: Metric) -> Specification:
    """A metric's ratios around 1, on a logarithmic axis."""
    statistics = list(dict.fromkeys(row.statistic for row in rows))
    of = f"ratio of {plural_of(statistics[0])}" if len(statistics) == 1 else "ratio"
    return forest(rows, f"{metric.title.lower()}, {of}", (1.0, 1.0), log=True)


def cut_note(rows: Sequence[ForestRow]) -> str:
    """The note on a forest cutting a row; else empty."""
    floor, ceiling = _reach(rows)
    return _CUT if any(min(row.value, row.low) < floor or max(row.value, row.high) > ceiling for row in rows) else ""


def _effects(compared: LevelComparison) -> dict[str, StatisticComparison]:
    return {MEAN: compared, **compared.statistics}


def _rows_of(compared: LevelComparison) -> list[ForestRow]:
    name = pair_name(compared.factor, compared.other, compared.reference, compared.fixed)
    effects = {statistic: made for statistic, made in _effects(compared).items() if made.ratio.value}
    return [forest_row(name, made.ratio, 1.0, made.verdict, statistic) for statistic, made in effects.items()]


def pair_name(factor: str, other: str, reference: str, fixed: Mapping[str, str]) -> str:
    """How a row names two levels: "http3 / http2 · delay 5ms"."""
    return f"{named_level(factor, other)} / {level_text(reference)}{f' · {levels(fixed)}' if fixed else ''}"


def forest_row(name: str, effect: Interval, divisor: float, verdict: str, statistic: str) -> ForestRow:
    """A forest's row, in the divisor's unit."""
    value = effect.value or 0.0
    low, high = effect.limits or (value, value)
    numbers = (value / divisor, low / divisor, high / divisor)
    return ForestRow(name, *numbers, interval(effect, divisor), effect.n, verdict, statistic)


def forest(rows: Sequence[ForestRow], title: str, around: tuple[float, float], *, log: bool) -> Specification:
    """Effects beside no effect. Args: around: the margin around no effect, shaded where it has a width."""
    labels = row_labels(row.comparison for row in rows)
    reach = _reach(rows) if log else (-math.inf, math.inf)
    shown = [replace(_within(row, *reach), comparison=labels[row.comparison]) for row in rows]
    verdicts = list(dict.fromkeys(row.verdict for row in shown))
    statistics = list(dict.fromkeys(row.statistic for row in shown))
    along = Along.of(title, log=log, zero=False, nice=False, padding=12)
    base = alt.Chart(inline(shown)).encode(
        y=alt.Y("comparison:N", title=None, sort=None, axis=row_axis()),
        color=colour_of("verdict", {verdict: _COLOURS.get(verdict, _OTHER) for verdict in verdicts}),
        tooltip=tips("comparison", "statistic", "effect", "n", "verdict"),
    )
    if len(statistics) > 1:
        base = base.encode(yOffset=alt.YOffset("statistic:N", sort=statistics))
    layers = [
        base.mark_rule(strokeWidth=2.2).encode(x=along.x("low"), x2="high:Q"),
        base.mark_point(size=70, filled=True, opacity=1).encode(x=along.x("value"), shape=_shapes(statistics)),
    ]
    each_px = 22 + 8 * len(statistics) if len(statistics) > 1 else 0
    height = rows_height(labels.values(), each_px=each_px)
    return specification([*_margin(around, log=log), *layers], height)


def _shapes(statistics: Sequence[str]) -> alt.Shape:
    """A shape for each statistic, with a legend where there are several."""
    shapes = alt.Scale(domain=list(statistics), range=list(_SHAPES[: len(statistics)]))
    legend = alt.Legend(title=None, orient="top", symbolFillColor=GREY, symbolStrokeWidth=0)
    return alt.Shape("statistic:N", scale=shapes, legend=legend if len(statistics) > 1 else None)


def _margin(around: tuple[float, float], *, log: bool) -> list[alt.Chart]:
    """The line of no effect, and the margin around it."""
    nothing = alt.Chart(inline([_Place(1.0 if log else 0.0)])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="at:Q")
    if around[0] == around[1]:
        return [nothing]
    band = alt.Chart(inline([_Band(*around)])).mark_rect(color=PALETTE[2], opacity=0.14).encode(x="low:Q", x2="high:Q")
    return [band, nothing]


@dataclass(frozen=True)
class _Place:
    at: float


@dataclass(frozen=True)
class _Band:
    low: float
    high: float


def _reach(rows: Sequence[ForestRow]) -> tuple[float, float]:
    """From where to where a logarithmic axis goes: all ratios, and of their intervals as much again on either side."""
    values = [min(max(row.value, 1 / _WIDEST), _WIDEST) for row in rows]
    low, high = min(1.0, *values), max(1.0, *values)
    beyond = max(2.0, high / low)
    return max(low / beyond, 1 / _WIDEST), min(high * beyond, _WIDEST)


def _within(row: ForestRow, floor: float, ceiling: float) -> ForestRow:
    """A row limited to the axis."""
    value, low, high = (min(max(end, floor), ceiling) for end in (row.value, row.low, row.high))
    return replace(row, value=value, low=low, high=high)
