"""RFC 6455, rule by rule, with frames made by hand: against our server and against our client.

Where the RFC says to fail the connection, the connection must end. A close frame before that is wanted but not required
(section 7.1.7); if there is one, its code must be the right one.
"""

import socket
from collections.abc import Callable, Iterator

import pytest

from peers.implementations import SIZES, Ours
from peers.programs import Called, Server
from peers.python.bad_servers import bad_server
from peers.python.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    MASK,
    PING,
    PONG,
    TEXT,
    Frame,
    Wire,
    accept_of,
    close_code,
    close_frame,
)

DEADLINE_S = 20.0
PROTOCOL, INVALID, TOO_BIG = 1002, 1007, 1009
"""Section 7.4.1."""

UTF8 = "κόσμε 世界 🙂".encode()
NOT_UTF8 = {
    "a byte that is never in UTF-8": b"valid \xff invalid",
    "a continuation byte alone": b"\x80",
    "an overlong slash": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "beyond U+10FFFF": b"\xf4\x90\x80\x80",
    "a character cut short": b"\xf0\x9f\x99",
}
"""RFC 3629, sections 3 and 4."""

Frames = tuple[Frame | bytes, ...]

FORBIDDEN: dict[str, tuple[Frames, tuple[int, ...]]] = {
    **{f"5.2 RSV bits {rsv:03b}": ((Frame(BINARY, b"hello", rsv=rsv),), (PROTOCOL,)) for rsv in range(1, 8)},
    "5.2 RSV1 on a control frame": ((Frame(PING, b"hello", rsv=4),), (PROTOCOL,)),
    **{
        f"5.2 reserved opcode {opcode:X}": ((Frame(opcode, b"hello"),), (PROTOCOL,))
        for opcode in (*range(0x3, 0x8), *range(0xB, 0x10))
    },
    "5.2 a length whose first bit is 1": ((Frame(BINARY, b"hello", claims=2**63),), (PROTOCOL, TOO_BIG)),
    "5.2 a length beyond every limit": ((Frame(BINARY, b"hello", claims=2**62),), (PROTOCOL, TOO_BIG)),
    "5.4 a continuation of nothing": ((Frame(CONTINUATION, b"hello"),), (PROTOCOL,)),
    "5.4 a continuation of nothing, to be continued": ((Frame(CONTINUATION, b"hello", fin=False),), (PROTOCOL,)),
    "5.4 a continuation of what has ended": (
        (Frame(PONG), Frame(BINARY, b"he", fin=False), Frame(CONTINUATION, b"llo"), Frame(CONTINUATION, b"!")),
        (PROTOCOL,),
    ),
    "5.4 text within a message": ((Frame(BINARY, b"he", fin=False), Frame(TEXT, b"llo")), (PROTOCOL,)),
    "5.4 binary within a message": ((Frame(TEXT, b"he", fin=False), Frame(BINARY, b"llo")), (PROTOCOL,)),
    "5.5 a ping of 126 bytes": ((Frame(PING, bytes(126)),), (PROTOCOL,)),
    "5.5 a pong of 126 bytes": ((Frame(PONG, bytes(126)),), (PROTOCOL,)),
    "5.5 a close frame of 126 bytes": ((close_frame(1000, b"x" * 124),), (PROTOCOL,)),
    "5.5 a ping of 65536 bytes": ((Frame(PING, bytes(65536)),), (PROTOCOL,)),
    "5.5 a fragmented ping": ((Frame(PING, b"he", fin=False), Frame(CONTINUATION, b"llo")), (PROTOCOL,)),
    "5.5 a fragmented pong": ((Frame(PONG, b"he", fin=False), Frame(CONTINUATION, b"llo")), (PROTOCOL,)),
    "5.5 a fragmented close frame": ((Frame(CLOSE, b"\x03\xe8", fin=False), Frame(CONTINUATION, b"")), (PROTOCOL,)),
    "5.5.1 a close frame of 1 byte": ((Frame(CLOSE, b"\x03"),), (PROTOCOL,)),
    "5.5.1 a reason that is not UTF-8": ((close_frame(1000, b"\xff"),), (PROTOCOL, INVALID)),
    **{f"8.1 {name}": ((Frame(TEXT, text),), (INVALID,)) for name, text in NOT_UTF8.items()},
    **{
        f"8.1 {name}, in fragments": (
            (
                Frame(TEXT, b"valid, ", fin=False),
                Frame(CONTINUATION, text[:1], fin=False),
                Frame(CONTINUATION, text[1:]),
            ),
            (INVALID,),
        )
        for name, text in NOT_UTF8.items()
    },
    "8.1 a character cut short by a control frame": (
        (Frame(TEXT, b"\xf0\x9f", fin=False), Frame(PING), Frame(CONTINUATION, b"x\x99\x82")),
        (INVALID,),
    ),
}
"""What fails the connection: frames, and the codes that may say so. Client frames are masked on top."""

# 7.4.2: 0-999 are not used, and 1016-2999 reserved. 7.4.1: so is 1004; 1005, 1006 and 1015 must not be sent.
FORBIDDEN_CODES = (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535)
CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)


def masked(frames: Frames, mask: bytes = MASK) -> Frames:
    """As a client sends them (section 5.1)."""
    return tuple(
        frame
        if isinstance(frame, bytes)
        else Frame(frame.opcode, frame.payload, frame.fin, frame.rsv, mask, frame.claims, frame.length_bytes)
        for frame in frames
    )


# Our server ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(ours: Ours) -> Server:
    """Our server."""
    return ours.serve("websocket")


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    """A client's end of a connection with our server."""
    with Wire.connect(server.address, DEADLINE_S) as wire:
        yield wire


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_our_server_fails_the_connection(server: Server, wire: Wire, rule: str) -> None:
    frames, codes = FORBIDDEN[rule]
    wire.send(*masked(frames))
    received = [frame for frame in wire.frames() if frame.opcode not in (PING, PONG)]
    # Whole messages that came before may have been echoed; what is forbidden may not.
    closes = [frame for frame in received if frame.opcode == CLOSE]
    echoes = [frame.payload for frame in received if frame.opcode != CLOSE]
    assert echoes in ([], [b"hello"] if "has ended" in rule else [])
    assert [close_code(frame) for frame in closes] in ([], *([code] for code in codes))
    # And it serves the next.
    with Wire.connect(server.address, DEADLINE_S) as following:
        following.send(Frame(TEXT, UTF8, mask=MASK))
        assert following.message() == (TEXT, UTF8)


def test_5_1_a_frame_without_mask(wire: Wire) -> None:
    wire.send(Frame(BINARY, b"hello"))
    assert [close_code(frame) for frame in wire.frames()] in ([], [PROTOCOL])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_5_2_lengths(wire: Wire, opcode: int, size: int) -> None:
    wire.send(Frame(opcode, b"x" * size, mask=MASK))
    frame = wire.receive()
    # A server masks nothing (5.1) and says the length in as few bytes as can be (5.2).
    width = 0 if size <= 125 else 2 if size <= 65535 else 8
    assert (frame.mask, frame.rsv) == (None, 0)
    if frame.fin:
        assert (frame.opcode, len(frame.payload), frame.length_bytes) == (opcode, size, width)


@pytest.mark.parametrize("mask", [b"\0\0\0\0", b"\xff\xff\xff\xff", MASK])
def test_5_3_any_mask(wire: Wire, mask: bytes) -> None:
    wire.send(Frame(TEXT, UTF8, mask=mask))
    assert wire.message() == (TEXT, UTF8)


def test_5_4_fragments(wire: Wire) -> None:
    wire.send(
        *masked(
            (Frame(TEXT, b"a", fin=False), Frame(CONTINUATION, b"", fin=False), Frame(CONTINUATION, b"b", fin=False))
        )
    )
    wire.send(*masked((Frame(CONTINUATION, b""),)))
    assert wire.message() == (TEXT, b"ab")


def test_5_4_control_frames_within_a_message(wire: Wire) -> None:
    wire.send(*masked((Frame(BINARY, b"he", fin=False), Frame(PING, b"now"), Frame(PONG, b"unasked"))))
    # The pong does not wait for the end of the message.
    pong = wire.receive()
    assert (pong.opcode, pong.payload) == (PONG, b"now")
    wire.send(*masked((Frame(CONTINUATION, b"llo"),)))
    assert wire.message() == (BINARY, b"hello")


def test_5_4_many_small_fragments(wire: Wire) -> None:
    text = UTF8 * 50
    pieces = [Frame(CONTINUATION if place else TEXT, text[place : place + 1], fin=False) for place in range(len(text))]
    wire.send(*masked((*pieces, Frame(CONTINUATION))))
    assert wire.message() == (TEXT, text)


def test_5_byte_by_byte(wire: Wire) -> None:
    wire.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in Frame(TEXT, UTF8, mask=MASK).encode():
        wire.connection.sendall(bytes([byte]))
    assert wire.message() == (TEXT, UTF8)


def test_many_messages_in_one_write(wire: Wire) -> None:
    wire.send(*(Frame(BINARY, bytes([number]), mask=MASK) for number in range(100)))
    assert [wire.message() for _ in range(100)] == [(BINARY, bytes([number])) for number in range(100)]


@pytest.mark.parametrize("payload", [b"", b"hello", b"\xff\x00" * 62, b"x" * 125])
def test_5_5_2_pings(wire: Wire, payload: bytes) -> None:
    wire.send(Frame(PING, payload, mask=MASK))
    assert wire.receive() == Frame(PONG, payload, length_bytes=0)


def test_5_5_3_the_last_of_many_pings(wire: Wire) -> None:
    wire.send(*(Frame(PING, bytes([number]), mask=MASK) for number in range(10)))
    # It may answer all or only the most recent of those that it has read.
    pongs = []
    while pongs[-1:] != [9]:
        frame = wire.receive()
        assert frame.opcode == PONG
        pongs.append(frame.payload[0])
    assert pongs == sorted(set(pongs))


def test_5_5_3_a_pong_that_nobody_asked_for(wire: Wire) -> None:
    wire.send(Frame(PONG, b"unasked", mask=MASK), Frame(TEXT, UTF8, mask=MASK))
    assert wire.receive() == Frame(TEXT, UTF8, length_bytes=0)


@pytest.mark.parametrize("place", range(1, len(UTF8)))
def test_5_6_a_text_cut_anywhere(wire: Wire, place: int) -> None:
    wire.send(*masked((Frame(TEXT, UTF8[:place], fin=False), Frame(CONTINUATION, UTF8[place:]))))
    assert wire.message() == (TEXT, UTF8)


@pytest.mark.parametrize("code", [None, *CODES])
def test_5_5_1_the_answer_to_a_close_frame(wire: Wire, code: int | None) -> None:
    wire.send(close_frame(code, b"" if code is None else UTF8, MASK))
    (answer,) = wire.frames()
    # "Typically echos the status code it received"; and the server closes TCP (7.1.1), or frames() would wait.
    assert (answer.opcode, answer.mask) == (CLOSE, None)
    assert close_code(answer) in ((None, 1000) if code is None else (code,))


@pytest.mark.parametrize("code", FORBIDDEN_CODES)
def test_7_4_codes_that_nobody_sends(wire: Wire, code: int) -> None:
    wire.send(close_frame(code, b"", MASK))
    assert [close_code(frame) for frame in wire.frames()] in ([], [PROTOCOL])


def test_5_5_1_nothing_counts_after_a_close_frame(wire: Wire) -> None:
    wire.send(close_frame(1000, b"", MASK), Frame(TEXT, b"too late", mask=MASK), Frame(PING, b"too late", mask=MASK))
    assert [(frame.opcode, close_code(frame)) for frame in wire.frames()] == [(CLOSE, 1000)]


def test_5_5_1_a_close_frame_within_a_message(wire: Wire) -> None:
    wire.send(*masked((Frame(TEXT, b"never to be ended", fin=False), close_frame(1000))))
    # Control frames may come within a message (5.4); that this one leaves it unfinished may be held against it or not.
    assert [close_code(frame) for frame in wire.frames() if frame.opcode == CLOSE] in ([1000], [PROTOCOL])


# Section 4.2.1, what a client's handshake must have; 4.4 for the version.
HANDSHAKE = {
    "Host": "localhost",
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Key": "Y3Jvc3N3aW5kIHBlZXJzIQ==",
    "Sec-WebSocket-Version": "13",
}


def status_for(server: Server, request: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to a handshake."""
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as connection:
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection.sendall(f"{request}\r\n{fields}\r\n".encode())
        first, answer = Wire(connection).head()
        return int(first.split()[1]), answer


@pytest.mark.parametrize("changes", [{}, {"Upgrade": "WebSocket"}, {"Connection": "keep-alive, upgrade"}])
def test_4_2_1_handshakes_that_are_right(server: Server, changes: dict[str, str]) -> None:
    status, answer = status_for(server, "GET /chat HTTP/1.1", HANDSHAKE | changes)
    assert (status, answer["sec-websocket-accept"]) == (101, accept_of(HANDSHAKE["Sec-WebSocket-Key"]))


@pytest.mark.parametrize("without", ["Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"])
def test_4_2_1_handshakes_that_lack_something(server: Server, without: str) -> None:
    headers = {name: value for name, value in HANDSHAKE.items() if name != without}
    assert 400 <= status_for(server, "GET / HTTP/1.1", headers)[0] < 500


def test_4_4_another_version(server: Server) -> None:
    status, answer = status_for(server, "GET / HTTP/1.1", HANDSHAKE | {"Sec-WebSocket-Version": "8"})
    assert 400 <= status < 500
    assert answer["sec-websocket-version"] == "13"


def test_4_2_1_only_get(server: Server) -> None:
    assert 400 <= status_for(server, "POST / HTTP/1.1", HANDSHAKE | {"Content-Length": "0"})[0] < 500


# Our client ---------------------------------------------------------------------------------------------------------

Answer = Callable[[bytes], Frames]


def meet(ours: Ours, answer: Answer, *, size: int = 5, payload: str = "binary") -> tuple[Called, list[Frame]]:
    """Answers the one message of our client with frames. Returns what it said of it, and the frames that followed."""
    received: list[Frame] = []

    def behave(connection: socket.socket) -> None:
        wire = Wire(connection)
        wire.answer()
        first = wire.receive()
        received.append(first)
        wire.send(*answer(first.payload))
        for frame in wire.frames():
            received.append(frame)
            if frame.opcode == CLOSE:
                # The server is the one to close TCP (7.1.1).
                wire.send(close_frame(close_code(frame)))
                connection.shutdown(socket.SHUT_WR)

    with bad_server(behave) as address:
        called = ours.call("websocket", address, (size,), payload=payload)
    assert received[0].fin
    assert all(frame.mask is not None and frame.rsv == 0 for frame in received), "5.1: a client masks every frame"
    return called, received[1:]


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_our_client_fails_the_connection(ours: Ours, rule: str) -> None:
    frames, codes = FORBIDDEN[rule]
    # It waits for more than any of these frames brings, so that none is refused for its size alone.
    called, received = meet(ours, lambda _: frames, size=70_000, payload="text")
    # "has ended": a message that is not the one it waits for has come before.
    odd = {"protocol", "too_large"} | ({"error"} if "has ended" in rule else set())
    assert called.outcome in odd, called.lines
    assert called.status == 1
    closes = [close_code(frame) for frame in received if frame.opcode == CLOSE]
    assert closes in ([], *([code] for code in codes)) or "has ended" in rule


def test_5_1_a_masked_frame_of_a_server(ours: Ours) -> None:
    called, received = meet(ours, lambda sent: (Frame(BINARY, sent, mask=MASK),))
    assert (called.outcome, called.status) == ("protocol", 1), called.lines
    assert [close_code(frame) for frame in received if frame.opcode == CLOSE] in ([], [PROTOCOL])


@pytest.mark.parametrize("payload", ["binary", "text"])
def test_5_3_a_new_mask_for_every_frame(ours: Ours, payload: str) -> None:
    masks = []
    for _ in range(3):
        _, received = meet(
            ours, lambda sent: (Frame(PING, b"a"), Frame(PING, b"b"), Frame(BINARY, sent)), payload=payload
        )
        masks += [frame.mask for frame in received]
    # Chosen from 2**32 at random: two alike among so few have a chance of less than one in ten millions.
    assert len(masks) == len(set(masks)) >= 3


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("payload", ["binary", "text"])
def test_5_4_a_fragmented_echo_with_control_frames(ours: Ours, payload: str, size: int) -> None:
    opcode = TEXT if payload == "text" else BINARY

    def answer(sent: bytes) -> Frames:
        step = max(1, size // 3)
        pieces = [sent[start : start + step] for start in range(0, size, step)] or [b""]
        frames: list[Frame] = []
        for number, piece in enumerate(pieces):
            frames += [Frame(PING, bytes([number])), Frame(PONG, b"unasked")]
            frames.append(Frame(CONTINUATION if number else opcode, piece, fin=False))
        return (*frames, Frame(CONTINUATION))

    called, received = meet(ours, answer, size=size, payload=payload)
    called.assert_ok((size,))
    pongs = [frame.payload[0] for frame in received if frame.opcode == PONG]
    # 5.5.3: all pings, or only the most recent, are answered.
    assert pongs == sorted(set(pongs))
    assert [close_code(frame) for frame in received if frame.opcode == CLOSE] == [1000]


@pytest.mark.parametrize("code", [None, *CODES])
def test_5_5_1_our_client_answers_a_close_frame(ours: Ours, code: int | None) -> None:
    called, received = meet(ours, lambda _: (close_frame(code, b"" if code is None else UTF8),))
    assert (called.outcome, called.status) == ("closed", 1), called.lines
    codes = [close_code(frame) for frame in received if frame.opcode == CLOSE]
    assert codes in ([[None], [1000]] if code is None else [[code]])


@pytest.mark.parametrize("code", FORBIDDEN_CODES)
def test_7_4_our_client_and_codes_that_nobody_sends(ours: Ours, code: int) -> None:
    called, received = meet(ours, lambda _: (close_frame(code),))
    assert called.outcome in ("protocol", "closed"), called.lines
    assert called.status == 1
    assert [close_code(frame) for frame in received if frame.opcode == CLOSE] in ([], [PROTOCOL])


@pytest.mark.parametrize(
    "answer",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: {accept}\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\n",
    ],
    ids=[
        *("status 200", "status 403", "no Upgrade", "no Connection", "no Accept"),
        *("another Accept", "another protocol", "an extension", "a subprotocol"),
    ],
)
def test_4_1_handshakes_that_a_client_refuses(ours: Ours, answer: str) -> None:
    requests = []

    def behave(connection: socket.socket) -> None:
        wire = Wire(connection)
        request, headers = wire.head()
        requests.append((request, headers))
        connection.sendall(answer.format(accept=accept_of(headers["sec-websocket-key"])).encode())
        # A client that does not mind gets its echo, and with it the outcome "ok".
        for frame in wire.frames():
            wire.send(Frame(frame.opcode, frame.payload))
            if frame.opcode == CLOSE:
                break

    with bad_server(behave) as address:
        called = ours.call("websocket", address, (5,), path="/asked/for?this=too")
    assert (called.outcome, called.status) == ("protocol", 1), called.lines
    ((request, headers),) = requests
    assert request == "GET /asked/for?this=too HTTP/1.1"
    assert {name: headers[name].lower() for name in ("upgrade", "connection", "sec-websocket-version")} == {
        "upgrade": "websocket",
        "connection": "upgrade",
        "sec-websocket-version": "13",
    }
