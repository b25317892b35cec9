"""Servers that misbehave: plain sockets, one connection after another, in a thread of the test."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from peers.python.frames import BINARY, EndedError, Frame, Wire

DEADLINE_S = 20.0
"""No wait of a bad server is longer."""

Behaviour = Callable[[socket.socket], None]
H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113, section 3.4."""
H2_DATA, H2_HEADERS, H2_SETTINGS = 0x0, 0x1, 0x4


@contextmanager
def bad_server(behave: Behaviour, *, identity: tuple[Path, Path] | None = None, alpn: str = "") -> Iterator[str]:
    """Listens on a free port and does to each connection what `behave` says; yields its address.

    With `identity`, certificate and key, each connection is one of TLS, and `behave` sees what is inside.
    """
    context = None
    if identity is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*identity)
        if alpn:
            context.set_alpn_protocols([alpn])
    listener = socket.create_server(("127.0.0.1", 0))
    faults: list[BaseException] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(DEADLINE_S)
            try:
                if context is not None:
                    connection = context.wrap_socket(connection, server_side=True)
                behave(connection)
            except (OSError, EndedError):
                # The client left, as it may.
                pass
            except BaseException as fault:
                faults.append(fault)
            finally:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield "{}:{}".format(*listener.getsockname())
    finally:
        # Wakes accept(), which close() alone does not.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(DEADLINE_S)
    assert not faults, faults


@contextmanager
def bad_udp_server(answer: Callable[[bytes], bytes | None]) -> Iterator[str]:
    """Answers each packet by what `answer` makes of it, or by nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        stopping = threading.Event()

        def serve() -> None:
            while True:
                packet, client = server.recvfrom(65536)
                if stopping.is_set():
                    return
                reply = answer(packet)
                if reply is not None:
                    server.sendto(reply, client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield "{}:{}".format(*server.getsockname())
        finally:
            stopping.set()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:
                waker.sendto(b"end", server.getsockname())
            thread.join(DEADLINE_S)


def drain(connection: socket.socket) -> None:
    """Reads everything and sends nothing, until the client closes the connection."""
    while connection.recv(65536):
        pass


def finish(connection: socket.socket) -> None:
    """Ends its sending direction and reads until the client closes, so that no RST overtakes the FIN."""
    connection.shutdown(socket.SHUT_WR)
    drain(connection)


def silent(connection: socket.socket) -> None:
    """Never answers."""
    drain(connection)


def nonsense(connection: socket.socket) -> None:
    """Answers with what no protocol here begins with."""
    connection.recv(65536)
    connection.sendall(b"\x00\xff nonsense \xfe\x01" * 20 + b"\r\n\r\n")
    finish(connection)


def hang_up(connection: socket.socket) -> None:
    """Reads the first bytes and closes."""
    connection.recv(65536)
    finish(connection)


def reset(connection: socket.socket) -> None:
    """Reads the first bytes and answers with RST."""
    connection.recv(65536)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def http1(answer: bytes, *, then: Behaviour = drain) -> Behaviour:
    """Answers an HTTP/1.1 request, whose body it does not wait for, with these bytes."""

    def behave(connection: socket.socket) -> None:
        Wire(connection).head()
        connection.sendall(answer)
        then(connection)

    return behave


def http2(*frames: bytes, then: Behaviour = drain) -> Behaviour:
    """Answers the first request of an HTTP/2 connection with these frames."""

    def behave(connection: socket.socket) -> None:
        wire = Wire(connection)
        assert wire.take(len(H2_PREFACE)) == H2_PREFACE
        connection.sendall(h2_frame(H2_SETTINGS, 0, 0, b""))
        while True:
            head = wire.take(9)
            wire.take(int.from_bytes(head[:3], "big"))
            if head[3] == H2_HEADERS:
                break
        connection.sendall(b"".join(frames))
        then(connection)

    return behave


def h2_frame(kind: int, flags: int, stream: int, payload: bytes, *, claims: int | None = None) -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    length = len(payload) if claims is None else claims
    return length.to_bytes(3, "big") + struct.pack("!BBL", kind, flags, stream) + payload


H2_STATUS_200 = b"\x88"
"""In the static table of HPACK (RFC 7541, appendix A, index 8)."""


def websocket(*frames: Frame | bytes, then: Behaviour = drain) -> Behaviour:
    """Answers the handshake, waits for the first message, and answers it with these frames."""

    def behave(connection: socket.socket) -> None:
        wire = Wire(connection)
        wire.answer()
        wire.receive()
        wire.send(*frames)
        then(connection)

    return behave


def half_a_message() -> Frame:
    """A frame that promises 100 bytes and brings 4."""
    return Frame(BINARY, b"half", claims=100)
