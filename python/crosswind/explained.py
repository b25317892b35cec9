"""Single exchanges of a run, each with the pieces of its time: what `crosswind explain` shows (docs/explain.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "crosswind.explain/1"


@dataclass(frozen=True)
class Piece:
    """A piece of an exchange's time, ns since its cell was ready. The fields are the columns of docs/result.md."""

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
class Explained:
    """An exchange.

    Attributes:
        key: its repetition. cell, repetition, levels: which that is. exchange: its number.
        whole_ns: its time. usual_ns: the median of the exchanges of its repetition. parts: ns by part, none that is 0.
        pieces: the same in the order of time.
    """

    key: str
    cell: int
    repetition: int
    levels: Mapping[str, str]
    exchange: int
    whole_ns: int
    usual_ns: float
    parts: Mapping[str, int]
    pieces: Sequence[Piece]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)


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

    Attributes: host: whose it is. packets: those that it sent; none where the run did not keep them.
    """

    key: str
    levels: Mapping[str, str]
    host: str
    client_port: int
    points: Sequence[SocketPoint]
    packets: Sequence[PacketPoint]
