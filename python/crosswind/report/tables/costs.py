"""What a message cost, each kind of cost in one table: on the wire, and of the processors."""

from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import Cell, Direction, Result
from crosswind.report.tables.tables import Table, factor_columns
from crosswind.report.text.format import NOTHING, factor_names, interval, levels, observed, percent, scale_of
from crosswind.report.text.headline import number_of

_COLUMNS = {
    "wire_bytes_forward": "bytes to server",
    "wire_bytes_reverse": "to client",
    "overhead_forward": "overhead to server",
    "overhead_reverse": "to client",
    "wire_packets_forward": "packets to server",
    "wire_packets_reverse": "to client",
    "cpu_client": "client",
    "cpu_server": "server",
}
_MESSAGE = "A message is one row of the samples: a connection, a transfer or a page in workloads of these."
_WIRE = (
    "On the wire are the IP packets that a host handed to the path, resent ones and acknowledgements too; overhead is "
    "what is beyond the payload. The set-up of the one kept connection of an echo, or of a multiplex's, is left out."
)


_DROPPED = "Of all packets that entered the path in all repetitions: by loss, queue and device together."


def drops_table(result: Result) -> Table | None:
    """Packets that the path dropped on the way to the server and to the client, where it dropped any."""
    kept = [(cell, cell.ledger) for cell in result.cells if cell.ledger]
    if not any(_lost(way) for _, ledger in kept for way in (ledger.forward, ledger.reverse)):
        return None
    factors = factor_columns([cell for cell, _ in kept])
    short = factor_names(factors)
    rows, narrow = [], []
    for cell, ledger in kept:
        said = [*_dropped(ledger.forward), *_dropped(ledger.reverse)]
        rows.append([*([cell.levels.get(key, NOTHING) for key in factors] or ["the only cell"]), *said])
        narrow.append([levels(cell.levels), said[1], said[3]])
    columns = [short[key] for key in factors] or ["cell"]
    marked = frozenset(row for row, (cell, _) in enumerate(kept) if not cell.valid)
    small = Table("Packets dropped", [" · ".join(columns), "to server", "to client"], narrow, 1, marked, [_DROPPED])
    heads = [*columns, "to server", "share", "to client", "share"]
    return Table("Packets dropped", heads, rows, len(columns), marked, [_DROPPED], small)


def overhead_table(result: Result) -> Table | None:
    """Bytes and packets a message, to and fro, where the path counted them."""
    return _table(result, "overhead", "Overhead per message", [_WIRE, _MESSAGE])


def cpu_table(result: Result) -> Table | None:
    """Processor time a message, of client and server."""
    return _table(result, "cpu", "CPU per message", ["Processor time of each host's own threads.", _MESSAGE])


def _table(result: Result, table: str, title: str, notes: list[str]) -> Table | None:
    names = [name for name, metric in METRICS.items() if metric.table == table]
    names = [name for name in _COLUMNS if name in names]
    cells = [cell for cell in result.cells if any(name in cell.estimates for name in names)]
    if not cells:
        return None
    factors = factor_columns(cells)
    short = factor_names(factors)
    unit = METRICS[names[0]].unit
    found = [_middle(cell, name) for cell in cells for name in names if METRICS[name].unit == unit]
    divisor, label = scale_of(found, unit)
    rows, narrow = [], []
    for cell in cells:
        heads = [cell.levels.get(key, NOTHING) for key in factors] or ["the only cell"]
        said = [_said(cell, name, divisor if METRICS[name].unit == unit else 1.0) for name in names]
        repetitions = number_of(max(cell.estimates[name].mean.n for name in names if name in cell.estimates))
        rows.append([*heads, repetitions, *said])
        narrow.append([levels(cell.levels), repetitions, *said[:2]])
    columns = [short[key] for key in factors] or ["cell"]
    told = [_COLUMNS[name] for name in names]
    reasons = {cell.estimates[name].mean.reason for cell in cells for name in names if name in cell.estimates}
    notes = [
        "Means over repetitions (n), with 95 % intervals by Student's t.",
        *sorted(filter(None, reasons)),
        *notes,
    ]
    title = f"{title}, {label}" if table == "cpu" else title
    marked = frozenset(row for row, cell in enumerate(cells) if not cell.valid)
    small = Table(title, [" · ".join(columns), "n", *told[:2]], narrow, 1, marked, notes)
    return Table(title, [*columns, "n", *told], rows, len(columns), marked, notes, small)


def _lost(way: Direction) -> int:
    return way.dropped.loss + way.dropped.queue + way.dropped.device


def _dropped(way: Direction) -> tuple[str, str]:
    return f"{number_of(_lost(way))} of {number_of(way.in_)}", percent(_lost(way) / way.in_) if way.in_ else NOTHING


def _middle(cell: Cell, name: str) -> float | None:
    metric = cell.estimates.get(name)
    return None if metric is None else metric.mean.value if metric.mean.value is not None else metric.smallest


def _said(cell: Cell, name: str, divisor: float) -> str:
    metric = cell.estimates.get(name)
    if metric is None:
        return NOTHING
    if metric.mean.value is None:
        return observed((metric.smallest, metric.largest), divisor)
    return interval(metric.mean, divisor)
