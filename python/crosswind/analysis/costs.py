"""What a message cost: bytes and packets on the wire, and processor time, a value for each repetition.

A message is one row of the samples table, so a connection, a transfer or a page in the workloads of these. On the wire
are all IP packets that a host handed to its path after the kept connection of an echo, or those of a multiplex, were
open: resent ones, acknowledgements and the ends of connections too, and their beginnings where they are new or several.
"""

from collections.abc import Callable

from crosswind.record import CellRun

OfRun = Callable[[CellRun], float | None]

_PAYLOAD = {"forward": "sent_bytes", "reverse": "received_bytes"}


def on_wire(way: str, what: str) -> OfRun:
    """`packets` or `bytes` a message, `forward` or `reverse`; None where the path does not count them."""

    def of(run: CellRun) -> float | None:
        return _each(run, _counted(run, way, what))

    return of


def overhead(way: str) -> OfRun:
    """Bytes on the wire a message, less the payload."""

    def of(run: CellRun) -> float | None:
        counted = _counted(run, way, "bytes")
        return None if counted is None else _each(run, counted - int(run.samples[_PAYLOAD[way]].sum() or 0))

    return of


def processor_time(host: str) -> OfRun:
    """Processor time of `client` or `server` a message, ns."""

    def of(run: CellRun) -> float | None:
        spent = ((run.finished or {}).get("cpu") or {}).get(f"{host}_ns")
        return _each(run, spent)

    return of


def _counted(run: CellRun, way: str, what: str) -> int | None:
    traffic = (run.finished or {}).get("traffic") or {}
    counted = (traffic.get("exchanges") or {}).get(way) or {}
    return None if counted.get(what) is None else int(counted[what])


def _each(run: CellRun, total: float | None) -> float | None:
    """By message that was sent at all; None where there is no total or no message."""
    messages = run.samples.height - run.samples["sent_ns"].null_count()
    return total / messages if total is not None and messages else None
