"""What a cell asks of path, hosts and transport, as `crosswind-cell --check` says it: all that a forecast needs.

The shapes are those of docs/cell-protocol.md (`demand`), and of the parts of a checked cell that bear on speed.
"""

from dataclasses import dataclass, replace
from typing import Literal

from crosswind.catalog import Carrier, Transport


@dataclass(frozen=True)
class Direction:
    """One direction of the path. `rate_bps` None is unlimited; `frame_bytes` are added to each packet on the link."""

    delay_ns: int
    loss: float
    rate_bps: int | None
    frame_bytes: int


@dataclass(frozen=True)
class Exchanges:
    """Requests and their replies, over all connections; one after another on each, or at a rate."""

    count: int
    connections: int
    request_bytes: int
    reply_bytes: int
    new_connections: bool
    rate_per_s: float | None
    pattern: Literal["exchanges"] = "exchanges"


@dataclass(frozen=True)
class Transfers:
    """Bytes in one direction, each transfer on a new connection: a size, or for a time."""

    count: int
    connections: int
    size_bytes: int | None
    duration_ns: int | None
    upload: bool
    pattern: Literal["transfers"] = "transfers"


@dataclass(frozen=True)
class Handshakes:
    """Connections that are set up, one after another on each of some lanes."""

    count: int
    connections: int
    pattern: Literal["handshakes"] = "handshakes"


@dataclass(frozen=True)
class Streams:
    """Streams that each send messages at a rate; every message comes back."""

    messages: int
    streams: int
    connections: int
    size_bytes: int
    rate_per_s: float
    pattern: Literal["streams"] = "streams"


@dataclass(frozen=True)
class Pages:
    """Pages, one after another: a document, and when it is whole the objects that it names."""

    count: int
    connections: int
    html_bytes: int
    objects_bytes: int
    objects: int
    request_bytes: int
    pattern: Literal["pages"] = "pages"


@dataclass(frozen=True)
class Unknown:
    """Somebody's program, of which nothing is known."""

    pattern: Literal["unknown"] = "unknown"


Traffic = Exchanges | Transfers | Handshakes | Streams | Pages | Unknown


@dataclass(frozen=True)
class Demand:
    """What crosswind-cell says of the traffic of one cell."""

    timeout_ns: int | None
    forward: Direction
    reverse: Direction
    traffic: Traffic
    polling: bool = False
    early_data: bool = False


UNKNOWN_NETWORK = Direction(delay_ns=25_000_000, loss=0.0, rate_bps=10_000_000, frame_bytes=0)
"""What one direction of a real network is taken for, of which nothing is known: 50 ms there and back, 10 Mbit/s."""


def over_unknown_network(demand: Demand) -> Demand:
    """The demand of a cell on a network of which nobody can say how long it delays packets."""
    return replace(demand, forward=UNKNOWN_NETWORK, reverse=UNKNOWN_NETWORK)


@dataclass(frozen=True)
class HostSettings:
    """What is set of both hosts' TCP; None is left to the kernel."""

    congestion_control: str | None = None
    sack: bool | None = None
    window_scaling: bool | None = None
    tail_loss_probe: bool | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    initial_window: int | None = None
    min_rto_ns: int | None = None


@dataclass(frozen=True)
class Surroundings:
    """Where the traffic of a cell takes place. `transport` is None of a program.

    peers: how many of its ends are not Crosswind's own.
    """

    transport: Transport | None
    host: HostSettings
    ipv6: bool
    mtu_bytes: int
    peers: int = 0

    @property
    def quic(self) -> bool:
        """Whether packets are QUIC's."""
        return self.transport is not None and self.transport.carrier is Carrier.QUIC
