"""A path's total effect on packets: all Python knows about its elements.

crosswind-cell computes it from a path's settings (`crates/path/src/effect.rs`, docs/cell-protocol.md): models, designs
and forecasts read it, so an element new to them still delays and loses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any, Self

DIRECTION_NAMES = {"forward": "client to server", "reverse": "server to client"}
DIRECTIONS = tuple(DIRECTION_NAMES)
"""Client to server, and server to client."""

SAME_SHARE = 1e-9
"""Shares closer than this are equal, but for rounding."""

_FULL_PACKET_BYTES = 1500


@dataclass(frozen=True)
class DirectionEffect:
    """One direction's effect.

    Attributes:
        delay_ns: a packet's mean, without its time on the link or behind others. loss: per packet of 1500 bytes, a
        fraction. bit_error_rate: the part of it that depends on the size.
        loss_after_loss: among packets behind a lost one; equal to `loss` for independent losses.
        loss_memory_ns: time constant of the decay to `loss`; None for a memory in packets.
        rate_bps: None is unlimited. frame_bytes: added to each packet on the link.
        queue: capacity before the slowest link, as {"packets": 100} or {"bytes": 15000}; None without one.
        mtu_bytes: the largest possible packet; None: the hosts' devices'.
        background_bps: mean incoming background traffic. background_packets_per_s: its packets.
        random_delay: whether packets are delayed at random. reorders: whether packets overtake each other.
        manages_queue: whether the queue drops or marks packets before it is full. bursts: whether the link sends
        bursts faster than at its rate.
        changes: whether it changes over time, unlike the other fields. outage_ns: the longest total outage in a change.
    """

    delay_ns: int = 0
    loss: float = 0.0
    rate_bps: int | None = None
    frame_bytes: int = 0
    loss_after_loss: float = 0.0
    loss_memory_ns: int | None = None
    queue: Mapping[str, int] | None = None
    mtu_bytes: int | None = None
    background_bps: float = 0.0
    background_packets_per_s: float = 0.0
    bit_error_rate: float = 0.0
    random_delay: bool = False
    reorders: bool = False
    manages_queue: bool = False
    bursts: bool = False
    changes: bool = False
    outage_ns: int = 0

    def loss_of(self, packet_bytes: int) -> float:
        """Loss of packets of a size, in IP bytes: bit errors lose large ones more often."""
        if not self.bit_error_rate:
            return self.loss
        more_bits = 8 * (packet_bytes - _FULL_PACKET_BYTES)
        return 1 - (1 - self.loss) * (1 - self.bit_error_rate) ** more_bits

    @property
    def free_bps(self) -> float | None:
        """The rate left by background traffic, but at least a hundredth; None is unlimited."""
        return None if self.rate_bps is None else max(self.rate_bps - self.background_bps, 0.01 * self.rate_bps)

    @property
    def is_clustered(self) -> bool:
        """Whether losses are correlated: clustered, or spread out."""
        return abs(self.loss_after_loss - self.loss) > SAME_SHARE

    @property
    def loss_after_delivery(self) -> float:
        """Loss among packets right behind a delivered one."""
        return self.loss_after_delivery_by(0)

    def loss_after_delivery_by(self, time_ns: float) -> float:
        """Loss among packets at a time after a delivered one, with no other between."""
        return 1.0 if self.loss >= 1 else self.loss * (1 - self.loss_after(time_ns)) / (1 - self.loss)

    def loss_after(self, time_ns: float) -> float:
        """Loss among packets at a time after a lost one, with no other between."""
        if self.loss_memory_ns is None:
            return self.loss_after_loss
        return self.loss + (self.loss_after_loss - self.loss) * exp(-time_ns / self.loss_memory_ns)


@dataclass(frozen=True)
class PathEffect:
    """A path's effect in each direction; a real network has none, as nobody knows it."""

    forward: DirectionEffect = DirectionEffect()
    reverse: DirectionEffect = DirectionEffect()

    @property
    def round_trip_ns(self) -> int:
        """A packet's mean delay there and back."""
        return self.forward.delay_ns + self.reverse.delay_ns

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """From a plan or a result. Raises: KeyError, TypeError where something is missing."""
        return cls(**{way: DirectionEffect(**data[way]) for way in DIRECTIONS})


NO_EFFECT = PathEffect()
