"""Probes by TCP: the time from a SYN to its SYN-ACK. No data is sent; the connection is closed at once.

A host answering with RST, because no service listens on the port, refuses the connection. The kernel retransmits a
SYN after 1 s (RFC 6298), so a longer probe has lost a packet: it counts as lost.
"""

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from crosswind.errors import CrosswindError
from crosswind.live.probe import Reply
from crosswind.live.targets import Target

_REFUSED = (errno.ECONNREFUSED, errno.ECONNRESET)

# struct tcp_info of Linux's include/uapi/linux/tcp.h: eight bytes, then 32-bit numbers.
_INFO_BYTES, _RTT_PLACE, _RETRANSMITS_PLACE = 104, 8 + 4 * 15, 8 + 4 * 23


@dataclass(frozen=True)
class _Opened:
    """A started connection. refused_ns: time of an immediate refusal by the kernel."""

    socket: socket.socket
    sequence: int
    sent_ns: int
    refused_ns: int | None


class TcpProbe:
    """Opens connections to a port of a host. Args: clock: monotonic, ns."""

    keeps_order = False
    """Each probe is its own connection, without an order between their packets."""
    tells_ways = False
    can_be_refused = True

    def __init__(self, target: Target, port: int, clock: Callable[[], int]) -> None:
        self.name = f"tcp:{port}"
        self.description = f"TCP connections to port {port}, from SYN to SYN-ACK as the kernel measures it"
        self.obstacle: str | None = None
        self._target, self._clock = target, clock
        self._address = (target.number, port, *target.address[2:])
        self._open: dict[int, _Opened] = {}
        self._poll = select.epoll()

    def send(self, sequence: int) -> int | None:
        """Begins a connection. Returns: when; None where the kernel refused to."""
        try:
            connection = socket.socket(self._target.family, socket.SOCK_STREAM)
        except OSError as error:
            raise CrosswindError(
                f"cannot open a socket: {error.strerror}", hint="`ulimit -n` may be too low"
            ) from error
        connection.setblocking(False)
        sent_ns = self._clock()
        status = connection.connect_ex(self._address)
        # A port of this machine refuses at once, and the socket does not say so again.
        refused_ns = self._clock() if status in _REFUSED else None
        if status not in (0, errno.EINPROGRESS, *_REFUSED):
            self.obstacle = os.strerror(status)
            connection.close()
            return None
        self._open[connection.fileno()] = _Opened(connection, sequence, sent_ns, refused_ns)
        self._poll.register(connection.fileno(), select.EPOLLOUT)
        return sent_ns

    def replies(self) -> Iterator[Reply]:
        """The answered connections, now closed."""
        for number, _ in self._poll.poll(0):
            opened = self._open.pop(number)
            reply = self._reply(opened)
            self._poll.unregister(number)
            opened.socket.close()
            if reply is not None:
                yield reply

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """Closes connections after their timeout, so no SYN is retransmitted."""
        for number, opened in list(self._open.items()):
            if now_ns - opened.sent_ns < timeout_ns:
                break
            self._poll.unregister(number)
            opened.socket.close()
            del self._open[number]

    def file(self) -> int:
        """The descriptor to watch for replies."""
        return self._poll.fileno()

    def facts(self) -> Iterator[tuple[str, str]]:
        """A host accepting connections says nothing else."""
        return iter(())

    def close(self) -> None:
        """Closes all connections."""
        for opened in self._open.values():
            opened.socket.close()
        self._poll.close()

    def _reply(self, opened: _Opened) -> Reply | None:
        """A ready connection's outcome; None if lost."""
        now_ns = self._clock()
        if opened.refused_ns is not None:
            return Reply(opened.sequence, opened.refused_ns, is_refusal=True)
        status = opened.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if status in _REFUSED:
            return Reply(opened.sequence, now_ns, is_refusal=True)
        if status != 0:
            self.obstacle = os.strerror(status)
            return None
        rtt_ns = _kernel_rtt(opened.socket, now_ns - opened.sent_ns)
        return None if rtt_ns is None else Reply(opened.sequence, opened.sent_ns + rtt_ns)


def _kernel_rtt(connection: socket.socket, measured_ns: int) -> int | None:
    """From SYN to SYN-ACK by the kernel's clock, ns, undelayed by busy processes; None after two SYNs.

    Args: measured_ns: this process's measurement.
    """
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    if len(info) < _INFO_BYTES:
        return measured_ns
    (rtt_us,), (retransmits,) = (struct.unpack_from("@I", info, place) for place in (_RTT_PLACE, _RETRANSMITS_PLACE))
    if retransmits:
        return None
    return min(measured_ns, rtt_us * 1000) if rtt_us else measured_ns
