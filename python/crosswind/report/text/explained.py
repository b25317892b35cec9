"""A single exchange in words: a sentence on why it took as long as it did, and its timeline."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from crosswind.catalog import catalog
from crosswind.catalog.explained import Explained, Piece, Timed
from crosswind.catalog.spent import AFTER_LOSS
from crosswind.report.text.changed import changed_text
from crosswind.report.text.format import levels, quantity, sentence

_SMALL = 0.01
"""Share of the whole below which a part is not named."""
_SINGLE = 6
"""Maximum recoveries listed one by one; beyond, only their sum."""
_MOST = 0.9
"""Minimum share of a part's time in listed recoveries; below, only their sum is told."""

_THRESHOLDS = ("packet_threshold", "time_threshold")
_RECOVERIES = tuple(part for part in AFTER_LOSS if part != "datagram_loss")


def exchange_sentence(exchange: Explained, usually: str = "the median of its repetition") -> str:
    """One sentence on why an exchange took as long as it did. Args: usually: what its `usual_ns` is."""
    place = f"{levels(exchange.levels)}: " if exchange.levels else ""
    took = quantity(exchange.whole_ns, "ns")
    usual = quantity(exchange.usual_ns, "ns")
    instead = "" if took == usual else f" instead of {usual}, {usually}"
    without = changed_text(exchange.whole_ns, exchange.parts, exchange.changed)
    reasons = [*_round_trips(exchange), *_reasons(exchange), *([without] if without else [])]
    because = f": {'; '.join(reasons)}" if reasons else ", which is what the path takes"
    return sentence(f"{place}exchange {exchange.exchange} took {took}{instead}{because}")


def _round_trips(exchange: Explained) -> Iterator[str]:
    """The exchange's round trips: a peer, such as a browser, has reasons invisible in packets."""
    there, back = (
        [piece.part for piece in exchange.pieces].count(part) for part in ("propagation_forward", "propagation_reverse")
    )
    if (times := min(there, back)) > 1:
        yield f"in {times} round trips one end waited for the other, for data or for acknowledgements"


def _reasons(exchange: Explained) -> Iterator[str]:
    least = _SMALL * exchange.whole_ns
    recoveries = [piece for piece in exchange.pieces if piece.part in _RECOVERIES and piece.length_ns >= least]
    listed = Counter[str]()
    for piece in recoveries:
        listed[piece.part] += piece.length_ns
    few = len(recoveries) <= _SINGLE
    one_by_one = {part for part, time_ns in listed.items() if few and time_ns >= _MOST * exchange.parts[part]}
    told: set[str] = set()
    before: Piece | None = None
    for piece in exchange.pieces:
        if not catalog().parts[piece.part].of_exchange or exchange.parts.get(piece.part, 0) < least:
            continue
        if piece.part in one_by_one:
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
    said = catalog().parts[piece.part].of_exchange
    return said.format(time=quantity(length_ns, "ns"), packet=packet_name(piece), expiry=expiry)


def packet_name(piece: Piece) -> str:
    """A piece's packet: "packet 12 to the server"."""
    if piece.index is None:
        return "a packet"
    return f"packet {piece.index} to the {'server' if piece.direction == 'forward' else 'client'}"


def timeline(exchange: Timed) -> list[list[str]]:
    """Rows: a piece's beginning within the exchange, duration, share, part, place, and packet.

    Consecutive pieces with the same part and place are one row.
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
    """Pieces in one row. Each timer expiry has its own row."""
    for _, run in groupby(pieces, lambda piece: (piece.part, piece.place, piece.from_ns if piece.count else None)):
        yield list(run)
