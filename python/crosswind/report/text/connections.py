"""The connections' time breakdown, in sentences."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from crosswind.catalog import catalog
from crosswind.catalog.explained import Connection
from crosswind.report.text.changed import changed_text
from crosswind.report.text.format import count, count_of, levels, listed, percent, quantity

MOST = 3
"""Maximum things named in one sentence."""
_ENOUGH = 0.8
"""Share of a time at which a sentence stops naming causes."""
_SMALL = 0.01
"""Share of the whole below which a cause is not named."""
_FEW_TRIPS = 2
"""Round trips up to which a program's own waits explain them."""

_OF_BYTES = (
    "congestion_window",
    "slow_start_after_idle",
    "reduced_window",
    "reordering",
    "receive_window",
    "stream_window",
    "connection_window",
    "send_buffer",
)


def connection_sentence(connection: Connection) -> str:
    """One sentence on where its time went, with its name."""
    place = f"{levels(connection.levels)} · " if connection.levels else ""
    parts: Counter[str] = Counter()
    for part in connection.parts:
        parts[part.part] += part.time_ns
    without = changed_text(connection.whole_ns, parts, connection.changed)
    spent = f"{spent_text([connection])}{f'; {without}' if without else ''}"
    return f"{place}{connection_name(connection)}: {spent}{_ended(connection)}"


def connection_name(connection: Connection) -> str:
    """Its name: "tcp to port 80"."""
    port, to = (
        (connection.server_port, "") if connection.opened_by == "client" else (connection.client_port, " of the client")
    )
    return f"{connection.protocol} to port {port}{to}"


def spent_text(connections: Sequence[Connection]) -> str:
    """Some connections' time: "91 % of 12.4 s waited for the receiver's window of 65 535 bytes"."""
    whole = sum(connection.whole_ns for connection in connections)
    if whole == 0:
        packets = sum(connection.packets_forward + connection.packets_reverse for connection in connections)
        return f"{count_of(packets, 'packet')} at one time"
    shares: dict[str, int] = {}
    for connection in connections:
        for part in connection.parts:
            kind = _kind(part.part)
            shares[kind] = shares.get(kind, 0) + part.time_ns
    ordered = sorted(shares.items(), key=lambda share: -share[1])
    named: list[str] = []
    told = 0
    for kind, time_ns in ordered:
        if named and (time_ns < _SMALL * whole or told >= _ENOUGH * whole or len(named) == MOST):
            break
        words = next(part.of_connections for name, part in catalog().parts.items() if _kind(name) == kind)
        of_whole = "" if named else f" of {quantity(whole, 'ns')}"
        named.append(f"{percent(time_ns / whole)}{of_whole} {words}{_more(kind, connections)}")
        told += time_ns
    return listed(named, MOST)


def _kind(part: str) -> str:
    """A part, but for the directions of propagation, which are told as one."""
    return "propagation" if part.startswith("propagation") else part


def _more(kind: str, connections: Iterable[Connection]) -> str:
    if kind == "propagation":
        turning = [connection for connection in connections if connection.turns]
        if not turning:
            return ""
        trips = sum((connection.turns + 1) / 2 for connection in turning)
        what = "1 round trip" if trips == 1 else f"{trips:g} round trips"
        if any(connection.protocol == "udp" for connection in turning):
            # QUIC's windows wait for acknowledgements, readable only by its ends.
            return f": {what} in which one end waited for the other, for data or for acknowledgements"
        rounds = [
            part.window_bytes
            for connection in connections
            for part in connection.parts
            if _kind(part.part) == kind and part.window_bytes
        ]
        size = f", after every {count(max(rounds))} bytes: a window or a request size of the program" if rounds else ""
        # Nagle's algorithm releases what was written when an acknowledgement comes, which the other's data carry too.
        is_like_nagle = trips > _FEW_TRIPS and any(connection.is_inferred for connection in turning)
        nagle = " (or TCP for an acknowledgement, by Nagle's algorithm: virtual time tells them apart)"
        return f": {what} in which a program waited for the other{nagle if is_like_nagle else ''}{size}"
    parts = [part for connection in connections for part in connection.parts if part.part == kind]
    sizes = [part.window_bytes for part in parts if part.window_bytes]
    if kind in _OF_BYTES and sizes:
        times = sum(part.times or 0 for part in parts)
        return f" of {'at most ' if times > 1 else ''}{count(max(sizes))} bytes, {count_of(times, 'time')}"
    names = dict.fromkeys(part.waited_for for part in parts if part.waited_for)
    return f" ({listed(list(names), MOST)})" if names else ""


def _ended(connection: Connection) -> str:
    said = list(_notes(connection))
    return f" ({', '.join(said)})" if said else ""


def _notes(connection: Connection) -> Iterator[str]:
    if connection.beginning == "refused":
        yield "refused"
    elif connection.beginning == "unanswered":
        yield "never answered"
    elif connection.beginning == "before":
        yield "begun before its first known packet"
    if connection.is_cut_off:
        yield "cut off: of later packets nothing was kept"
    again = connection.again_forward + connection.again_reverse
    lost = connection.lost_forward + connection.lost_reverse
    if lost:
        yield f"{count_of(lost, 'packet')} lost"
    if again:
        yield f"{count_of(again, 'packet' if connection.protocol == 'quic' else 'segment')} sent again"
