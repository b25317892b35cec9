"""Exchanges and connections with their time breakdown, for `crosswind explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = "crosswind.explain/1"

MOST_PACKETS = 2000
"""Maximum packets drawn for a socket, by kind."""


@dataclass(frozen=True)
class Piece:
    """An interval of time, ns since its cell was ready. The fields are columns in docs/result.md."""

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
    """An exchange or a connection, with its time.

    Attributes:
        key, cell, repetition, levels: its repetition's. whole_ns: its time. pieces: the breakdown, by time.
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
        exchange: its number. usual_ns: the median over its repetition's exchanges. parts: nonzero ns by part. changed:
            ns by change, by a model, where it knows.
    """

    exchange: int
    usual_ns: float
    parts: Mapping[str, int]
    changed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PartOfConnection:
    """A connection's time in one part.

    Attributes:
        data: forward or reverse, the waiting data's direction. times: for a window, number of waits. window_bytes: its
            maximum in flight. waited_for: a timer's thread, or another connection's port.
    """

    data: str
    part: str
    time_ns: int
    times: int | None
    window_bytes: int | None
    waited_for: str | None = None


@dataclass(frozen=True)
class Connection(Timed):
    """A connection of programs, or the datagrams between two ports. Counts are columns in docs/result.md.

    Attributes:
        number: by beginning. parts: all of its time, the longest first. is_cut_off: whether its cell exceeded its
            packet limit while it was open. is_inferred: whether its kernels did not say why TCP sent: on the machine's
            clock. changed: ns by change, by a model, where it knows.
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
    is_inferred: bool = False
    changed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SocketPoint:
    """A kernel's view of a TCP socket at a time. Times in ns since the cell was ready, sizes in bytes.

    Attributes: threshold_bytes: None before the first loss.
    """

    at_ns: int
    window_bytes: int
    threshold_bytes: int | None
    in_flight_bytes: int
    srtt_ns: int


@dataclass(frozen=True)
class PacketPoint:
    """A sent packet. Attributes: queued_ns: wait behind others. fate: dropped, marked, or empty."""

    at_ns: int
    queued_ns: int
    fate: str


@dataclass(frozen=True)
class SocketHistory:
    """The repetition's socket with most bytes sent, over time.

    Attributes:
        host: its owner.
        packets: sent ones, by time: MOST_PACKETS or fewer, evenly spaced, and as many of the first dropped and marked
            ones. None if the run did not keep them.
        dropped, marked: counts over all.
    """

    key: str
    levels: Mapping[str, str]
    host: str
    client_port: int
    points: Sequence[SocketPoint]
    packets: Sequence[PacketPoint]
    dropped: int
    marked: int
