"""Where the processor time of client and server went: stacked bars, and a table of shares with their intervals."""

from typing import Any

import altair as alt

from crosswind.analysis import CellData
from crosswind.analysis.result import Cell, HostProfile, Result
from crosswind.report.charts.charts import PALETTE, PANELS, Chart, Panels, spec_of
from crosswind.report.charts.intervals import ROWS, parted, parted_by
from crosswind.report.tables.tables import Table
from crosswind.report.text.format import levels, percent, scale_of
from crosswind.report.text.headline import number_of
from crosswind.stats import clopper_pearson

HOSTS = ("client", "server")


def profile_table(result: Result) -> Table | None:
    """The share of each part in the samples of each host, with its interval."""
    parts = _parts(result)
    if not parts:
        return None
    rows: list[list[str]] = []
    marked: list[int] = []
    for cell in result.cells:
        for name, host in _hosts(cell):
            if not cell.valid:
                marked.append(len(rows))
            rows.append([levels(cell.levels), name, number_of(host.samples), *(_share(host, part) for part in parts)])
    notes = [
        "Shares of the samples (n) of a host's threads, over all repetitions, with exact binomial 95 % intervals "
        "(Clopper-Pearson), as if samples were independent of each other."
    ]
    columns = ["cell", "host", "n", *parts]
    return Table("Where processor time goes", columns, rows, 2, frozenset(marked), notes)


def profile_charts(result: Result, data: list[CellData]) -> Panels:
    """Processor time of a message, a bar for client and server of each cell, parted by what it was spent on."""
    by_cell = {one.cell: one for one in data}
    cells = [cell for cell in result.cells if cell.profile is not None]
    spent = {(cell.cell, name): _each_ns(by_cell[cell.cell], host) for cell in cells for name, host in _hosts(cell)}
    if not spent:
        return Panels([], 0)
    divisor, unit = scale_of(list(spent.values()), "ns")
    parting = parted_by([cell.levels for cell in cells], ROWS // 2)
    panels = parted(cells, parting)
    parts = _parts(result)
    charts = []
    for panel, members in panels[:PANELS]:
        rows: list[dict[str, Any]] = []
        for cell in members:
            short = levels({key: of for key, of in cell.levels.items() if key not in parting})
            for name, host in _hosts(cell):
                head = {"bar": f"{short} · {name}" + ("" if cell.valid else " ✗"), "n": host.samples}
                time = spent[cell.cell, name] / divisor
                rows += [{**head, **row} for row in _bars(host, parts, time)]
        bars = len({row["bar"] for row in rows})
        charts.append(Chart(panel, _drawing(rows, parts, unit, bars), _notes(members)))
    return Panels(charts, len(panels))


def _bars(host: HostProfile, parts: list[str], time: float) -> list[dict[str, Any]]:
    total = sum(host.parts.values()) or 1
    return [
        {"part": part, "order": parts.index(part), "time": time * count / total, "share": percent(count / total)}
        for part, count in host.parts.items()
        if count
    ]


def _drawing(rows: list[dict[str, Any]], parts: list[str], unit: str, bars: int) -> dict[str, Any]:
    colours = alt.Scale(domain=parts, range=[PALETTE[index % len(PALETTE)] for index in range(len(parts))])
    drawing = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            y=alt.Y("bar:N", title=None, sort=None, axis=alt.Axis(labelLimit=230, grid=False)),
            x=alt.X("time:Q", title=f"processor time of a message, {unit}", axis=alt.Axis(tickCount=6)),
            color=alt.Color("part:N", scale=colours, legend=alt.Legend(title=None, orient="top", columns=4)),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("bar", "part", "share", "n")] + [alt.Tooltip("time:Q")],
        )
    )
    return spec_of(drawing, 90 + 20 * bars)


def _notes(cells: list[Cell]) -> tuple[str, ...]:
    counts = sorted({host.samples for cell in cells for _, host in _hosts(cell)})
    n = number_of(counts[0]) + (f" to {number_of(counts[-1])}" if len(counts) > 1 else "")
    return (f"Mean processor time, parted as n = {n} samples of each host were; the table has the intervals.",)


def _hosts(cell: Cell) -> list[tuple[str, HostProfile]]:
    found = cell.profile
    return [] if found is None else [(name, host) for name in HOSTS if (host := getattr(found, name)).samples]


def _parts(result: Result) -> list[str]:
    """The parts in the order in which cells name them."""
    return list(dict.fromkeys(part for cell in result.cells for _, host in _hosts(cell) for part in host.parts))


def _share(host: HostProfile, part: str) -> str:
    count = host.parts.get(part, 0)
    share = clopper_pearson(count, host.samples)
    return f"{percent(share.value)} [{percent(share.low)}, {percent(share.high)}]"


def _each_ns(one: CellData, host: HostProfile) -> float:
    messages = sum(run.samples.height - run.samples["sent_ns"].null_count() for run in one.runs)
    return host.cpu_ns / max(1, messages)
