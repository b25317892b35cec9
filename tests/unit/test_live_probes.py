"""The packets and sockets of `crosswind live`: echo requests and replies by bytes, both kinds of probes on loopback."""

import errno
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from crosswind.errors import CrosswindError, UsageError
from crosswind.live import icmp
from crosswind.live.icmp import IcmpProbe, checksum, request, sequence_of
from crosswind.live.probe import Probe, Reply
from crosswind.live.targets import Target, find_target
from crosswind.live.tcp_connect import TcpProbe

TOKEN = bytes(range(16))
LOCAL = {"ipv4": "127.0.0.1", "ipv6": "::1"}
FAMILIES = pytest.mark.parametrize("family", ["ipv4", "ipv6"])


def answer(packet: bytes, kind: int) -> bytes:
    """What a host sends back: the request with another type."""
    return bytes([kind]) + packet[1:]


def test_the_checksum_is_that_of_rfc_1071() -> None:
    # Its section 3 adds up these bytes to ddf2.
    assert checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xDDF2 ^ 0xFFFF
    assert checksum(b"\x01") == 0xFEFF


@pytest.mark.parametrize(("family", "kind"), [(socket.AF_INET, 8), (socket.AF_INET6, 128)])
def test_a_request_has_its_fields_where_the_rfcs_have_them(family: int, kind: int) -> None:
    packet = request(family, 0x1234, TOKEN, 0x1_0007)
    assert struct.unpack("!BBHHH", packet[:8])[::3] == (kind, 0x1234)
    assert packet[6:8] == b"\x00\x07"
    assert checksum(packet) == 0
    assert len(packet) == 8 + 56


def test_a_reply_is_told_from_every_other_packet() -> None:
    packet = request(socket.AF_INET, 1, TOKEN, 70_000)
    reply = answer(packet, 0)
    header = bytes.fromhex("4500005400000000400100007f0000017f000001")
    assert sequence_of(socket.AF_INET, reply, TOKEN) == 70_000
    assert sequence_of(socket.AF_INET, header + reply, TOKEN) == 70_000
    assert sequence_of(socket.AF_INET6, answer(packet, 129), TOKEN) == 70_000
    others = [packet, header + packet, reply[:31], b"", header, answer(request(socket.AF_INET, 1, bytes(16), 1), 0)]
    assert [sequence_of(socket.AF_INET, other, TOKEN) for other in others] == [None] * len(others)


def one_reply(probe: Probe, sequence: int) -> Reply:
    """Sends a probe and waits for its reply; the test's timeout bounds it."""
    assert probe.send(sequence) is not None
    while True:
        select.select([probe.file()], [], [])
        for reply in probe.replies():
            return reply


@FAMILIES
def test_this_machine_answers_echo_requests(family: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root for a raw socket")
    probe = IcmpProbe(find_target(LOCAL[family]), time.monotonic_ns, time.time_ns)
    sent_ns = time.monotonic_ns()
    reply = one_reply(probe, 5)
    assert (reply.sequence, reply.ttl) == (5, 64)
    assert sent_ns < reply.received_ns < time.monotonic_ns()
    probe.close()


@pytest.fixture
def listening() -> Iterator[Callable[[str], int]]:
    """Listens on a port of this machine."""
    opened = []

    def listen(family: str) -> int:
        server = socket.create_server((LOCAL[family], 0), family=find_target(LOCAL[family]).family)
        opened.append(server)
        return int(server.getsockname()[1])

    yield listen
    for server in opened:
        server.close()


@FAMILIES
def test_a_port_that_listens_answers_a_syn(listening: Callable[[str], int], family: str) -> None:
    probe = TcpProbe(find_target(LOCAL[family]), listening(family), time.monotonic_ns)
    sent_ns = time.monotonic_ns()
    reply = one_reply(probe, 3)
    assert (reply.sequence, reply.ttl, reply.is_refusal) == (3, None, False)
    assert sent_ns < reply.received_ns < time.monotonic_ns()
    assert list(probe.replies()) == []
    probe.close()


@FAMILIES
def test_a_port_where_nobody_listens_refuses(family: str) -> None:
    target = find_target(LOCAL[family])
    with socket.socket(target.family) as bound:
        bound.bind((LOCAL[family], 0))
        probe = TcpProbe(target, bound.getsockname()[1], time.monotonic_ns)
        sent_ns = time.monotonic_ns()
        reply = one_reply(probe, 7)
        assert (reply.sequence, reply.is_refusal) == (7, True)
        assert sent_ns < reply.received_ns < time.monotonic_ns()
        probe.close()


def test_a_connection_whose_timeout_is_over_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(socket.socket):
        def connect_ex(self, address: object) -> int:
            return errno.EINPROGRESS

    monkeypatch.setattr(socket, "socket", Silent)
    now_ns = 0
    probe = TcpProbe(find_target("127.0.0.1"), 9, lambda: now_ns)
    for sequence in range(3):
        now_ns = sequence * 10
        assert probe.send(sequence) == now_ns
    probe.forget(110, 100)
    assert [opened.sequence for opened in probe._open.values()] == [2]
    probe.close()


def test_who_may_not_send_icmp_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(icmp.socket, "socket", refuse)
    with pytest.raises(CrosswindError, match=r"cannot send ICMP to 127\.0\.0\.1: this user may not") as raised:
        IcmpProbe(Target("127.0.0.1", socket.AF_INET, ("127.0.0.1", 0)), time.monotonic_ns, time.time_ns)
    assert raised.value.hint == 'as root: sysctl net.ipv4.ping_group_range="0 2147483647"; or use --tcp PORT'
    assert raised.value.exit_code == 1


def test_a_datagram_socket_comes_first_and_a_raw_one_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse_the_first(family: int, kind: int, protocol: int) -> socket.socket:
        asked.append(kind)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(icmp.socket, "socket", refuse_the_first)
    with pytest.raises(CrosswindError):
        IcmpProbe(Target("127.0.0.1", socket.AF_INET, ("127.0.0.1", 0)), time.monotonic_ns, time.time_ns)
    assert asked == [socket.SOCK_DGRAM, socket.SOCK_RAW]


def test_there_is_no_such_host() -> None:
    for name in ("host.invalid", "300.1.1.1", "a" * 300):
        with pytest.raises(UsageError, match="there is no host"):
            find_target(name)
    with pytest.raises(UsageError, match=r"there is no host 127\.0\.0\.1 with ipv6"):
        find_target("127.0.0.1", family="ipv6")


def test_an_error_about_an_earlier_probe_does_not_keep_the_next_one_from_being_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Answered:
        """A socket that reports what the network said of earlier probes, as often as it is told."""

        def __init__(self, errors: int) -> None:
            self.errors = errors
            self.sent: list[bytes] = []

        def send(self, packet: bytes) -> None:
            if self.errors:
                self.errors -= 1
                raise OSError(errno.EHOSTUNREACH, "No route to host")
            self.sent.append(packet)

    for errors, is_sent in ((0, True), (1, True), (2, False)):
        opened = Answered(errors)
        monkeypatch.setattr(icmp, "_opened", lambda _, opened=opened: opened)
        probe = IcmpProbe(find_target("127.0.0.1"), lambda: 7, time.time_ns)
        assert probe.send(0) == (7 if is_sent else None)
        assert len(opened.sent) == is_sent
        assert probe.obstacle == ("No route to host" if errors else None)
