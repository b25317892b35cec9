"""A single exchange in words: a sentence on why it took as long as it did, and its timeline."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from crosswind.catalog.explained import Explained, Piece, Timed
from crosswind.report.text.format import levels, quantity, sentence

_USUAL = ("propagation_forward", "propagation_reverse", "client_host", "server_host", "late")
"""Parts that every exchange has: they are no reason for a delay."""
_SMALL = 0.01
"""Of the whole, what is less is not named."""
_SINGLE = 6
"""Recoveries that are told one by one; of more only their sum."""

_SAID = {
    "tcp_handshake": "TCP's handshake took {time}",
    "security_handshake": "the handshake of TLS or QUIC took {time}",
    "upgrade_handshake": "the upgrade took {time}",
    "serialisation_forward": "the link to the server needed {time} for its bytes",
    "serialisation_reverse": "the link to the client needed {time} for its bytes",
    "queueing_forward": "it queued {time} behind other packets on the way to the server",
    "queueing_reverse": "it queued {time} behind other packets on the way to the client",
    "jitter_forward": "the path to the server held it back for another {time}",
    "jitter_reverse": "the path to the client held it back for another {time}",
    "fast_recovery": "{packet} was lost, and sent again {time} later: acknowledgements of what followed it said so",
    "tail_loss_probe": "{packet} was lost, with nothing behind it to show that; a tail loss probe came {time} later",
    "retransmission_timer": "{packet} was lost, and sent again {time} later by the retransmission timer{expiry}",
    "syn_timer": "TCP's handshake lost a packet, and its timer sent a SYN again after {time}",
    "packet_threshold": "{packet} was lost, and sent again {time} later, as enough later ones had arrived",
    "time_threshold": "{packet} was lost, and sent again {time} later, as a later one had arrived",
    "probe_timer": "{packet} was lost, and a probe sent {time} later by QUIC's probe timer{expiry}",
    "datagram_loss": "{packet} was lost, and the next one was sent {time} later",
    "head_of_line": "it was received, and waited {time} for {packet}, which was sent before it and had been lost",
    "congestion_window": "it waited {time} for the congestion window",
    "slow_start_after_idle": "it waited {time} for the congestion window, which an idle time had shrunk",
    "receive_window": "it waited {time} for the receiver's window",
    "zero_window": "it waited {time} until the receiver's program had read, for its window was closed",
    "send_buffer": "it waited {time} for room in the send buffer",
    "stream_window": "it waited {time} for the flow control of its stream",
    "connection_window": "it waited {time} for the flow control of its connection",
    "nagle": "it waited {time} until what was sent before was acknowledged (Nagle's algorithm)",
    "delayed_acknowledgement": "the receiver delayed acknowledgements that it waited for by {time}",
    "pacing": "it waited {time} for its turn at the pace at which packets are sent",
    "closing": "closing the connection took {time}",
    "unknown": "of {time} packets do not tell what they were spent on",
}
_THRESHOLDS = ("packet_threshold", "time_threshold")
_RECOVERIES = (
    "fast_recovery",
    "tail_loss_probe",
    "retransmission_timer",
    *_THRESHOLDS,
    "probe_timer",
)


def exchange_sentence(exchange: Explained) -> str:
    """One sentence on why an exchange took as long as it did."""
    place = f"{levels(exchange.levels)}: " if exchange.levels else ""
    took = quantity(exchange.whole_ns, "ns")
    usual = quantity(exchange.usual_ns, "ns")
    instead = "" if took == usual else f" instead of {usual}, the median of its repetition"
    reasons = [*_round_trips(exchange), *_reasons(exchange)]
    because = f": {'; '.join(reasons)}" if reasons else ", which is what the path takes"
    return sentence(f"{place}exchange {exchange.exchange} took {took}{instead}{because}")


def _round_trips(exchange: Explained) -> Iterator[str]:
    """How often it went both ways: a peer, such as a browser, does so for reasons that packets do not tell."""
    there, back = (
        [piece.part for piece in exchange.pieces].count(part) for part in ("propagation_forward", "propagation_reverse")
    )
    if (times := min(there, back)) > 1:
        yield f"in {times} round trips one end waited for the other, for data or for acknowledgements"


def _reasons(exchange: Explained) -> Iterator[str]:
    least = _SMALL * exchange.whole_ns
    recoveries = [piece for piece in exchange.pieces if piece.part in _RECOVERIES and piece.length_ns >= least]
    one_by_one = len(recoveries) <= _SINGLE
    told: set[str] = set()
    before: Piece | None = None
    for piece in exchange.pieces:
        if piece.part in _USUAL or exchange.parts.get(piece.part, 0) < least:
            continue
        if piece.part in _RECOVERIES and one_by_one:
            if piece.length_ns < least:
                continue
            if before is not None and piece.part in _THRESHOLDS and before.part == "probe_timer":
                yield f"{quantity(piece.length_ns, 'ns')} later its loss was known, and what it carried was sent again"
            else:
                yield _said(piece, piece.length_ns)
            before = piece
        elif piece.part not in told:
            told.add(piece.part)
            yield _said(piece, exchange.parts[piece.part])


def _said(piece: Piece, length_ns: int) -> str:
    expiry = f", time {piece.count} in a row" if piece.count > 1 else ""
    return _SAID[piece.part].format(time=quantity(length_ns, "ns"), packet=packet_name(piece), expiry=expiry)


def packet_name(piece: Piece) -> str:
    """The packet that a piece is about: "packet 12 to the server"."""
    if piece.index is None:
        return "a packet"
    return f"packet {piece.index} to the {'server' if piece.direction == 'forward' else 'client'}"


def timeline(exchange: Timed) -> list[list[str]]:
    """Rows: when a piece began, since the exchange did; how long it lasted, its share, what on, where, and its packet.

    Pieces that follow each other with the same part at the same place are one row.
    """
    rows = []
    first = exchange.pieces[0].from_ns if exchange.pieces else 0
    for run in _runs(exchange.pieces):
        length = run[-1].to_ns - run[0].from_ns
        packets = {piece.index: piece for piece in run if piece.index is not None}
        named = ", ".join(map(packet_name, packets.values())) if len(packets) < 2 else f"{len(packets)} packets"
        count = f", time {run[0].count}" if run[0].count > 1 else ""
        rows.append(
            [
                quantity(run[0].from_ns - first, "ns"),
                quantity(length, "ns"),
                f"{100 * length / exchange.whole_ns:.1f} %" if exchange.whole_ns else "",
                run[0].part.replace("_", " ") + count,
                run[0].place,
                named,
            ]
        )
    return rows


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces that are one row. Each expiry of a timer is a row of its own."""
    for _, run in groupby(pieces, lambda piece: (piece.part, piece.place, piece.from_ns if piece.count else None)):
        yield list(run)
