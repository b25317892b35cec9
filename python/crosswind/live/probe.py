"""The interface for a kind of probes: sends to a host, and timestamps the answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from crosswind.live.one_way import Arrivals


@dataclass(frozen=True)
class Reply:
    """A reply to a probe.

    Attributes: ttl: remaining time to live, or hop limit; None if unknown. arrivals: the host's report on earlier
        probes, if any. is_refusal: whether the host refuses the connection.
    """

    sequence: int
    received_ns: int
    ttl: int | None = None
    arrivals: Arrivals | None = None
    is_refusal: bool = False


class Probe(Protocol):
    """A kind of probes, opened towards one host.

    Attributes:
        name: "icmp", "tcp:443", "udp". description: the packets, and the clock. keeps_order: whether reordering and
            duplicates can be seen. tells_ways: whether replies tell forward from reverse loss. can_be_refused: whether
            a host can refuse a probe. obstacle: the last network or kernel error for an undeliverable probe ("No route
            to host"), if any.
    """

    name: str
    description: str
    keeps_order: bool
    tells_ways: bool
    can_be_refused: bool
    obstacle: str | None

    def facts(self) -> Iterator[tuple[str, str]]:
        """Facts about the other end after closing: terms, and their values."""

    def send(self, sequence: int) -> int | None:
        """Sends a probe. Returns: when it left, ns of the clock; None where the kernel refused to send it."""

    def replies(self) -> Iterator[Reply]:
        """The replies since the last call."""

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """Gives up probes sent `timeout_ns` ago or earlier."""

    def file(self) -> int:
        """The descriptor to watch for replies."""

    def close(self) -> None:
        """Closes its sockets."""
