"""How long the phases of setting a connection up take, stacked: transport, security, upgrade, and its exchange."""

from collections.abc import Sequence

from crosswind.analysis import CellData
from crosswind.analysis.result import Result
from crosswind.metrics import phases_of
from crosswind.report.charts.stacked import BarKind, Stratum, stacked
from crosswind.report.charts.style import PALETTE
from crosswind.report.page import Panels

_EXCHANGE = "Exchange"


def phase_charts(result: Result, data: Sequence[CellData]) -> Panels:
    """A bar for each cell that opens a connection for every exchange, of the means of its phases.

    Connections alone, or a connection and the exchange on it.
    """
    titles = [*(metric.title for metric in phases_of("connect")), _EXCHANGE]
    note = "Means of n = {n} connections a cell; the tables have their intervals. QUIC has no TCP handshake."
    kind = BarKind(dict(zip(titles, PALETTE, strict=False)), note)
    return stacked(result.cells, {cell.cell: cell_phases(cell) for cell in data}, kind)


def cell_phases(cell: CellData) -> list[Stratum]:
    """The phases that a cell's connections have; none where they are not known or connections are kept."""
    kind = cell.settings.kind
    if kind not in ("connect", "echo") or not cell.settings.opens_for_each:
        return []
    wanted = {metric.title: metric.name for metric in phases_of("connect")}
    phases = [(title, name) for title, name in wanted.items() if name in cell.samples]
    if phases and kind == "echo":
        phases += [(_EXCHANGE, name) for name in ("rtt", "exchange_time") if name in cell.samples]
    samples = ((title, name, cell.samples[name].values) for title, name in phases)
    return [Stratum(title, name, float(values.mean()), int(values.size)) for title, name, values in samples]
