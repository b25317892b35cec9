"""Tries each transport to a server on another machine, by one cell with a few small exchanges."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.catalog import Carrier, catalog
from crosswind.catalog.endpoints import NETWORK
from crosswind.cell.events import CellEvent, Progress
from crosswind.cell.result import Finished
from crosswind.cell.spec import SCHEMA
from crosswind.execution.workers.worker import run_alone
from crosswind.study.design import Study
from crosswind.text.units import format_duration

TIMEOUT_NS = 3_000_000_000
"""How long an answer is waited for."""

_MESSAGES = 3
_RATE_PER_S = 20.0
_DEADLINE_NS = 60_000_000_000
_HEARTBEAT_NS = 10_000_000


@dataclass(frozen=True)
class Reached:
    """One transport's trial.

    Attributes: round_trip_ns: its exchanges' median; None without a successful one. obstacle: why, as a clause.
    """

    transport: str
    round_trip_ns: int | None
    obstacle: str = ""

    @property
    def is_blocked(self) -> bool:
        """Whether nothing gets through with it."""
        return bool(self.obstacle)

    @property
    def text(self) -> str:
        """As "reachable, 20.3 ms" or "blocked: UDP 9471 gets no answer"."""
        if self.is_blocked:
            return f"blocked: {self.obstacle}"
        return "reachable" if self.round_trip_ns is None else f"reachable, {_rounded(self.round_trip_ns)}"


def reach(server: str, transports: Iterable[str], *, binary: Path) -> Iterator[Reached]:
    """Tries transports, one after another.

    Args:   server: as `server_address` gives it.
    Raises: EngineError when the server itself cannot be reached, or refuses this machine.
    """
    return (_try(server, transport, binary) for transport in transports)


def server_of(study: Study) -> str | None:
    """The server of a study over a real network, else None."""
    servers = (cell.settings.get("path.server") for cell in study.cells())
    return next((str(server.value) for server in servers if server is not None), None)


def transports_of(study: Study) -> list[str]:
    """The study's transports, in order."""
    return list(dict.fromkeys(str(cell.workload["transport"]) for cell in study.cells()))


def _try(server: str, transport: str, binary: Path) -> Reached:
    medians: list[int] = []

    def handle_event(event: CellEvent) -> None:
        if isinstance(event, Progress) and event.median_ns is not None:
            medians.append(event.median_ns)

    finished = run_alone(_cell(server, transport), binary=binary, on_event=handle_event)
    if finished.samples.ok:
        return Reached(transport, medians[-1] if medians else None)
    return Reached(transport, None, _obstacle(transport, finished))


def _cell(server: str, transport: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "id": f"reach-{transport}",
        "path": {"backend": NETWORK, "server": server},
        "workload": {
            "kind": "echo",
            "transport": transport,
            "size_bytes": 1,
            "messages": _MESSAGES,
            # At a rate, to let a blocked transport's timeouts overlap.
            "mode": "open",
            "rate_per_s": _RATE_PER_S,
            "timeout_ns": TIMEOUT_NS,
        },
        "deadline_ns": _DEADLINE_NS,
        "heartbeat_ns": _HEARTBEAT_NS,
    }


def _obstacle(transport: str, finished: Finished) -> str:
    carrier = "TCP" if catalog().transports[transport].carrier is Carrier.TCP else "UDP"
    where = carrier if finished.network is None else f"{carrier} {finished.network.data_port}"
    outcome = finished.samples.outcomes[0]
    if outcome.outcome == "timeout":
        return f"{where} gets no answer"
    if outcome.outcome == "refused":
        return f"{where} is refused"
    return f"{where}: {outcome.first_error or outcome.outcome}"


def _rounded(time_ns: int) -> str:
    """With three digits, as "20.3 ms"."""
    text = format_duration(round(time_ns, 3 - len(str(time_ns))))
    number = text.rstrip("nums")
    return f"{number} {text[len(number) :].replace('u', 'µ')}"
