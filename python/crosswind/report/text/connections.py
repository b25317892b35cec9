"""Where the time of connections went, in sentences."""

from collections.abc import Iterable, Iterator, Sequence

from crosswind.catalog.explained import Connection
from crosswind.report.text.format import count, count_of, levels, listed, percent, quantity

MOST = 3
"""Things that one sentence names."""
_ENOUGH = 0.8
"""The share of a time after which a sentence stops naming what it was spent on."""
_SMALL = 0.01
"""Of the whole, what is less is not named."""

_WENT = {
    "tcp_handshake": "was TCP's handshake",
    "security_handshake": "was QUIC's handshake",
    "closing": "was closing",
    "client_host": "was spent by the client's program",
    "server_host": "was spent by the server's program",
    "propagation": "was in flight",
    "serialisation_forward": "was the rate of the link to the server",
    "serialisation_reverse": "was the rate of the link to the client",
    "queueing_forward": "was queueing behind other packets on the way to the server",
    "queueing_reverse": "was queueing behind other packets on the way to the client",
    "jitter_forward": "was jitter on the way to the server",
    "jitter_reverse": "was jitter on the way to the client",
    "late": "was spent in the emulator, which was late",
    "fast_recovery": "waited for fast recovery of what was lost",
    "tail_loss_probe": "waited for tail loss probes",
    "retransmission_timer": "waited for the retransmission timer",
    "packet_threshold": "waited until enough later packets were acknowledged to know a loss (packet threshold)",
    "time_threshold": "waited until a loss was known by its time (time threshold)",
    "probe_timer": "waited for the probe timeout",
    "head_of_line": "waited for what was lost before",
    "syn_timer": "waited for an answer to a SYN",
    "datagram_loss": "waited after a lost datagram until the program sent the next",
    "congestion_window": "waited for the congestion window",
    "slow_start_after_idle": "waited for the congestion window, which an idle time had shrunk",
    "receive_window": "waited for the receiver's window",
    "zero_window": "waited until the receiver's program had read, for its window was closed",
    "stream_window": "waited for the flow control of a stream",
    "connection_window": "waited for the flow control of the connection",
    "send_buffer": "waited for room in the send buffer",
    "nagle": "waited until what was sent before was acknowledged (Nagle's algorithm)",
    "delayed_acknowledgement": "waited for delayed acknowledgements",
    "pacing": "was pacing",
    "unknown": "is not told by packets",
}
"""What a share of time did, by part. Both directions in flight are one."""
_OF_BYTES = (
    "congestion_window",
    "slow_start_after_idle",
    "receive_window",
    "stream_window",
    "connection_window",
    "send_buffer",
)


def connection_sentence(connection: Connection) -> str:
    """One sentence on where its time went, with its name."""
    place = f"{levels(connection.levels)} · " if connection.levels else ""
    return f"{place}{connection_name(connection)}: {spent_text([connection])}{_ended(connection)}"


def connection_name(connection: Connection) -> str:
    """Which it is: "tcp to port 80"."""
    port, to = (
        (connection.server_port, "") if connection.opened_by == "client" else (connection.client_port, " of the client")
    )
    return f"{connection.protocol} to port {port}{to}"


def spent_text(connections: Sequence[Connection]) -> str:
    """Where the time of some connections went: "91 % of 12.4 s waited for the receiver's window of 65 535 bytes"."""
    whole = sum(connection.whole_ns for connection in connections)
    if whole == 0:
        return f"{count_of(sum(map(_packets, connections)), 'packet')} at one time"
    shares: dict[str, int] = {}
    for connection in connections:
        for part in connection.parts:
            kind = "propagation" if part.part.startswith("propagation") else part.part
            shares[kind] = shares.get(kind, 0) + part.time_ns
    ordered = sorted(shares.items(), key=lambda share: -share[1])
    named: list[str] = []
    told = 0
    for kind, time_ns in ordered:
        if named and (time_ns < _SMALL * whole or told >= _ENOUGH * whole or len(named) == MOST):
            break
        of_whole = "" if named else f" of {quantity(whole, 'ns')}"
        named.append(f"{percent(time_ns / whole)}{of_whole} {_WENT[kind]}{_more(kind, connections)}")
        told += time_ns
    return listed(named, MOST)


def _more(kind: str, connections: Iterable[Connection]) -> str:
    if kind == "propagation":
        turning = [connection for connection in connections if connection.turns]
        if not turning:
            return ""
        trips = sum((connection.turns + 1) / 2 for connection in turning)
        what = "1 round trip" if trips == 1 else f"{trips:g} round trips"
        if any(connection.protocol == "udp" for connection in turning):
            # QUIC's windows wait for acknowledgements, which nobody but its ends can read.
            return f": {what} in which one end waited for the other, for data or for acknowledgements"
        return f": {what} in which a program waited for the other"
    parts = [part for connection in connections for part in connection.parts if part.part == kind]
    sizes = [part.window_bytes for part in parts if part.window_bytes]
    if kind in _OF_BYTES and sizes:
        times = sum(part.times or 0 for part in parts)
        return f" of {'at most ' if times > 1 else ''}{count(max(sizes))} bytes, {count_of(times, 'time')}"
    return ""


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


def _packets(connection: Connection) -> int:
    return connection.packets_forward + connection.packets_reverse
