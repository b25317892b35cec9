"""How long the phases of setting a connection up take, stacked: transport, security, upgrade, and its exchange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from crosswind.analysis import CellData
from crosswind.analysis.result import CellResult, Result
from crosswind.metrics import phases_of as phases_of_metric
from crosswind.quantities import TIME
from crosswind.report.charts.panels import MAX_BARS, MAX_PANELS, NO_PANELS, into_panels, row_levels, separating
from crosswind.report.charts.rows import row_axis, row_labels, row_name, rows_height
from crosswind.report.charts.style import LOG_SPREAD, PALETTE, Specification, axis, inline, specification
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import NOTHING, count_range, interval

_EXCHANGE = "Exchange"


@dataclass(frozen=True)
class Phase:
    """A phase of a cell's connections: its metric, its mean, ns, and how many connections that is of."""

    title: str
    metric: str
    mean_ns: float
    n: int


def phase_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar for each cell that opens a connection for every exchange, of the means of its phases.

    Connections alone, or a connection and the exchange on it. Cells that are many, or whose times are far apart, are
    divided into panels; these have one scale where their times allow it.
    """
    by_cell = {cell.cell: cell for cell in data}
    phases = {cell.cell: phases_of(by_cell[cell.cell]) for cell in result.cells}
    cells = [cell for cell in result.cells if phases[cell.cell]]
    if not cells:
        return NO_PANELS
    totals = {cell.cell: sum(phase.mean_ns for phase in phases[cell.cell]) for cell in cells}
    factors = separating(cells, totals, MAX_BARS)
    panels = into_panels(cells, factors)
    longest = [max(totals[cell.cell] for cell in members) for _, members in panels]
    share_scale = max(longest) <= LOG_SPREAD * min(longest)
    charts = []
    for (caption, members), own_longest in list(zip(panels, longest, strict=True))[:MAX_PANELS]:
        end = max(longest) if share_scale else own_longest
        charts.append(_chart(caption, members, row_levels(members, factors), phases, end))
    return Panels(charts, len(panels))


def _chart(
    caption: str,
    cells: Sequence[CellResult],
    own: Mapping[int, Mapping[str, str]],
    phases: Mapping[int, Sequence[Phase]],
    end_ns: float,
) -> Chart:
    """One panel. Args: own: the levels that name each cell. end_ns: where its axis ends."""
    divisor, unit = TIME.scale_for([end_ns])
    names = {cell.cell: row_name(cell, own[cell.cell]) for cell in cells}
    labels = row_labels(names.values())
    bars = [bar for cell in cells for bar in _bars(cell, labels[names[cell.cell]], phases[cell.cell], divisor)]
    scale = alt.Scale(domain=[0, end_ns / divisor], nice=True)
    return Chart(caption, _drawing(bars, f"mean, {unit}", scale), _notes(bars))


def phases_of(cell: CellData) -> list[Phase]:
    """The phases that a cell's connections have; none where they are not known or connections are kept."""
    kind = cell.settings.kind
    if kind not in ("connect", "echo") or not cell.settings.opens_for_each:
        return []
    wanted = {metric.title: metric.name for metric in phases_of_metric("connect")}
    phases = [(title, name) for title, name in wanted.items() if name in cell.samples]
    if phases and kind == "echo":
        phases += [(_EXCHANGE, name) for name in ("rtt", "exchange_time") if name in cell.samples]
    samples = ((title, name, cell.samples[name].values) for title, name in phases)
    return [Phase(title, name, float(values.mean()), int(values.size)) for title, name, values in samples]


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
    estimate: str
    n: int


def _bars(cell: CellResult, label: str, phases: Sequence[Phase], divisor: float) -> list[_Bar]:
    order = {title: index for index, title in enumerate(_titles())}
    bars = []
    for phase in phases:
        estimates = cell.estimates.get(phase.metric)
        mean = NOTHING if estimates is None else interval(estimates.mean, divisor)
        bars.append(_Bar(label, phase.title, order[phase.title], phase.mean_ns / divisor, mean, phase.n))
    return bars


def _drawing(bars: Sequence[_Bar], title: str, scale: alt.Scale) -> Specification:
    shown = {bar.phase for bar in bars}
    colours = {phase: colour for phase, colour in zip(_titles(), PALETTE, strict=False) if phase in shown}
    colour_scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    # Beside long names a narrow page has room for one entry of the legend.
    columns = 1 if max(len(bar.cell) for bar in bars) > _LONG_NAME else 2
    drawing = (
        alt.Chart(inline(bars))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=None, axis=row_axis()),
            x=alt.X("mean:Q", title=title, scale=scale, axis=axis(log=False)),
            color=alt.Color(
                "phase:N", scale=colour_scale, legend=alt.Legend(title=None, orient="top", columns=columns)
            ),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("cell", "phase", "estimate", "n")],
        )
    )
    return specification(drawing, rows_height(bar.cell for bar in bars))


def _notes(bars: Sequence[_Bar]) -> tuple[str, ...]:
    n = count_range(bar.n for bar in bars)
    return (f"Means of n = {n} connections a cell; the tables have their intervals. QUIC has no TCP handshake.",)
