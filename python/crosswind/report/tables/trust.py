"""Whether to trust each cell: its ledger and its fidelity."""

from crosswind.analysis.result import CellResult, DirectionPackets, Fidelity, Ledger, Result
from crosswind.report.tables.table import Shown, Table, invalid_rows, names, numbers, words
from crosswind.report.text.format import NOT_MEASURED, NOTHING, count, levels, percent, quantity

_LEDGER_NOTE = "Each direction: packets in{copies} = delivered + dropped by {causes} + still queued."
_DELAY_NOTE = (
    "Exchanges longer by: time that CPU contention added to the mean exchange, estimated from how long threads "
    "waited for a processor and how late packets left the path."
)
_PROBE_NOTE = "Hosts waited: largest share of time that a probe thread on a host waited for a processor."


def trust_tables(result: Result) -> list[Table]:
    """Ledger and fidelity of each cell; attempts, the hosts' probes and kernel drops where there are any."""
    fidelities = [cell.fidelity for cell in result.cells if cell.fidelity]
    if result.conditions is not None and result.conditions.network is not None:
        return []  # Nothing was emulated.
    columns = [
        *names("cell", ""),
        *numbers("forward: in", "reverse: in"),
        *words("closed"),
        *numbers("late by: p50", "p99", "max"),
        *words("in budget"),
    ]
    rows = [
        [levels(cell.levels), "valid" if cell.valid else "INVALID", *_ledger(cell.ledger), *_fidelity(cell.fidelity)]
        for cell in result.cells
    ]
    extra: dict[str, list[str]] = {}
    if any(cell.attempts > cell.repetitions for cell in result.cells):
        extra["attempts"] = [count(cell.attempts) for cell in result.cells]
    if any(fidelity.probe_starvation is not None for fidelity in fidelities):
        extra["hosts waited"] = [_waited(cell) for cell in result.cells]
    if any(fidelity.exchange_delay is not None for fidelity in fidelities):
        extra["exchanges longer by"] = [_delayed(cell) for cell in result.cells]
    if any(fidelity.kernel_drops is not None for fidelity in fidelities):
        extra["kernel drops"] = [_kernel_drops(cell) for cell in result.cells]
    rows = [[*row, *(column[index] for column in extra.values())] for index, row in enumerate(rows)]
    ledgers = [cell.ledger for cell in result.cells if cell.ledger]
    causes = dict.fromkeys(cause for ledger in ledgers for cause in ledger.forward.dropped.by_cause) or {"loss": None}
    copies = " + copies that the path made of them" if any(map(_makes_copies, ledgers)) else ""
    notes = [
        _LEDGER_NOTE.format(copies=copies, causes=", ".join(causes)),
        *([_PROBE_NOTE] if "hosts waited" in extra else []),
    ]
    notes += [_DELAY_NOTE] if "exchanges longer by" in extra else []
    marked = invalid_rows(result.cells)
    return [Table("Ledger and fidelity", [*columns, *numbers(*extra)], rows, marked, notes, shown=Shown.HTML)]


def _ledger(ledger: Ledger | None) -> list[str]:
    if ledger is None:
        return [NOTHING] * 3
    return [_direction(ledger.forward), _direction(ledger.reverse), "yes" if ledger.closed else "NO"]


def _direction(direction: DirectionPackets) -> str:
    parts = (direction.delivered, *direction.dropped.by_cause.values(), direction.queued)
    entered = [direction.in_, *([direction.duplicated] if direction.duplicated else [])]
    return f"{' + '.join(map(count, entered))} = {' + '.join(map(count, parts))}"


def _makes_copies(ledger: Ledger) -> bool:
    return ledger.forward.duplicated + ledger.reverse.duplicated > 0


def _fidelity(fidelity: Fidelity | None) -> list[str]:
    if fidelity is None:
        return [NOTHING] * 4
    error = fidelity.delay_error
    late = [quantity(part, "ns") for part in (error.p50, error.p99, error.max)]
    return [*late, "yes" if fidelity.within_budget else "NO"]


def _waited(cell: CellResult) -> str:
    if cell.clock == "virtual":
        return NOT_MEASURED
    return percent(cell.fidelity.probe_starvation if cell.fidelity else None)


def _delayed(cell: CellResult) -> str:
    if cell.clock == "virtual":
        return NOT_MEASURED
    return quantity(cell.fidelity.exchange_delay if cell.fidelity else None, "ns")


def _kernel_drops(cell: CellResult) -> str:
    drops = cell.fidelity.kernel_drops if cell.fidelity else None
    return NOTHING if drops is None else count(drops)
