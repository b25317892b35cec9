"""What a kind of probes is: it sends a probe to a host, and says when the answers came."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from crosswind.live.one_way import Arrivals


@dataclass(frozen=True)
class Reply:
    """A reply to a probe.

    Attributes: ttl: time to live, or hop limit, that is left; None where it is not known. arrivals: what the host says
        of the probes before; None where it says nothing. is_refusal: whether the host refuses the connection.
    """

    sequence: int
    received_ns: int
    ttl: int | None = None
    arrivals: Arrivals | None = None
    is_refusal: bool = False


class Probe(Protocol):
    """A kind of probes, opened towards one host.

    Attributes:
        name: "icmp", "tcp:443", "udp". description: what is sent, and what measures the time. keeps_order: whether
            reordering and duplicates can be seen. tells_ways: whether replies say which way probes were lost.
            can_be_refused: whether a host can answer that it refuses a probe. obstacle: what network or kernel last
            said of a probe that cannot arrive ("No route to host"); None where nobody said anything.
    """

    name: str
    description: str
    keeps_order: bool
    tells_ways: bool
    can_be_refused: bool
    obstacle: str | None

    def facts(self) -> Iterator[tuple[str, str]]:
        """What is known of the other end once the probe is closed: terms, and what each is."""

    def send(self, sequence: int) -> int | None:
        """Sends a probe. Returns: when it left, ns of the clock; None where the kernel refused to send it."""

    def replies(self) -> Iterator[Reply]:
        """The replies that have arrived since the last call."""

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """Gives up probes that were sent `timeout_ns` ago or earlier."""

    def file(self) -> int:
        """The descriptor that becomes readable when a reply is there."""

    def close(self) -> None:
        """Closes its sockets."""
