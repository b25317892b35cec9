"""Probes by ICMP echo (RFC 792, RFC 4443): their packets, and their socket.

A datagram ICMP socket needs no privilege, but the user's group has to be in net.ipv4.ping_group_range. A raw
socket needs CAP_NET_RAW.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from crosswind.errors import CrosswindError
from crosswind.live.probe import Reply
from crosswind.live.targets import Target

PAYLOAD_BYTES = 56
"""As ping's."""
_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence
_BODY = struct.Struct("!16sQ")  # the probe's owner and number
_REQUEST = {socket.AF_INET: 8, socket.AF_INET6: 128}
_REPLY = {socket.AF_INET: 0, socket.AF_INET6: 129}
_READ_BYTES = 2048
_READINGS = 3
_MOST_REPLIES = 1000
"""Maximum replies in a row: a flood must not block the probes."""

# From Linux's include/uapi: constants missing from Python's socket module.
_SO_TIMESTAMPNS = 35
_SOL_RAW, _ICMP_FILTER, _ICMP6_FILTER = 255, 1, 1
_IP_RECVTTL, _IP_TTL, _IPV6_RECVHOPLIMIT, _IPV6_HOPLIMIT = 12, 2, 51, 52
_TIMESPEC = struct.Struct("@qq")

PING_GROUPS = 'sysctl net.ipv4.ping_group_range="0 2147483647"'


def request(family: int, identifier: int, token: bytes, sequence: int) -> bytes:
    """An echo request. Args: token: 16 bytes to recognise our replies."""
    body = _BODY.pack(token, sequence).ljust(PAYLOAD_BYTES, b"\0")
    kind = _REQUEST[socket.AddressFamily(family)]
    head = _HEADER.pack(kind, 0, 0, identifier, sequence & 0xFFFF)
    return _HEADER.pack(kind, 0, checksum(head + body), identifier, sequence & 0xFFFF) + body


def sequence_of(family: int, packet: bytes, token: bytes) -> int | None:
    """The answered probe's number; None for every other packet. A raw IPv4 packet has its header."""
    echo = _without_ipv4_header(packet) if family == socket.AF_INET else packet
    if len(echo) < _HEADER.size + _BODY.size or echo[0] != _REPLY[socket.AddressFamily(family)] or echo[1] != 0:
        return None
    identifier, sequence = _BODY.unpack_from(echo, _HEADER.size)
    return int(sequence) if identifier == token else None


def checksum(packet: bytes) -> int:
    """The Internet checksum (RFC 1071): the complemented ones'-complement sum over 16-bit words."""
    padded = packet + b"\0" * (len(packet) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _without_ipv4_header(packet: bytes) -> bytes:
    """An ICMP packet has type 0 or 8 in its first byte, an IPv4 header version and length: 0x45 at least."""
    return packet[(packet[0] & 15) * 4 :] if packet and packet[0] >> 4 == 4 else packet


class IcmpProbe:
    """Sends echo requests to a host and reads its replies.

    Args: clock: monotonic, ns. wall_clock: CLOCK_REALTIME, ns, the clock for the kernel's packet timestamps.
    Raises: CrosswindError for a user without permission to send ICMP, or a missing route.
    """

    name = "icmp"
    description = f"ICMP echo requests of {PAYLOAD_BYTES} bytes; a reply's time is that at which the kernel took it"
    keeps_order = True
    tells_ways = False
    can_be_refused = False

    def __init__(self, target: Target, clock: Callable[[], int], wall_clock: Callable[[], int]) -> None:
        self.obstacle: str | None = None
        self._target, self._clock, self._wall_clock = target, clock, wall_clock
        self._socket = _opened(target)
        self._identifier = int.from_bytes(os.urandom(2), "big")
        self._token = os.urandom(16)

    def send(self, sequence: int) -> int | None:
        """Sends a probe. Returns: when it left; None where the kernel refused to send it."""
        packet = request(self._target.family, self._identifier, self._token, sequence)
        for _ in range(2):
            sent_ns = self._clock()
            try:
                self._socket.send(packet)
            except OSError as error:
                self.obstacle = error.strerror
                continue  # An ICMP error about an earlier probe is reported here too, once.
            return sent_ns
        return None

    def replies(self) -> Iterator[Reply]:
        """The new replies, with the kernel's receive times."""
        for _ in range(_MOST_REPLIES):
            try:
                packet, ancillary, *_ = self._socket.recvmsg(_READ_BYTES, 256)
            except BlockingIOError:
                return
            except OSError as error:
                self.obstacle = error.strerror
                continue  # An ICMP error for an earlier probe, now lost.
            now_ns, wall_ns = self._both_clocks()
            sequence = sequence_of(self._target.family, packet, self._token)
            if sequence is not None:
                age_ns, ttl = _stamp(ancillary, wall_ns)
                is_raw = self._target.family == socket.AF_INET and packet[0] >> 4 == 4
                yield Reply(sequence, now_ns - age_ns, packet[8] if is_raw else ttl)

    def _both_clocks(self) -> tuple[int, int]:
        """Both clocks at the same moment: the tightest of a few readings."""
        readings = [(self._clock(), self._wall_clock(), self._clock()) for _ in range(_READINGS)]
        before, wall_ns, after = min(readings, key=lambda reading: reading[2] - reading[0])
        return (before + after) // 2, wall_ns

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """There is nothing to give up: late replies are told from others by their number."""

    def file(self) -> int:
        """The descriptor to watch for replies."""
        return self._socket.fileno()

    def facts(self) -> Iterator[tuple[str, str]]:
        """A host answering echo requests says nothing else."""
        return iter(())

    def close(self) -> None:
        """Closes its socket."""
        self._socket.close()


def _stamp(ancillary: list[tuple[int, int, bytes]], wall_ns: int) -> tuple[int, int | None]:
    """How long ago a packet arrived, ns, and its TTL."""
    age_ns, ttl = 0, None
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS) and len(data) >= _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack_from(data)
            # Setting the wall clock in between gives an impossible age.
            age_ns = wall_ns - (seconds * 10**9 + nanoseconds)
            age_ns = age_ns if 0 <= age_ns < 10**9 else 0
        if (level, kind) in ((socket.IPPROTO_IP, _IP_TTL), (socket.IPPROTO_IPV6, _IPV6_HOPLIMIT)):
            ttl = int.from_bytes(data[:4], sys.byteorder)
    return age_ns, ttl


def _opened(target: Target) -> socket.socket:
    """A socket connected to the target. Raises: CrosswindError."""
    is_ipv4 = target.family == socket.AF_INET
    protocol = socket.IPPROTO_ICMP if is_ipv4 else socket.IPPROTO_ICMPV6
    opened = _permitted(target, protocol)
    opened.setblocking(False)
    with suppress(OSError):
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    with suppress(OSError):
        if is_ipv4:
            opened.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
        else:
            opened.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVHOPLIMIT, 1)
    if opened.type == socket.SOCK_RAW:
        _only_replies(opened, is_ipv4=is_ipv4)
    try:
        opened.connect(target.address)
    except OSError as error:
        opened.close()
        raise CrosswindError(f"cannot reach {target}: {error.strerror}", hint="is there a route to it?") from error
    return opened


def _permitted(target: Target, protocol: int) -> socket.socket:
    refused: OSError | None = None
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            return socket.socket(target.family, kind, protocol)
        except OSError as error:
            refused = error
    assert refused is not None
    if refused.errno in (errno.EPERM, errno.EACCES):
        raise CrosswindError(
            f"cannot send ICMP to {target}: this user may not", hint=f"as root: {PING_GROUPS}; or use --tcp PORT"
        ) from refused
    raise CrosswindError(f"cannot send ICMP to {target}: {refused.strerror}", hint="use --tcp PORT") from refused


def _only_replies(opened: socket.socket, *, is_ipv4: bool) -> None:
    """Has the kernel hand over echo replies alone. A set bit blocks a type of packets."""
    with suppress(OSError):
        if is_ipv4:
            opened.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~(1 << _REPLY[socket.AF_INET]) & 0xFFFFFFFF))
        else:
            kind = _REPLY[socket.AF_INET6]
            blocked = [0xFFFFFFFF] * 8
            blocked[kind >> 5] &= ~(1 << (kind & 31))
            opened.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *blocked))
