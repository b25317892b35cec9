"""WebSocket against the packages ws (Node) and websockets (Python)."""

import json

import pytest

from peers.implementations import SIZES, Ours, Peers
from peers.python.frames import BINARY, CLOSE, MASK, PING, PONG, Frame, Wire

PEERS = pytest.mark.parametrize("peer", ["ws", "websockets"])
TRANSPORTS = pytest.mark.parametrize("transport", ["websocket", "wss"])
PAYLOADS = pytest.mark.parametrize("payload", ["binary", "text"])
DEADLINE_S = 20.0


@PAYLOADS
@TRANSPORTS
@PEERS
def test_their_client(ours: Ours, peers: Peers, peer: str, transport: str, payload: str) -> None:
    server = ours.serve(transport)
    # 125 bytes is the most that a ping may carry (RFC 6455, section 5.5).
    pings = ["hello", "é世🙂", "x" * 125]
    called = peers.call(peer, transport, server, SIZES, payload=payload, path="/any/path?at=all", pings=pings)
    called.assert_ok(SIZES)
    assert called.pongs == pings
    assert called.closed["code"] == 1000


@PAYLOADS
@TRANSPORTS
@PEERS
def test_our_client(ours: Ours, peers: Peers, peer: str, transport: str, payload: str) -> None:
    server = peers.serve(peer, transport)
    ours.call(transport, server, SIZES, payload=payload).assert_ok(SIZES)
    assert server.until("closed")["code"] == 1000


@TRANSPORTS
@PEERS
def test_our_client_answers_pings(ours: Ours, peers: Peers, peer: str, transport: str) -> None:
    # The server sends nothing back until it has its pong.
    server = peers.serve(peer, transport, ping="wie geht's, 世界?")
    ours.call(transport, server, (1, 126, 65536)).assert_ok((1, 126, 65536))
    assert [server.until("pong")["payload"] for _ in range(3)] == ["wie geht's, 世界?"] * 3


@PAYLOADS
@PEERS
def test_their_client_sends_fragments(ours: Ours, peers: Peers, peer: str, payload: str) -> None:
    # Binary fragments of 1 byte at most, and some that need each of the length fields.
    sizes = (2, 125, 65536, 1_000_000)
    peers.call(peer, "websocket", ours.serve("websocket"), sizes, payload=payload, fragments=7).assert_ok(sizes)


@PEERS
def test_their_client_offers_compression(ours: Ours, peers: Peers, peer: str) -> None:
    # RFC 7692: an extension that the server does not accept is not used.
    peers.call(peer, "websocket", ours.serve("websocket"), SIZES, payload="text", deflate=True).assert_ok(SIZES)


@PEERS
def test_their_server_could_compress(ours: Ours, peers: Peers, peer: str) -> None:
    ours.call("websocket", peers.serve(peer, "websocket", deflate=True), SIZES, payload="text").assert_ok(SIZES)


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
@PEERS
def test_their_server_closes(ours: Ours, peers: Peers, peer: str, code: int) -> None:
    server = peers.serve(peer, "websocket", end="close", after=2, code=code)
    called = ours.call("websocket", server, (1, 126, 125))
    assert called.messages[:2] == [(1, "ok", 1), (126, "ok", 126)]
    assert (called.outcome, called.status) == ("closed", 1), called.lines
    # Section 5.5.1: the answer to a close frame is a close frame, typically with its code.
    assert server.until("closed")["code"] == code


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
@PEERS
def test_their_client_closes(ours: Ours, peers: Peers, peer: str, code: int) -> None:
    called = peers.call(peer, "websocket", ours.serve("websocket"), (1,), code=code)
    assert called.closed == {"event": "closed", "outcome": "ok", "code": code}


@pytest.mark.parametrize("end", ["reset", "kill"])
@TRANSPORTS
@PEERS
def test_our_client_loses_its_server(ours: Ours, peers: Peers, peer: str, transport: str, end: str) -> None:
    server = peers.serve(peer, transport, end=end, after=2)
    called = ours.call(transport, server, (1, 126, 125))
    assert called.messages[:2] == [(1, "ok", 1), (126, "ok", 126)]
    assert called.outcome in ("reset", "closed"), called.lines
    assert called.status == 1


@pytest.mark.parametrize(
    ("peer", "transport", "end"),
    [
        ("ws", "websocket", "reset"),
        ("ws", "websocket", "killed"),
        ("ws", "wss", "killed"),  # and not "reset": TLS sockets of Node's clients cannot be
        ("websockets", "websocket", "reset"),
        ("websockets", "websocket", "killed"),
        ("websockets", "wss", "reset"),
        ("websockets", "wss", "killed"),
    ],
)
def test_our_server_outlives_its_clients(ours: Ours, peers: Peers, peer: str, transport: str, end: str) -> None:
    server = ours.serve(transport)
    lost = peers.call(peer, transport, server, (126,), end=end)
    assert lost.messages == [(126, "ok", 126)]
    peers.call(peer, transport, server, (125,)).assert_ok((125,))


def test_our_server_goes_on_serving_one_while_it_loses_another(ours: Ours, peers: Peers) -> None:
    server = ours.serve("websocket")
    with Wire.connect(server.address, DEADLINE_S) as stays:
        for end in ("reset", "killed"):
            peers.call("ws", "websocket", server, (1,), end=end)
            stays.send(Frame(BINARY, b"here", mask=MASK))
            assert stays.message() == (BINARY, b"here")
        stays.send(Frame(PING, b"and well", mask=MASK))
        assert stays.receive() == Frame(PONG, b"and well", length_bytes=0)
        stays.send(Frame(CLOSE, b"\x03\xe8", mask=MASK))
        assert stays.receive() == Frame(CLOSE, b"\x03\xe8", length_bytes=0)


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
def test_our_client_refuses_a_certificate(ours: Ours, peers: Peers, bad: str) -> None:
    server = peers.serve("websockets", "wss", certificate=peers.certificates.bad[bad])
    called = ours.call("wss", server, (1,))
    assert (called.outcome, called.status) == ("certificate", 1), called.lines


def test_many_clients_at_once(ours: Ours, peers: Peers) -> None:
    server = ours.serve("wss")
    options = {"transport": "wss", "address": server.address, "trust_path": str(server.trust_path), "sizes": SIZES}
    started = [
        peers.programs.start([*peers.command(peer, "call"), json.dumps(options)]) for peer in ("ws", "websockets") * 4
    ]
    for program in started:
        lines = program.lines()
        assert [(line["size"], line["outcome"]) for line in lines if "size" in line] == [(s, "ok") for s in SIZES]
