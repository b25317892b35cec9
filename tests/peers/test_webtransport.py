"""WebTransport over HTTP/3 against webtransport-go and aioquic: streams and datagrams."""

import pytest

from peers.implementations import Ours, Peers, sizes_of

SERVERS = pytest.mark.parametrize("peer", ["go", "aioquic"])
TRANSPORTS = pytest.mark.parametrize("transport", ["webtransport", "webtransport-datagram"])


@TRANSPORTS
def test_their_client(ours: Ours, peers: Peers, transport: str) -> None:
    sizes = sizes_of(transport)
    peers.call("aioquic", transport, ours.serve(transport), sizes, path="/any/path?at=all").assert_ok(sizes)


def test_a_client_of_a_later_draft_leaves_in_peace(ours: Ours, peers: Peers) -> None:
    server = ours.serve("webtransport")
    called = peers.call("go", "webtransport", server, (1,))
    # draft-ietf-webtrans-http3-16 needs an extension of QUIC that our library for it has not: RESET_STREAM_AT.
    assert "stream reset partial delivery" in called.outcome, called.lines
    peers.call("aioquic", "webtransport", server, (126,)).assert_ok((126,))


@TRANSPORTS
@SERVERS
def test_our_client(ours: Ours, peers: Peers, peer: str, transport: str) -> None:
    sizes = sizes_of(transport)
    server = peers.serve(peer, transport)
    ours.call(transport, server, sizes).assert_ok(sizes)
    assert "code" in server.until("closed")


def test_their_client_keeps_one_stream(ours: Ours, peers: Peers) -> None:
    sizes = sizes_of("webtransport")
    peers.call("aioquic", "webtransport", ours.serve("webtransport"), sizes, kept=True).assert_ok(sizes)


def test_our_client_asks_for_its_path(ours: Ours, peers: Peers) -> None:
    server = peers.serve("aioquic", "webtransport")
    ours.call("webtransport", server, (1,), path="/here").assert_ok((1,))
    assert server.until("session")["path"] == "/here"


@SERVERS
def test_our_client_loses_its_server(ours: Ours, peers: Peers, peer: str) -> None:
    server = peers.serve(peer, "webtransport", kill_after=2)
    called = ours.call("webtransport", server, (1, 126), timeout_ns=2_000_000_000)
    assert called.messages[0] == (1, "ok", 1)
    assert (called.outcome, called.status) == ("timeout", 1), called.lines


def test_our_server_outlives_its_clients(ours: Ours, peers: Peers) -> None:
    server = ours.serve("webtransport")
    killed = peers.call("aioquic", "webtransport", server, (126,), end="killed")
    assert (killed.messages, killed.status) == ([(126, "ok", 126)], -9)
    peers.call("aioquic", "webtransport", server, (125,)).assert_ok((125,))


@SERVERS
def test_a_datagram_that_fits_no_packet(ours: Ours, peers: Peers, peer: str) -> None:
    called = ours.call("webtransport-datagram", peers.serve(peer, "webtransport-datagram"), (125, 65535))
    assert called.messages[0] == (125, "ok", 125)
    assert (called.messages[1][:2], called.status) == ((65535, "too_large"), 1)


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
def test_our_client_refuses_a_certificate(ours: Ours, peers: Peers, bad: str) -> None:
    server = peers.serve("go", "webtransport", certificate=peers.certificates.bad[bad])
    called = ours.call("webtransport", server, (1,))
    assert (called.outcome, called.status) == ("certificate", 1), called.lines


def test_a_server_without_webtransport(ours: Ours, peers: Peers) -> None:
    # Raw QUIC with another ALPN: there is no HTTP/3, and so no WebTransport.
    called = ours.call("webtransport", peers.serve("go", "quic"), (1,))
    assert (called.outcome, called.status) == ("protocol", 1), called.lines
