"""The peers against each other: what a test of Crosswind may take for granted."""

import pytest

from peers.implementations import Peers, sizes_of

WEBSOCKET = [("ws", "websockets"), ("websockets", "ws")]
QUIC = [("aioquic", "go"), ("go", "aioquic")]
TRANSPORTS = ["quic", "quic-datagram", "http3"]


@pytest.mark.parametrize("payload", ["binary", "text"])
@pytest.mark.parametrize("transport", ["websocket", "wss"])
@pytest.mark.parametrize(("client", "server"), WEBSOCKET)
def test_websocket(peers: Peers, client: str, server: str, transport: str, payload: str) -> None:
    other = peers.serve(server, transport, ping="knock")
    called = peers.call(client, transport, other, sizes_of(transport), payload=payload, pings=["hello"])
    called.assert_ok(sizes_of(transport))
    assert called.pongs == ["hello"]
    assert [other.until("pong")["payload"] for _ in sizes_of(transport)] == ["knock"] * len(sizes_of(transport))
    assert other.until("closed") == {"event": "closed", "code": 1000, "reason": "done"}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("client", "server"), QUIC)
def test_quic(peers: Peers, client: str, server: str, transport: str) -> None:
    other = peers.serve(server, transport)
    peers.call(client, transport, other, sizes_of(transport)).assert_ok(sizes_of(transport))


@pytest.mark.parametrize("client", ["aioquic", "go"])
@pytest.mark.parametrize("transport", ["webtransport", "webtransport-datagram"])
def test_webtransport(peers: Peers, client: str, transport: str) -> None:
    # webtransport-go's client needs an extension of QUIC that aioquic's server has not.
    peers.call(client, transport, peers.serve("go", transport), sizes_of(transport)).assert_ok(sizes_of(transport))


@pytest.mark.parametrize("transport", ["h2c", "http2"])
def test_http(peers: Peers, transport: str) -> None:
    peers.call("http", transport, peers.serve("http", transport), sizes_of(transport)).assert_ok(sizes_of(transport))


@pytest.mark.parametrize("transports", [["websocket"], ["polling", "websocket"]])
def test_socketio(peers: Peers, transports: list[str]) -> None:
    other = peers.serve("socketio", "socketio-websocket")
    called = peers.call(
        "socketio", "socketio-websocket", other, sizes_of(""), transports=transports, upgraded="polling" in transports
    )
    called.assert_ok(sizes_of(""))


@pytest.mark.parametrize("payload", ["binary", "text"])
def test_socketio_over_webtransport(peers: Peers, payload: str) -> None:
    other = peers.serve("deno-socketio", "socketio-webtransport")
    sizes = sizes_of("socketio-webtransport", payload)
    peers.call("deno-socketio", "socketio-webtransport", other, sizes, payload=payload).assert_ok(sizes)
