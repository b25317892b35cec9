"""How long the phases of setting a connection up take, stacked: transport, security, upgrade, and its exchange."""

from typing import Any

import altair as alt

from crosswind.analysis import CellData
from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Cell, Result
from crosswind.report.charts.charts import PALETTE, PANELS, Chart, Panels, spec_of
from crosswind.report.charts.intervals import ROWS, parted, parted_by
from crosswind.report.tables.tables import PHASES
from crosswind.report.text.format import levels, scale_of
from crosswind.report.text.headline import number_of

EXCHANGE = "Exchange"
_COLOURS = dict(zip((*(METRICS[name].title for name in PHASES), EXCHANGE), PALETTE[:4], strict=True))


def phase_charts(result: Result, data: list[CellData]) -> Panels:
    """A bar for each cell that opens a connection for every exchange, of the means of its phases.

    Connections alone, or a connection and the exchange on it. More than ROWS cells are parted into panels of one scale.
    """
    by_cell = {one.cell: one for one in data}
    cells = [cell for cell in result.cells if _opens_each(by_cell[cell.cell])]
    spans = {cell.cell: phases_of(by_cell[cell.cell]) for cell in cells}
    cells = [cell for cell in cells if spans[cell.cell]]
    if not cells:
        return Panels([], 0)
    totals = [sum(mean for _, mean, _ in spans[cell.cell]) for cell in cells]
    divisor, unit = scale_of(totals, "ns")
    parting = parted_by([cell.levels for cell in cells], ROWS)
    panels = parted(cells, parting)
    scale = alt.Scale(domain=[0, max(totals) / divisor], nice=True)
    charts = []
    for panel, members in panels[:PANELS]:
        rows = [row for cell in members for row in _rows(cell, spans[cell.cell], parting, divisor)]
        charts.append(Chart(panel, _drawing(rows, f"mean, {unit}", scale, len(members)), _notes(rows)))
    return Panels(charts, len(panels))


def phases_of(one: CellData) -> list[tuple[str, float, int]]:
    """Phase, mean in ns and n of each phase that a cell's connections have; empty where none is known."""
    found = [(METRICS[name].title, one.samples[name].values) for name in PHASES if name in one.samples]
    if found and one.workload.get("kind") == "echo" and "rtt" in one.samples:
        found.append((EXCHANGE, one.samples["rtt"].values))
    return [(title, float(values.mean()), int(values.size)) for title, values in found]


def _opens_each(one: CellData) -> bool:
    work = one.workload
    return work.get("kind") == "connect" or (work.get("kind") == "echo" and work.get("connection") == "new")


def _rows(
    cell: Cell, spans: list[tuple[str, float, int]], parting: tuple[str, ...], divisor: float
) -> list[dict[str, Any]]:
    name = levels({key: of for key, of in cell.levels.items() if key not in parting}) + ("" if cell.valid else " ✗")
    return [
        {"cell": name, "phase": phase, "order": list(_COLOURS).index(phase), "mean": mean / divisor, "n": n}
        for phase, mean, n in spans
    ]


def _drawing(rows: list[dict[str, Any]], title: str, scale: alt.Scale, count: int) -> dict[str, Any]:
    shown = [phase for phase in _COLOURS if any(row["phase"] == phase for row in rows)]
    colours = alt.Scale(domain=shown, range=[_COLOURS[phase] for phase in shown])
    drawing = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            y=alt.Y("cell:N", title=None, sort=None, axis=alt.Axis(labelLimit=190, grid=False)),
            x=alt.X("mean:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6)),
            color=alt.Color("phase:N", scale=colours, legend=alt.Legend(title=None, orient="top", columns=2)),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("cell:N"), alt.Tooltip("phase:N"), alt.Tooltip("mean:Q"), alt.Tooltip("n:Q")],
        )
    )
    return spec_of(drawing, 70 + 22 * count)


def _notes(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    counts = sorted({row["n"] for row in rows})
    n = number_of(counts[0]) + (f" to {number_of(counts[-1])}" if len(counts) > 1 else "")
    return (f"Means of n = {n} connections a cell; the tables have their intervals. QUIC has no TCP handshake.",)
