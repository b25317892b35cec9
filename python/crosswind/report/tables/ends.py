"""Peers: the programs at both ends of each cell, the transport found in use, and the clients' counts."""

from crosswind.analysis.result import CellResult, End, Ends, Result
from crosswind.report.tables.table import Table, cell_table, numbers, sentences, words
from crosswind.report.text.format import NOT_MEASURED, NOTHING, count, number, quantity

_TITLE = "Clients and servers"
_NOTES = (
    "Transport verified: the transport that the client saw on every connection. A peer's CPU wait is that of all its "
    "threads, in the repetition with the longest wait; the wait of Crosswind's own threads is part of the fidelity.",
)
_RETRANSMITS = "retransmits"
_RETRANSMITTED = (
    "Retransmits, as counted by the client program, beside the packets dropped in both directions: any excess was "
    "retransmitted unnecessarily."
)


def end_tables(result: Result) -> list[Table]:
    """A row for each cell with a peer."""
    cells = [cell for cell in result.cells if cell.ends is not None]
    if not cells:
        return []
    facts = list(dict.fromkeys(name for cell in cells if cell.ends for name in cell.ends.facts))
    counted = facts and _RETRANSMITS in facts
    rows = [_row(cell, cell.ends, facts) for cell in cells if cell.ends]
    columns = [
        *sentences("client", "server"),
        *words("transport verified"),
        *numbers("client waited", "server waited"),
        *numbers(*(name.replace("_", " ") for name in facts), *(["dropped"] if counted else [])),
    ]
    notes = [*_NOTES, *([_RETRANSMITTED] if counted else [])]
    return [cell_table(_TITLE, cells, (columns, rows), notes)]


def _row(cell: CellResult, ends: Ends, facts: list[str]) -> list[str]:
    counted = [_fact(ends.facts.get(name)) for name in facts]
    dropped = [_dropped(cell)] if _RETRANSMITS in facts else []
    return [
        _program(ends.client),
        _program(ends.server),
        ends.verified_transport or "no",
        _wait(ends.client),
        _wait(ends.server),
        *counted,
        *dropped,
    ]


def _fact(value: float | None) -> str:
    return count(int(value)) if value is not None and value.is_integer() else number(value)


def _program(end: End) -> str:
    return ", ".join(end.implementations) or end.name


def _wait(end: End) -> str:
    if end.name == "native":
        return NOTHING
    return NOT_MEASURED if end.processor_wait_ns is None else quantity(end.processor_wait_ns, "ns")


def _dropped(cell: CellResult) -> str:
    if cell.ledger is None:
        return NOTHING
    return count(cell.ledger.forward.dropped.total + cell.ledger.reverse.dropped.total)
