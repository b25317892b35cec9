"""QUIC streams and datagrams against quic-go and aioquic."""

import pytest

from peers.implementations import Ours, Peers, sizes_of
from peers.python.bad_servers import bad_udp_server

PEERS = pytest.mark.parametrize("peer", ["go", "aioquic"])
TRANSPORTS = pytest.mark.parametrize("transport", ["quic", "quic-datagram"])


@TRANSPORTS
@PEERS
def test_their_client(ours: Ours, peers: Peers, peer: str, transport: str) -> None:
    peers.call(peer, transport, ours.serve(transport), sizes_of(transport)).assert_ok(sizes_of(transport))


@TRANSPORTS
@PEERS
def test_our_client(ours: Ours, peers: Peers, peer: str, transport: str) -> None:
    server = peers.serve(peer, transport)
    ours.call(transport, server, sizes_of(transport)).assert_ok(sizes_of(transport))
    # It says goodbye, so that the server need not wait for its idle timeout (RFC 9000, section 10.2).
    assert server.until("closed")["code"] == 0


@PEERS
def test_their_client_keeps_one_stream(ours: Ours, peers: Peers, peer: str) -> None:
    peers.call(peer, "quic", ours.serve("quic"), sizes_of("quic"), kept=True).assert_ok(sizes_of("quic"))


@PEERS
def test_our_client_loses_its_server(ours: Ours, peers: Peers, peer: str) -> None:
    called = ours.call("quic", peers.serve(peer, "quic", kill_after=2), (1, 126), timeout_ns=2_000_000_000)
    assert called.messages[0] == (1, "ok", 1)
    # Nobody says that the other end is gone but ICMP, which QUIC does not trust (RFC 9000, section 21.1).
    assert (called.outcome, called.status) == ("timeout", 1), called.lines


@TRANSPORTS
@PEERS
def test_our_server_outlives_its_clients(ours: Ours, peers: Peers, peer: str, transport: str) -> None:
    server = ours.serve(transport)
    if transport == "quic":
        killed = peers.call(peer, transport, server, (126,), end="killed")
        assert (killed.messages, killed.status) == ([(126, "ok", 126)], -9)
    peers.call(peer, transport, server, (125,)).assert_ok((125,))


@PEERS
def test_a_datagram_that_fits_no_packet(ours: Ours, peers: Peers, peer: str) -> None:
    called = ours.call("quic-datagram", peers.serve(peer, "quic-datagram"), (125, 65535))
    assert called.messages[0] == (125, "ok", 125)
    assert (called.messages[1][:2], called.status) == ((65535, "too_large"), 1)


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
@TRANSPORTS
def test_our_client_refuses_a_certificate(ours: Ours, peers: Peers, transport: str, bad: str) -> None:
    server = peers.serve("go", transport, certificate=peers.certificates.bad[bad])
    called = ours.call(transport, server, (1,))
    assert (called.outcome, called.status) == ("certificate", 1), called.lines


@PEERS
def test_our_client_says_that_a_server_does_not_speak_its_protocol(ours: Ours, peers: Peers, peer: str) -> None:
    # RFC 9001, section 8.1: an endpoint ends the connection with no_application_protocol.
    called = ours.call("quic", peers.serve(peer, "http3"), (1,))
    assert (called.outcome, called.status) == ("protocol", 1), called.lines


def test_nobody_answers(ours: Ours) -> None:
    with bad_udp_server(lambda _: None) as address:
        called = ours.call("quic", address, (1,), insecure=True, timeout_ns=300_000_000)
    assert (called.outcome, called.status) == ("timeout", 1), called.lines


def test_nonsense_is_no_answer(ours: Ours) -> None:
    # RFC 9000, section 5.2.1: packets that belong to no connection are discarded.
    with bad_udp_server(lambda packet: bytes(reversed(packet))) as address:
        called = ours.call("quic", address, (1,), insecure=True, timeout_ns=300_000_000)
    assert (called.outcome, called.status) == ("timeout", 1), called.lines


def test_a_server_of_no_known_version(ours: Ours) -> None:
    def negotiate(packet: bytes) -> bytes:
        # A version negotiation packet (RFC 9000, section 17.2.1): the client's ids the other way round, and a version
        # that is reserved for exercises like this one (section 15).
        to, end = packet[6 : 6 + packet[5]], 6 + packet[5]
        by = packet[end + 1 : end + 1 + packet[end]]
        return b"\x80\0\0\0\0" + bytes([len(by)]) + by + bytes([len(to)]) + to + b"\x1a\x2a\x3a\x4a"

    with bad_udp_server(negotiate) as address:
        called = ours.call("quic", address, (1,), insecure=True, timeout_ns=5_000_000_000)
    assert (called.outcome, called.status) == ("protocol", 1), called.lines
