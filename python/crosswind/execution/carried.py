"""This machine's measured forwarding limit, packets a second on the real clock, for warnings in a plan.

It needs no measurement: a cell sending faster than its emulator forwards (`held_ns` in its fidelity) shows the limit.
The largest is kept beside the durations, for this version of Crosswind.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from crosswind.cell.check import CheckedCell
from crosswind.cell.process import CellEnd
from crosswind.execution.durations import counted, durations_file, read_learned
from crosswind.execution.observer import Observer
from crosswind.files.cache import replace_file
from crosswind.store.plan import PlannedCell
from crosswind.text.units import format_rate
from crosswind.text.version import __version__

SCHEMA = "crosswind.carried/1"
HELD_SHARE = 0.01
"""A share of the cell's time: less is an initial burst."""
FULL_PACKET_BITS = 1500 * 8
PACKETS_PER_FULL_ONE = 1.5
"""TCP acknowledges every other packet."""


@dataclass
class ForwardingLimit(Observer):
    """The largest packet rate over a session's cells."""

    packets_per_s: int = 0

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """Counts a cell if it sent faster than its emulator forwards."""
        fidelity = None if end.finished is None or planned.is_virtual else end.finished.fidelity
        if end.finished is not None and fidelity is not None:
            elapsed_ns = end.finished.elapsed_ns
            if fidelity.held_ns > HELD_SHARE * elapsed_ns:
                self.packets_per_s = max(self.packets_per_s, round(fidelity.delay_error_ns.n / elapsed_ns * 1e9))


@dataclass(frozen=True)
class Carried:
    """The largest rate, packets a second in both directions together, and its day."""

    packets_per_s: int
    day: str


def read_carried() -> Carried | None:
    """This machine's limit; None until a cell under this version has shown it."""
    file = _file()
    return None if file is None else read_learned(file, _carried)


def _carried(data: Any) -> Carried | None:
    if (data.get("schema"), data.get("version")) != (SCHEMA, __version__):
        return None
    return Carried(counted(data["packets_per_s"]), date.fromisoformat(data["day"]).isoformat())


def learn_carried(most: ForwardingLimit) -> None:
    """Keeps a session's limit, if larger than the known one and writable."""
    known, file = read_carried(), _file()
    if file is None or most.packets_per_s <= (known.packets_per_s if known else 0):
        return
    day = date.today().isoformat()
    data = {"schema": SCHEMA, "version": __version__, "packets_per_s": most.packets_per_s, "day": day}
    try:
        replace_file(file, json.dumps(data).encode())
    except OSError:
        return


def too_fast(cells: Iterable[CheckedCell], carried: Carried | None) -> Iterator[str]:
    """A sentence for each real-clock cell rate above the machine's limit."""
    if carried is None:
        return
    here = [cell for cell in cells if not cell.is_virtual and not cell.is_over_network]
    # A cell with little traffic does not need its path's full rate.
    busy = [cell for cell in here if cell.forecast.packets_per_s * 2 > carried.packets_per_s]
    rates = {effect.rate_bps or 0 for cell in busy for effect in (cell.effect.forward, cell.effect.reverse)}
    for rate in sorted(rates):
        needed = round(rate / FULL_PACKET_BITS * PACKETS_PER_FULL_ONE)
        if needed > carried.packets_per_s:
            yield (
                f"{format_rate(rate)} is {needed:,} packets/s with their acknowledgements; this machine carried "
                f"{carried.packets_per_s:,} packets/s at most (seen on {carried.day}). Packets beyond that wait in the "
                "hosts' devices, and throughput is the machine's: virtual time (--clock virtual) has no such limit"
            )


def _file() -> Path | None:
    durations = durations_file()
    return durations.with_name(f"carried-{durations.name}") if durations else None
