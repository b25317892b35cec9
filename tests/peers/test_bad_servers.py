"""Our client and servers that misbehave: each says what happened, in bounded time and memory."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from peers.certificates import Certificates
from peers.implementations import SECURE, Ours
from peers.programs import Called
from peers.python.bad_servers import (
    H2_DATA,
    H2_HEADERS,
    H2_STATUS_200,
    Behaviour,
    bad_server,
    drain,
    finish,
    h2_frame,
    half_a_message,
    hang_up,
    http1,
    http2,
    nonsense,
    reset,
    silent,
    websocket,
)
from peers.python.frames import BINARY, CLOSE, CONTINUATION, TEXT, Frame, Wire, close_frame

RAW = ["tcp", "tls"]
SPOKEN = ["http1", "h2c", "https1", "http2", "websocket", "wss", "socketio-websocket"]
ALPN = {"https1": "http/1.1", "http2": "h2", "wss": "http/1.1"}
SHORT_NS = 300_000_000
"""The timeout of a client that waits for what never comes."""
MEMORY = 128 * 2**20
"""A client that buffers what a server announces would need 2**62 bytes. Ours holds a few MB at most."""
GONE = ("reset", "closed")
"""What a client sees of a connection that ends under it depends on what it was about to do."""
ODD = ("protocol", "too_large")
"""A length beyond every limit is too large, unless the protocol forbids it before anyone compares."""

Meet = Callable[..., Called]


@pytest.fixture
def meet(ours: Ours, certificates: Certificates) -> Meet:
    """Runs our client against one bad server; inside TLS if the transport has it and `plain` is not set."""

    def meet(transport: str, behave: Behaviour, *, plain: bool = False, **options: Any) -> Called:
        identity = None
        if transport in SECURE and not plain:
            identity = certificates.good.certificate_path, certificates.good.key_path
        if transport in SECURE:
            options["trust_pem"] = certificates.trusted.trust_pem
        with bad_server(behave, identity=identity, alpn=ALPN.get(transport, "")) as address:
            called = ours.call(transport, address, options.pop("sizes", (126,)), **options)
        assert called.status == 1, called.lines
        assert called.peak_bytes < MEMORY
        return called

    return meet


@pytest.mark.parametrize("transport", RAW + SPOKEN)
def test_it_never_answers(meet: Meet, transport: str) -> None:
    assert meet(transport, silent, timeout_ns=SHORT_NS).outcome == "timeout"


@pytest.mark.parametrize("transport", ["tls", "https1", "http2", "wss"])
def test_it_never_answers_the_handshake_of_tls(meet: Meet, transport: str) -> None:
    assert meet(transport, silent, plain=True, timeout_ns=SHORT_NS).outcome == "timeout"


@pytest.mark.parametrize("transport", ["websocket", "wss"])
def test_it_never_echoes(meet: Meet, transport: str) -> None:
    assert meet(transport, websocket(), timeout_ns=SHORT_NS).outcome == "timeout"


@pytest.mark.parametrize("transport", SPOKEN)
def test_it_talks_nonsense(meet: Meet, transport: str) -> None:
    assert meet(transport, nonsense).outcome == "protocol"


@pytest.mark.parametrize("transport", ["tls", "https1", "http2", "wss"])
def test_it_does_not_speak_tls(meet: Meet, transport: str) -> None:
    assert meet(transport, nonsense, plain=True).outcome == "protocol"


@pytest.mark.parametrize("transport", RAW + SPOKEN)
def test_it_hangs_up(meet: Meet, transport: str) -> None:
    assert meet(transport, hang_up).outcome in GONE


@pytest.mark.parametrize("transport", RAW + SPOKEN)
def test_it_resets_the_connection(meet: Meet, transport: str) -> None:
    assert meet(transport, reset).outcome in GONE


@pytest.mark.parametrize("transport", RAW + SPOKEN)
def test_it_is_not_there(ours: Ours, transport: str) -> None:
    # Bound but not listening: nobody else gets the port, and the kernel refuses who comes.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*taken.getsockname())
        called = ours.call(transport, address, (1,), insecure=True)
    assert (called.outcome, called.status) == ("refused", 1), called.lines


def h2_answer(*frames: bytes, then: Behaviour = drain) -> Behaviour:
    """Answers with status 200 and then with these frames."""
    return http2(h2_frame(H2_HEADERS, 4, 1, H2_STATUS_200), *frames, then=then)


@pytest.mark.parametrize(
    ("transport", "behave"),
    [
        ("websocket", websocket(half_a_message(), then=finish)),
        ("wss", websocket(half_a_message(), then=finish)),
        ("websocket", websocket(Frame(BINARY, b"half", fin=False), then=finish)),
        ("http1", http1(b"HTTP/1.1 200 OK\r\nContent-Length: 126\r\n\r\nhalf", then=finish)),
        ("https1", http1(b"HTTP/1.1 200 OK\r\nContent-Length: 126\r\n\r\nhalf", then=finish)),
        ("http1", http1(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7e\r\nhalf", then=finish)),
        ("http1", http1(b"HTTP/1.1 200 OK\r\nContent-Le", then=finish)),
        ("h2c", h2_answer(h2_frame(H2_DATA, 0, 1, b"half"), then=finish)),
        ("http2", h2_answer(h2_frame(H2_DATA, 0, 1, b"half"), then=finish)),
    ],
)
def test_it_leaves_in_the_middle_of_a_message(meet: Meet, transport: str, behave: Behaviour) -> None:
    assert meet(transport, behave).outcome in GONE


def without_end(piece: bytes) -> Behaviour:
    """Sends this again and again until the client leaves."""

    def behave(connection: socket.socket) -> None:
        while True:
            connection.sendall(piece)

    return behave


MORE = without_end(bytes(65536))
"""Sends the announced bytes for as long as the client reads."""
PROMISES: dict[str, tuple[str, Behaviour]] = {
    "a long body": ("http1", http1(b"HTTP/1.1 200 OK\r\nContent-Length: 4611686018427387904\r\n\r\n", then=MORE)),
    "a long chunk": (
        "http1",
        http1(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4000000000000000\r\n", then=MORE),
    ),
    "a body without end": ("http1", http1(b"HTTP/1.1 200 OK\r\n\r\n", then=MORE)),
    "a body without end, in TLS": ("https1", http1(b"HTTP/1.1 200 OK\r\n\r\n", then=MORE)),
}
BROKEN: dict[str, tuple[str, Behaviour]] = {
    "a length of more than 64 bits": (
        "http1",
        http1(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nmore"),
    ),
    "headers without end": ("http1", http1(b"HTTP/1.1 200 OK\r\n", then=without_end(b"A: b\r\n" * 1000))),
    "a header without end": ("http1", http1(b"HTTP/1.1 200 OK\r\nA: ", then=without_end(b"b" * 65536))),
    # RFC 9113, section 4.2: larger than SETTINGS_MAX_FRAME_SIZE, which is 16384 unless the client says otherwise.
    "a frame too large": ("h2c", h2_answer(h2_frame(H2_DATA, 0, 1, b"more", claims=2**24 - 1))),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_it_sends_more_than_was_posted(meet: Meet, promise: str) -> None:
    assert meet(*PROMISES[promise]).outcome in ODD


@pytest.mark.parametrize("promise", PROMISES)
def test_it_sends_more_than_anyone_waits_for(meet: Meet, promise: str) -> None:
    # GET takes what comes, for as long as it may wait; but it keeps none of it.
    assert meet(*PROMISES[promise], method="GET", timeout_ns=SHORT_NS).outcome in (*ODD, "timeout")


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("rule", BROKEN)
def test_it_breaks_the_rules_of_http(meet: Meet, rule: str, method: str) -> None:
    assert meet(*BROKEN[rule], method=method).outcome in ODD


@pytest.mark.parametrize(
    ("transport", "behave"),
    [
        ("websocket", websocket(Frame(BINARY, b"more", claims=2**62))),
        ("wss", websocket(Frame(BINARY, b"more", claims=2**62))),
        # RFC 6455, section 5.2: the most significant bit must be 0.
        ("websocket", websocket(Frame(BINARY, b"more", claims=2**63))),
        ("websocket", websocket(Frame(BINARY, b"more", claims=2**31))),
        (
            "websocket",
            websocket(Frame(TEXT, b"", fin=False), then=without_end(Frame(CONTINUATION, b"", fin=False).encode())),
        ),
        (
            "websocket",
            websocket(
                Frame(BINARY, b"", fin=False), then=without_end(Frame(CONTINUATION, bytes(60000), fin=False).encode())
            ),
        ),
    ],
)
def test_its_message_is_too_large(meet: Meet, transport: str, behave: Behaviour) -> None:
    assert meet(transport, behave, timeout_ns=5 * SHORT_NS).outcome in (*ODD, "timeout")


@pytest.mark.parametrize(
    ("transport", "behave"),
    [
        ("websocket", websocket(Frame(BINARY, bytes(126)))),
        ("websocket", websocket(Frame(BINARY, b"short"))),
        ("http1", http1(b"HTTP/1.1 200 OK\r\nContent-Length: 126\r\n\r\n" + bytes(126))),
        ("http1", http1(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")),
        ("h2c", h2_answer(h2_frame(H2_DATA, 1, 1, bytes(126)))),
    ],
)
def test_it_sends_something_else_back(meet: Meet, transport: str, behave: Behaviour) -> None:
    assert meet(transport, behave).outcome in ("error", "protocol")


def test_it_sends_something_else_back_on_bare_tcp(meet: Meet) -> None:
    def behave(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(bytes(126))
        drain(connection)

    assert meet("tcp", behave).outcome == "error"


OPEN = b'0{"sid":"a","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}'


def socketio(*answers: bytes | Frame, opens: bytes = OPEN, connects: bytes = b'40{"sid":"b"}') -> Behaviour:
    """A Socket.IO server over WebSocket that answers the first event with these packets."""

    def behave(connection: socket.socket) -> None:
        wire = Wire(connection)
        path = wire.answer()
        assert "EIO=4" in path and "transport=websocket" in path, path
        wire.send(Frame(TEXT, opens))
        answer = wire.receive()
        if answer.opcode == CLOSE:
            # The client may refuse this at once.
            return
        assert answer.payload[:2] == b"40"
        wire.send(Frame(TEXT, connects))
        wire.receive()
        wire.send(*(answer if isinstance(answer, Frame) else Frame(TEXT, answer) for answer in answers))
        drain(connection)

    return behave


@pytest.mark.parametrize(
    ("behave", "outcomes"),
    [
        (socketio(), ("timeout",)),
        (socketio(opens=b"0nonsense"), ("protocol",)),
        (socketio(opens=b"9"), ("protocol",)),
        (socketio(connects=b'44{"message":"not allowed"}'), ("refused", "protocol", "closed", "error")),
        (socketio(b"42nonsense"), ("protocol",)),
        (socketio(b'451-["message",{"_placeholder":true,"num":7}]', Frame(BINARY, b"x")), ("protocol", "error")),
        (socketio(b"41"), ("closed",)),
        (socketio(b"1"), ("closed",)),
        (socketio(close_frame(1000)), ("closed",)),
        (socketio(Frame(BINARY, b"x", claims=2**62)), ODD),
        (socketio(b'451-["message",{"_placeholder":true,"num":0}]', Frame(BINARY, bytes(126))), ("error",)),
    ],
)
def test_socketio_servers(meet: Meet, behave: Behaviour, outcomes: tuple[str, ...]) -> None:
    assert meet("socketio-websocket", behave, timeout_ns=2 * SHORT_NS).outcome in outcomes


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
def test_its_certificate_is_bad(ours: Ours, certificates: Certificates, bad: str) -> None:
    identity = certificates.bad[bad]
    trust = certificates.trusted.trust_pem
    with bad_server(drain, identity=(identity.certificate_path, identity.key_path)) as address:
        called = ours.call("tls", address, (1,), trust_pem=trust)
    assert (called.outcome, called.status) == ("certificate", 1), called.lines
