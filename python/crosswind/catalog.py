"""Every transport that a study can name, and what about it matters here: one line a transport.

What a transport does on the wire is `crosswind-cell`'s; this table says which keys of a workload it takes and what a
connection of it costs before the first message, for forecasts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Transport:
    """A way to carry messages.

    Attributes:
        carrier: what is below it: tcp, udp, or quic. set_up: round trips from the first packet until a message may go.
        secure: encrypted, with TLS 1.3. datagram: a message is a datagram, and a lost one is not sent again.
        http: a message is a request and its response. typed: a message is either text or binary.
        socketio: speaks Socket.IO. shares: many streams share one connection.
    """

    name: str
    carrier: str
    set_up: int
    secure: bool = False
    datagram: bool = False
    http: bool = False
    typed: bool = False
    socketio: bool = False
    shares: bool = False

    @property
    def opens_streams(self) -> bool:
        """Whether a connection may carry each message on a stream of its own, as the workload asks."""
        return self.shares and not self.http

    @property
    def connects(self) -> bool:
        """Whether there is a connection to set up."""
        return self.set_up > 0

    @property
    def quic(self) -> bool:
        """Whether it runs over QUIC."""
        return self.carrier == "quic"


# Round trips: TCP 1, TLS 1.3 over it 1 more, QUIC with its TLS 1; an upgrade to WebSocket 1; WebTransport's CONNECT 1,
# the SETTINGS it waits for having come with the handshake; Socket.IO's handshake 1, and that of Engine.IO before it 1
# over WebTransport, while over WebSocket the server begins it.
_ALL = (
    Transport("tcp", "tcp", 1),
    Transport("tls", "tcp", 2, secure=True),
    Transport("udp", "udp", 0, datagram=True),
    Transport("http1", "tcp", 1, http=True),
    Transport("https1", "tcp", 2, http=True, secure=True),
    Transport("h2c", "tcp", 1, http=True, shares=True),
    Transport("http2", "tcp", 2, http=True, shares=True, secure=True),
    Transport("http3", "quic", 1, http=True, shares=True, secure=True),
    Transport("websocket", "tcp", 2, typed=True),
    Transport("wss", "tcp", 3, typed=True, secure=True),
    Transport("quic", "quic", 1, shares=True, secure=True),
    Transport("quic-datagram", "quic", 1, datagram=True, secure=True),
    Transport("webtransport", "quic", 2, shares=True, secure=True),
    Transport("webtransport-datagram", "quic", 2, datagram=True, secure=True),
    Transport("socketio-websocket", "tcp", 3, typed=True, socketio=True),
    Transport("socketio-webtransport", "quic", 4, typed=True, socketio=True, secure=True),
)

TRANSPORTS: Mapping[str, Transport] = {one.name: one for one in _ALL}
"""Every transport by name."""


def names(some: Iterable[Transport] = _ALL) -> str:
    """Names in a sentence: "tcp, tls, http1"."""
    return ", ".join(one.name for one in some)


def is_datagram(name: str | None) -> bool:
    """Whether a lost message of this transport is never sent again; False for one that is not known."""
    known = TRANSPORTS.get(name or "")
    return known is not None and known.datagram


def fitting(kind: str) -> tuple[Transport, ...]:
    """The transports that can do a workload of some kind."""
    if kind == "page":
        return tuple(one for one in _ALL if one.http)
    if kind == "transfer":
        return tuple(one for one in _ALL if not one.datagram)
    if kind == "connect":
        return tuple(one for one in _ALL if one.connects)
    return _ALL
