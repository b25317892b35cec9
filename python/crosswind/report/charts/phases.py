"""How long the phases of setting a connection up take, stacked: transport, security, upgrade, and its exchange."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.analysis import CellData
from crosswind.analysis.result import CellResult, Result
from crosswind.metrics import TIME
from crosswind.metrics import phases_of as phases_of_metric
from crosswind.report.charts.panels import (
    MAX_BARS,
    MAX_PANELS,
    NO_PANELS,
    Chart,
    Panels,
    into_panels,
    panel_factors,
    row_levels,
)
from crosswind.report.charts.style import PALETTE, Specification, inline, specification
from crosswind.report.text.format import count_range, levels

_EXCHANGE = "Exchange"


@dataclass(frozen=True)
class Phase:
    """A phase of a cell's connections: its mean, ns, and how many connections that is of."""

    title: str
    mean_ns: float
    n: int


def phase_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar for each cell that opens a connection for every exchange, of the means of its phases.

    Connections alone, or a connection and the exchange on it. More than MAX_BARS cells are divided into panels of one
    scale.
    """
    by_cell = {cell.cell: cell for cell in data}
    phases = {cell.cell: phases_of(by_cell[cell.cell]) for cell in result.cells}
    cells = [cell for cell in result.cells if phases[cell.cell]]
    if not cells:
        return NO_PANELS
    totals = [sum(phase.mean_ns for phase in phases[cell.cell]) for cell in cells]
    divisor, unit = TIME.scale_for(totals)
    factors = panel_factors([cell.levels for cell in cells], MAX_BARS)
    panels = into_panels(cells, factors)
    scale = alt.Scale(domain=[0, max(totals) / divisor], nice=True)
    charts = []
    for caption, members in panels[:MAX_PANELS]:
        own = row_levels(members, factors)
        bars = [bar for cell in members for bar in _bars(cell, levels(own[cell.cell]), phases[cell.cell], divisor)]
        charts.append(Chart(caption, _drawing(bars, f"mean, {unit}", scale, len(members)), _notes(bars)))
    return Panels(charts, len(panels))


def phases_of(cell: CellData) -> list[Phase]:
    """The phases that a cell's connections have; none where they are not known or connections are kept."""
    kind = cell.settings.kind
    if kind not in ("connect", "echo") or not cell.settings.opens_for_each:
        return []
    wanted = {metric.title: metric.name for metric in phases_of_metric("connect")}
    found = [(title, cell.samples[name].values) for title, name in wanted.items() if name in cell.samples]
    if found and kind == "echo" and "rtt" in cell.samples:
        found.append((_EXCHANGE, cell.samples["rtt"].values))
    return [Phase(title, float(values.mean()), int(values.size)) for title, values in found]


def _titles() -> list[str]:
    return [*(metric.title for metric in phases_of_metric("connect")), _EXCHANGE]


_LONG_NAME = 24


@dataclass(frozen=True)
class _Bar:
    """The part of a cell's bar that a phase takes; `order` is its place in the bar."""

    cell: str
    phase: str
    order: int
    mean: float
    n: int


def _bars(cell: CellResult, cell_name: str, phases: Sequence[Phase], divisor: float) -> list[_Bar]:
    name = cell_name + ("" if cell.valid else " ✗")
    order = {title: index for index, title in enumerate(_titles())}
    return [_Bar(name, phase.title, order[phase.title], phase.mean_ns / divisor, phase.n) for phase in phases]


def _drawing(bars: Sequence[_Bar], title: str, scale: alt.Scale, cells: int) -> Specification:
    shown = {bar.phase for bar in bars}
    colours = {phase: colour for phase, colour in zip(_titles(), PALETTE, strict=False) if phase in shown}
    colour_scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    # Beside long names a narrow page has room for one entry of the legend.
    columns = 1 if max(len(bar.cell) for bar in bars) > _LONG_NAME else 2
    drawing = (
        alt.Chart(inline(bars))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=None, axis=alt.Axis(labelLimit=230, grid=False)),
            x=alt.X("mean:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6)),
            color=alt.Color(
                "phase:N", scale=colour_scale, legend=alt.Legend(title=None, orient="top", columns=columns)
            ),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("cell:N"), alt.Tooltip("phase:N"), alt.Tooltip("mean:Q"), alt.Tooltip("n:Q")],
        )
    )
    return specification(drawing, 70 + 22 * cells)


def _notes(bars: Sequence[_Bar]) -> tuple[str, ...]:
    n = count_range(bar.n for bar in bars)
    return (f"Means of n = {n} connections a cell; the tables have their intervals. QUIC has no TCP handshake.",)
