"""Cells' two ends, where peers took part (docs/peers.md)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from crosswind.analysis.result import End, Ends, SettingValues
from crosswind.cell.result import Finished, PeerEnd
from crosswind.text.units import format_duration

_FINE_NS = 1000
"""Clock steps shorter than any exchange over a network."""


def ends_of(finished: Iterable[Finished]) -> Ends | None:
    """A cell's ends over its repetitions; None if both were Crosswind's own."""
    known = [end.peers for end in finished if end.peers is not None]
    if not known:
        return None
    transports = {peers.verified_transport for peers in known}
    facts: Counter[str] = Counter()
    for peers in known:
        facts.update(peers.client.facts)
    return Ends(
        client=_end("client", [peers.client for peers in known]),
        server=_end("server", [peers.server for peers in known]),
        verified_transport=transports.pop() if len(transports) == 1 else None,
        facts=dict(facts),
    )


def end_conditions(finished: Sequence[Finished]) -> list[SettingValues]:
    """All cells' end programs and verified transports; none without a peer."""
    peers = [end.peers for end in finished if end.peers is not None]
    if not peers:
        return []
    natives = ["native"] if len(peers) < len(finished) else []
    clients = [*natives, *(_client_text(pair.client) for pair in peers)]
    servers = [*natives, *(_program_text(pair.server) for pair in peers)]
    verified = [pair.verified_transport or "none: the client does not know" for pair in peers]
    conditions = {"client": clients, "server": servers, "transport verified": verified}
    values = {name: list(dict.fromkeys(texts)) for name, texts in conditions.items()}
    return [SettingValues(name=name, values=texts, is_factor=len(texts) > 1) for name, texts in values.items()]


def _end(end: Literal["client", "server"], repetitions: Sequence[PeerEnd]) -> End:
    waits = [report.processor_wait_ns for report in repetitions if report.processor_wait_ns is not None]
    clock = repetitions[0].clock
    return End(
        end=end,
        name=repetitions[0].name,
        implementations=list(dict.fromkeys(report.implementation for report in repetitions if report.implementation)),
        clock=clock.name if clock else None,
        resolution_ns=clock.resolution_ns if clock else None,
        processor_wait_ns=max(waits) if len(waits) == len(repetitions) else None,
    )


def _client_text(client: PeerEnd) -> str:
    program = _program_text(client)
    if client.clock is None or client.clock.resolution_ns <= _FINE_NS or not program.endswith(")"):
        return program
    return f"{program[:-1]}, clock in steps of {format_duration(client.clock.resolution_ns)})"


def _program_text(end: PeerEnd) -> str:
    if end.name == "native" or end.implementation is None:
        return end.name
    return f"{end.name} ({end.implementation})"
