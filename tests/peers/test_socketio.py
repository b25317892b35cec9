"""Socket.IO against the official server and client: over WebSocket, upgraded to it, and over WebTransport in Deno."""

import pytest

from peers.implementations import Ours, Peers, sizes_of

PAYLOADS = pytest.mark.parametrize("payload", ["binary", "text"])
POLLING = pytest.mark.parametrize("polling", [False, True])
CARRIERS = pytest.mark.parametrize(
    ("transport", "peer"),
    [("socketio-websocket", "socketio"), ("socketio-webtransport", "deno-socketio")],
)


@PAYLOADS
@POLLING
def test_their_client(ours: Ours, peers: Peers, payload: str, polling: bool) -> None:
    transport = "socketio-websocket"
    sizes = sizes_of(transport, payload)
    transports = ["polling", "websocket"] if polling else ["websocket"]
    called = peers.call(
        "socketio", transport, ours.serve(transport), sizes, payload=payload, transports=transports, upgraded=polling
    )
    called.assert_ok(sizes)
    upgrades = [line["transport"] for line in called.lines if line.get("event") == "upgraded"]
    assert upgrades == (["websocket"] if polling else [])


@PAYLOADS
def test_their_client_does_not_wait_for_the_upgrade(ours: Ours, peers: Peers, payload: str) -> None:
    # The client's default: the first messages go by HTTP, the others by WebSocket.
    transport = "socketio-websocket"
    sizes = sizes_of(transport, payload)
    transports = ["polling", "websocket"]
    called = peers.call("socketio", transport, ours.serve(transport), sizes, payload=payload, transports=transports)
    called.assert_ok(sizes)


def test_their_client_loses_nothing_while_it_moves(ours: Ours, peers: Peers) -> None:
    transport = "socketio-websocket"
    transports = ["polling", "websocket"]
    called = peers.call("socketio", transport, ours.serve(transport), (1,), transports=transports, moving=True)
    called.assert_ok((1,))
    moved = [line for line in called.lines if line.get("event") == "moved"]
    # There were texts while it polled, between the answer to its probe and its move, and afterwards.
    assert moved == [{"event": "moved", "outcome": "ok", "moments": ["polling", "upgrading", "websocket"]}]


def test_our_client_loses_nothing_while_it_moves(ours: Ours, peers: Peers) -> None:
    transport = "socketio-websocket"
    # Our client takes them for answers, whose sizes and contents it checks.
    server = peers.serve("socketio", transport, unasked={"connection": [1, 2], "upgrading": [3], "upgrade": [4]})
    ours.call(transport, server, (1, 2, 3, 4), payload="text", polling=True).assert_ok((1, 2, 3, 4))
    assert server.until("upgraded")["transport"] == "websocket"


@PAYLOADS
def test_their_client_only_polls(ours: Ours, peers: Peers, payload: str) -> None:
    transport = "socketio-websocket"
    sizes = sizes_of(transport, payload)
    server = ours.serve(transport)
    # One after the other: the end of a session by polling leaves the server sound.
    for _ in range(2):
        called = peers.call("socketio", transport, server, sizes, payload=payload, transports=["polling"])
        called.assert_ok(sizes)
        assert called.lines[0] == {"event": "connected", "transport": "polling"}


@PAYLOADS
@POLLING
def test_our_client(ours: Ours, peers: Peers, payload: str, polling: bool) -> None:
    transport = "socketio-websocket"
    sizes = sizes_of(transport, payload)
    server = peers.serve("socketio", transport)
    ours.call(transport, server, sizes, payload=payload, polling=polling).assert_ok(sizes)
    first = server.until("connected")
    assert (first["transport"], first["protocol"]) == ("polling" if polling else "websocket", 4)
    if polling:
        assert server.until("upgraded")["transport"] == "websocket"
    assert server.until("closed")["reason"] in ("client namespace disconnect", "transport close")


@PAYLOADS
def test_their_client_over_webtransport(ours: Ours, peers: Peers, payload: str) -> None:
    transport = "socketio-webtransport"
    sizes = sizes_of(transport, payload)
    called = peers.call("deno-socketio", transport, ours.serve(transport), sizes, payload=payload)
    called.assert_ok(sizes)
    assert called.lines[0] == {"event": "connected", "transport": "webtransport"}


@PAYLOADS
def test_our_client_over_webtransport(ours: Ours, peers: Peers, payload: str) -> None:
    transport = "socketio-webtransport"
    sizes = sizes_of(transport, payload)
    server = peers.serve("deno-socketio", transport)
    ours.call(transport, server, sizes, payload=payload).assert_ok(sizes)
    assert server.until("connected") == {"event": "connected", "transport": "webtransport", "protocol": 4}


@pytest.mark.parametrize("name", ["message", "m", "é世🙂"])
def test_any_event_comes_back(ours: Ours, peers: Peers, name: str) -> None:
    server = ours.serve("socketio-websocket")
    peers.call("socketio", "socketio-websocket", server, (1, 126), name=name).assert_ok((1, 126))


@CARRIERS
def test_our_client_answers_heartbeats(ours: Ours, peers: Peers, transport: str, peer: str) -> None:
    # The server sends nothing back until it has a pong that it has not had before.
    server = peers.serve(peer, transport, ping_interval_ms=50, heartbeat=True)
    ours.call(transport, server, (1, 126, 125)).assert_ok((1, 126, 125))


@pytest.mark.parametrize("end", ["close", "kill"])
def test_our_client_loses_its_server(ours: Ours, peers: Peers, end: str) -> None:
    transport = "socketio-websocket"
    called = ours.call(transport, peers.serve("socketio", transport, end=end, after=2), (1, 126, 125))
    assert called.messages[:2] == [(1, "ok", 1), (126, "ok", 126)]
    assert called.outcome in ("reset", "closed"), called.lines
    assert called.status == 1


def test_our_client_is_sent_away_over_webtransport(ours: Ours, peers: Peers) -> None:
    server = peers.serve("deno-socketio", "socketio-webtransport", end="close", after=2)
    called = ours.call("socketio-webtransport", server, (1, 126, 125))
    assert called.messages[:2] == [(1, "ok", 1), (126, "ok", 126)]
    assert called.outcome in ("reset", "closed"), called.lines


@CARRIERS
def test_our_server_outlives_its_clients(ours: Ours, peers: Peers, transport: str, peer: str) -> None:
    server = ours.serve(transport)
    killed = peers.call(peer, transport, server, (126,), end="killed")
    assert (killed.messages, killed.status) == ([(126, "ok", 126)], -9)
    peers.call(peer, transport, server, (125,)).assert_ok((125,))


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
def test_our_client_refuses_a_certificate(ours: Ours, peers: Peers, bad: str) -> None:
    transport = "socketio-webtransport"
    server = peers.serve("deno-socketio", transport, certificate=peers.certificates.bad[bad])
    called = ours.call(transport, server, (1,))
    assert (called.outcome, called.status) == ("certificate", 1), called.lines
