"""Probes by TCP: the time from a SYN to its SYN-ACK. No data is sent; the connection is closed at once.

A host that answers with RST, because nobody listens on the port, has answered too. A SYN is retransmitted by the kernel
after 1 s (RFC 6298), so that a probe which took longer has lost a packet: it counts as lost.
"""

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Iterator

from crosswind.errors import CrosswindError
from crosswind.live.probe import Reply
from crosswind.live.targets import Target

_CLOSED = (errno.ECONNREFUSED, errno.ECONNRESET)

# struct tcp_info of Linux's include/uapi/linux/tcp.h: eight bytes, then 32-bit numbers.
_INFO_BYTES, _RTT_PLACE, _RETRANSMITS_PLACE = 104, 8 + 4 * 15, 8 + 4 * 23


class TcpProbe:
    """Opens connections to a port of a host.

    Args: clock: monotonic, ns.
    """

    keeps_order = False
    """Each probe is a connection of its own, so that nothing says in which order their packets should arrive."""
    tells_ways = False

    def __init__(self, target: Target, port: int, clock: Callable[[], int]) -> None:
        self.name = f"tcp:{port}"
        self.description = f"TCP connections to port {port}, from SYN to SYN-ACK as the kernel measures it"
        self.refusal: str | None = None
        self._target, self._clock = target, clock
        self._address = (target.number, port, *target.address[2:])
        self._open: dict[int, tuple[socket.socket, int, int]] = {}
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
        if status not in (0, errno.EINPROGRESS, *_CLOSED):
            self.refusal = os.strerror(status)
            connection.close()
            return None
        self._open[connection.fileno()] = (connection, sequence, sent_ns)
        self._poll.register(connection.fileno(), select.EPOLLOUT)
        return sent_ns

    def replies(self) -> Iterator[Reply]:
        """The connections that have been answered, which are closed."""
        for number, _ in self._poll.poll(0):
            connection, sequence, sent_ns = self._open.pop(number)
            now_ns = self._clock()
            status = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            rtt_ns = _kernel_rtt(connection, now_ns - sent_ns) if status == 0 else now_ns - sent_ns
            self._poll.unregister(number)
            connection.close()
            if status != 0 and status not in _CLOSED:
                self.refusal = os.strerror(status)
            elif rtt_ns is not None:
                yield Reply(sequence, sent_ns + rtt_ns, None)

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """Closes connections whose timeout is over, so that no SYN is retransmitted."""
        for number, (connection, _, sent_ns) in list(self._open.items()):
            if now_ns - sent_ns < timeout_ns:
                break
            self._poll.unregister(number)
            connection.close()
            del self._open[number]

    def file(self) -> int:
        """The descriptor that becomes readable when a reply is there."""
        return self._poll.fileno()

    def facts(self) -> Iterator[tuple[str, str]]:
        """Nothing is known of a host that only answers."""
        return iter(())

    def close(self) -> None:
        """Closes all connections."""
        for connection, _, _ in self._open.values():
            connection.close()
        self._poll.close()


def _kernel_rtt(connection: socket.socket, measured_ns: int) -> int | None:
    """From SYN to SYN-ACK as the kernel measured it, ns, which no busy process delays; None where it sent two SYNs.

    Args: measured_ns: the same as this process measured it.
    """
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    if len(info) < _INFO_BYTES:
        return measured_ns
    (rtt_us,), (retransmits,) = (struct.unpack_from("@I", info, place) for place in (_RTT_PLACE, _RETRANSMITS_PLACE))
    if retransmits:
        return None
    return min(measured_ns, rtt_us * 1000) if rtt_us else measured_ns
