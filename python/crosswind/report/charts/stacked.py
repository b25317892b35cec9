"""Stacked bars: each cell's time by phases of a connection, or by its breakdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult, Result
from crosswind.catalog.metrics import phases_of
from crosswind.catalog.spent import GROUPS
from crosswind.report.charts.panels import MAX_BARS, MAX_PANELS, NO_PANELS, into_panels, row_levels, separating
from crosswind.report.charts.rows import row_axis, row_labels, row_name, rows_height
from crosswind.report.charts.style import (
    GREY,
    LOG_SPREAD,
    PALETTE,
    Along,
    Specification,
    colour_of,
    inline,
    specification,
    tips,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import NOTHING, count_range, interval
from crosswind.text.quantities import TIME


@dataclass(frozen=True)
class Stratum:
    """A part of a cell's bar: its title, its metric, the mean, ns, and the number of values."""

    title: str
    metric: str
    mean_ns: float
    n: int


@dataclass(frozen=True)
class BarKind:
    """A kind of stacked bars.

    Attributes: colours: by title, in order. note: the text below, with `{n}` for a cell's values.
    """

    colours: Mapping[str, str]
    note: str


def stacked(cells: Sequence[CellResult], strata: Mapping[int, Sequence[Stratum]], kind: BarKind) -> Panels:
    """A bar for each cell with strata.

    Many cells, or cells with very different times, are divided into panels; these share one scale if their times allow
    it.
    """
    cells = [cell for cell in cells if strata.get(cell.cell)]
    totals = {cell.cell: sum(part.mean_ns for part in strata[cell.cell]) for cell in cells}
    if not any(totals.values()):
        return NO_PANELS
    factors = separating(cells, totals, MAX_BARS)
    panels = into_panels(cells, factors)
    longest = [max(totals[cell.cell] for cell in members) for _, members in panels]
    share_scale = max(longest) <= LOG_SPREAD * min(longest)
    charts = []
    for (caption, members), own_longest in list(zip(panels, longest, strict=True))[:MAX_PANELS]:
        end = max(longest) if share_scale else own_longest
        charts.append(_chart(caption, members, row_levels(members, factors), strata=strata, kind=kind, end_ns=end))
    return Panels(charts, len(panels))


def _chart(
    caption: str,
    cells: Sequence[CellResult],
    own: Mapping[int, Mapping[str, str]],
    *,
    strata: Mapping[int, Sequence[Stratum]],
    kind: BarKind,
    end_ns: float,
) -> Chart:
    """One panel. Args: own: each cell's naming levels. end_ns: the axis's end."""
    divisor, unit = TIME.scale_for([end_ns])
    names = {cell.cell: row_name(cell, own[cell.cell]) for cell in cells}
    labels = row_labels(names.values())
    order = {title: index for index, title in enumerate(kind.colours)}
    bars = [
        _Bar(
            labels[names[cell.cell]],
            part.title,
            order[part.title],
            part.mean_ns / divisor,
            _mean(cell, part, divisor),
            part.n,
        )
        for cell in cells
        for part in strata[cell.cell]
    ]
    scale = alt.Scale(domain=[0, end_ns / divisor], nice=True)
    return Chart(
        caption,
        _drawing(bars, kind.colours, f"mean, {unit}", scale),
        (kind.note.format(n=count_range(bar.n for bar in bars)),),
    )


@dataclass(frozen=True)
class _Bar:
    """A part of a cell's bar; `order` is its place in the bar."""

    cell: str
    part: str
    order: int
    mean: float
    estimate: str
    n: int


def _mean(cell: CellResult, part: Stratum, divisor: float) -> str:
    estimates = cell.estimates.get(part.metric)
    return NOTHING if estimates is None else interval(estimates.mean, divisor)


def _drawing(bars: Sequence[_Bar], colours: Mapping[str, str], title: str, scale: alt.Scale) -> Specification:
    shown = {bar.part for bar in bars}
    colour = colour_of("part", {part: colour for part, colour in colours.items() if part in shown})
    drawing = (
        alt.Chart(inline(bars))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=None, axis=row_axis()),
            x=Along(title, scale).x("mean"),
            color=colour,
            order=alt.Order("order:Q"),
            tooltip=tips("cell", "part", "estimate", "n"),
        )
    )
    return specification(drawing, rows_height(bar.cell for bar in bars))


_EXCHANGE = "Exchange"


def phase_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar with its phases' means for each cell opening a connection for every exchange.

    Connections alone, or a connection and the exchange on it.
    """
    titles = [*(metric.title for metric in phases_of("connect")), _EXCHANGE]
    note = "Means of n = {n} connections a cell; the tables have their intervals. QUIC has no TCP handshake."
    kind = BarKind(dict(zip(titles, PALETTE, strict=False)), note)
    return stacked(result.cells, {cell.cell: cell_phases(cell) for cell in data}, kind)


def cell_phases(cell: CellData) -> list[Stratum]:
    """A cell's connection phases; none if unknown, or for kept connections."""
    kind = cell.settings.kind
    if kind not in ("connect", "echo") or not cell.settings.opens_for_each:
        return []
    wanted = {metric.title: metric.name for metric in phases_of("connect")}
    phases = [(title, name) for title, name in wanted.items() if name in cell.samples]
    if phases and kind == "echo":
        phases += [(_EXCHANGE, name) for name in ("rtt", "exchange_time") if name in cell.samples]
    samples = ((title, name, cell.samples[name].values) for title, name in phases)
    return [Stratum(title, name, float(values.mean()), int(values.size)) for title, name, values in samples]


_COLOURED = [colour for colour in PALETTE if colour != "#7F7F7F"]
"""Grey stands for unknown."""
COLOURS = {group.title: colour for group, colour in zip(GROUPS[:-1], _COLOURED, strict=False)}
COLOURS |= {GROUPS[-1].title: GREY}
_NOTE = "Means of n = {n} exchanges a cell; the table has their intervals."


def spent_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar with its groups' means for each cell with a breakdown; invisible ones are left out."""
    return stacked(result.cells, {cell.cell: _strata(cell) for cell in data}, BarKind(COLOURS, _NOTE))


def _strata(cell: CellData) -> list[Stratum]:
    known = [(group, cell.samples[group.metric].values) for group in GROUPS if group.metric in cell.samples]
    return [
        Stratum(group.title, group.metric, float(values.mean()), int(values.size))
        for group, values in known
        if values.any()
    ]
