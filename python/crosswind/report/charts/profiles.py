"""Where the processor time of client and server went, as stacked bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt

from crosswind.analysis.cells import CellData
from crosswind.analysis.counters import messages_of
from crosswind.analysis.result import CellResult, Result
from crosswind.report.charts.panels import MAX_BARS, MAX_PANELS, NO_PANELS, into_panels, panel_factors, row_levels
from crosswind.report.charts.rows import row_axis, row_labels, row_name, rows_height
from crosswind.report.charts.style import PALETTE, Specification, axis, colour_of, inline, specification, tips
from crosswind.report.page import Chart, Panels
from crosswind.report.tables.profiles import hosts_of, profile_parts
from crosswind.report.text.format import count_range, percent
from crosswind.text.quantities import TIME


def profile_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """Processor time per message, a bar for client and server of each cell, divided by function group."""
    messages = {cell.cell: max(1, sum(messages_of(run) for run in cell.runs)) for cell in data}
    cells = [cell for cell in result.cells if hosts_of(cell)]
    if not cells:
        return NO_PANELS
    spent = [host.cpu_ns / messages[cell.cell] for cell in cells for host in hosts_of(cell).values()]
    divisor, unit = TIME.scale_for(spent)
    factors = panel_factors([cell.levels for cell in cells], MAX_BARS // 2)
    panels = into_panels(cells, factors)
    parts = profile_parts(result)
    charts = []
    for caption, members in panels[:MAX_PANELS]:
        levels = row_levels(members, factors)
        labels = row_labels(name for cell in members for name in _bar_names(cell, levels[cell.cell]).values())
        bars = [bar for cell in members for bar in _bars(cell, levels[cell.cell], parts, divisor * messages[cell.cell])]
        bars = [replace(bar, bar=labels[bar.bar]) for bar in bars]
        charts.append(Chart(caption, _drawing(bars, parts, unit), _notes(members)))
    return Panels(charts, len(panels))


@dataclass(frozen=True)
class _Bar:
    """A part's share of a host's bar; `order` is its place in the bar."""

    bar: str
    n: int
    part: str
    order: int
    time: float
    share: str


def _bar_names(cell: CellResult, own: Mapping[str, str]) -> dict[str, str]:
    return {host: row_name(cell, own, host) for host in hosts_of(cell)}


def _bars(cell: CellResult, own: Mapping[str, str], parts: Sequence[str], divisor: float) -> list[_Bar]:
    names, bars = _bar_names(cell, own), []
    for name, host in hosts_of(cell).items():
        total = sum(host.parts.values()) or 1
        for part, count in host.parts.items():
            if count:
                time, share = host.cpu_ns / divisor * count / total, percent(count / total)
                bars.append(_Bar(names[name], host.samples, part, parts.index(part), time, share))
    return bars


def _drawing(bars: Sequence[_Bar], parts: Sequence[str], unit: str) -> Specification:
    colours = {part: PALETTE[index % len(PALETTE)] for index, part in enumerate(parts)}
    drawing = (
        alt.Chart(inline(bars))
        .mark_bar()
        .encode(
            y=alt.Y("bar:N", title=None, sort=None, axis=row_axis()),
            x=alt.X("time:Q", title=f"processor time of a message, {unit}", axis=axis(log=False)),
            color=colour_of("part", colours, columns=4),
            order=alt.Order("order:Q"),
            tooltip=tips("bar", "part", "share", "n", "time:Q"),
        )
    )
    return specification(drawing, rows_height((bar.bar for bar in bars), frame_px=90))


def _notes(cells: Sequence[CellResult]) -> tuple[str, ...]:
    n = count_range(host.samples for cell in cells for host in hosts_of(cell).values())
    return (f"Mean processor time, divided as n = {n} samples of each host were; the table has the intervals.",)
