"""Exchanges and connections of a run, with the pieces of their time: what `crosswind explain` shows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "crosswind.explain/1"

MOST_PACKETS = 2000
"""Packets of a kind that are drawn of a socket."""


@dataclass(frozen=True)
class Piece:
    """A piece of time, ns since its cell was ready. The fields are the columns of docs/result.md."""

    from_ns: int
    to_ns: int
    part: str
    place: str
    direction: str | None
    index: int | None
    count: int

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class Timed:
    """What took time.

    Attributes:
        key: its repetition. cell, repetition, levels: which that is. whole_ns: its time.
        pieces: what it was spent on, in the order of time.
    """

    key: str
    cell: int
    repetition: int
    levels: Mapping[str, str]
    whole_ns: int
    pieces: Sequence[Piece]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)


@dataclass(frozen=True)
class Explained(Timed):
    """An exchange.

    Attributes:
        exchange: its number. usual_ns: the median of the exchanges of its repetition.
        parts: ns by part, none that is 0.
    """

    exchange: int
    usual_ns: float
    parts: Mapping[str, int]


@dataclass(frozen=True)
class PartOfConnection:
    """What some of a connection's time was spent on.

    Attributes:
        data: forward or reverse, the direction of the data that waited.
        times: of a window, how often it was waited for. window_bytes: the most that it let be in flight.
    """

    data: str
    part: str
    time_ns: int
    times: int | None
    window_bytes: int | None


@dataclass(frozen=True)
class Connection(Timed):
    """A connection of programs, or the datagrams between two ports. Counts are the columns of docs/result.md.

    Attributes:
        number: its own, in the order of beginning. parts: all of its time, the longest first.
        is_cut_off: whether its cell had more packets than it kept, and this connection was open then.
    """

    number: int
    protocol: str
    client_port: int
    server_port: int
    opened_by: str
    from_ns: int
    beginning: str
    ending: str
    packets_forward: int
    packets_reverse: int
    bytes_forward: int
    bytes_reverse: int
    lost_forward: int
    lost_reverse: int
    again_forward: int
    again_reverse: int
    turns: int
    parts: Sequence[PartOfConnection]
    is_cut_off: bool


@dataclass(frozen=True)
class SocketPoint:
    """What a kernel knew of a TCP socket at a time. Times in ns since the cell was ready, sizes in bytes.

    Attributes: threshold_bytes: None before the first loss.
    """

    at_ns: int
    window_bytes: int
    threshold_bytes: int | None
    in_flight_bytes: int
    srtt_ns: int


@dataclass(frozen=True)
class PacketPoint:
    """A packet that it sent.

    Attributes: queued_ns: how long it waited behind others. fate: dropped, marked, or empty.
    """

    at_ns: int
    queued_ns: int
    fate: str


@dataclass(frozen=True)
class SocketHistory:
    """The socket of a repetition that sent the most, over time.

    Attributes:
        host: whose it is.
        packets: of those that it sent, in the order of time: MOST_PACKETS or fewer, evenly spaced, and as many of the
            first that were dropped, and that were marked. None where the run did not keep them.
        dropped, marked: how many of all were.
    """

    key: str
    levels: Mapping[str, str]
    host: str
    client_port: int
    points: Sequence[SocketPoint]
    packets: Sequence[PacketPoint]
    dropped: int
    marked: int
