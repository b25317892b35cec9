"""TCP's retransmissions over a real network, in place of the uncounted loss."""

from crosswind.analysis.result import Result, Retransmitted
from crosswind.report.tables.table import Table, cell_table, numbers
from crosswind.report.text.format import NOTHING, count, percent_interval, quantity

_TITLE = "Loss inferred from TCP's retransmissions"
_HELP = (
    "Share of the TCP segments of each end that its kernel retransmitted, with 95 % intervals over repetitions "
    "(Clopper-Pearson, of the effective number of segments). This is not the number of drops: late segments are "
    "retransmitted too, and lost acknowledgements are not. Round trip: the shortest seen by the end's kernel."
)


def retransmission_tables(result: Result) -> list[Table]:
    """A row for each cell with TCP connections; none where nothing ran over a real network."""
    cells = [cell for cell in result.cells if cell.retransmitted]
    if not cells:
        return []
    ends = [(cell.retransmitted.get("forward"), cell.retransmitted.get("reverse")) for cell in cells]
    heads = ("to server", "share", "round trip", "to client", "share", "round trip")
    form = (numbers(*heads), [[*_row(there), *_row(back)] for there, back in ends])
    small = (numbers("to server", "to client"), [[_share(there), _share(back)] for there, back in ends])
    return [cell_table(_TITLE, cells, form, [_HELP], narrow=[small])]


_TIMES = "Where TCP's time went"
_TIMES_HELP = (
    "For how long each end had something in flight or to be sent, over all connections, and the shares of that in "
    "which the receiver's window or a full send buffer held it back, as its kernel counts them (TCP_INFO). The rest is "
    "the path and the congestion window, which a kernel does not tell apart."
)


def time_tables(result: Result) -> list[Table]:
    """Where the time of TCP connections went over a real network, where kernels were asked."""
    cells = [cell for cell in result.cells if any(end.busy_ns for end in (cell.retransmitted or {}).values())]
    if not cells:
        return []
    rows = [[*_times(cell.retransmitted.get("forward")), *_times(cell.retransmitted.get("reverse"))] for cell in cells]
    heads = ("to server, busy", "window", "buffer", "to client, busy", "window", "buffer")
    return [cell_table(_TIMES, cells, (numbers(*heads), rows), [_TIMES_HELP])]


def _times(end: Retransmitted | None) -> list[str]:
    if end is None or not end.busy_ns:
        return [NOTHING] * 3
    shares = (end.receive_window_share, end.send_buffer_share)
    return [quantity(end.busy_ns, "ns"), *(f"{share:.1%}".replace("%", " %") for share in shares)]


def _row(end: Retransmitted | None) -> list[str]:
    if end is None:
        return [NOTHING] * 3
    counted = f"{count(end.retransmitted)} of {count(end.segments)}"
    return [counted, _share(end), quantity(end.shortest_round_trip_ns, "ns")]


def _share(end: Retransmitted | None) -> str:
    return NOTHING if end is None or end.share is None else percent_interval(end.share)
