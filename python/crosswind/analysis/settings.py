"""A cell for analysis, as sent to crosswind-cell (docs/cell-protocol.md)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from crosswind.catalog import catalog, filled_in, is_datagram
from crosswind.catalog.endpoints import NETWORK
from crosswind.catalog.path_effect import DIRECTIONS, DirectionEffect, PathEffect

MIN_RTO_NS = 200e6
"""Linux's least retransmission timer beyond the round trip (TCP_RTO_MIN)."""


@dataclass(frozen=True)
class CellSettings:
    """A cell: its path's effect, its workload with every sent key, and its largest packet.

    is_over_network: whether it ran over a real network, unknown to the path. is_on_machine: whether on the machine's
    clock, with delays from the machine's other work. min_rto_ns: the hosts'. has_flows: whether others share the path.
    """

    path: PathEffect
    workload: Mapping[str, object]
    mtu_bytes: int
    is_over_network: bool = False
    is_on_machine: bool = False
    min_rto_ns: float = MIN_RTO_NS
    has_flows: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any], effect: PathEffect) -> "CellSettings":
        """Reads a cell with possibly absent keys. Args: effect: its path's."""
        path = filled_in(catalog().path, parameters.get("path"))
        is_over_network = path.get("backend") == NETWORK
        is_on_machine = is_over_network or (parameters.get("host") or {}).get("clock") == "real"
        return cls(
            effect,
            parameters.get("workload") or {},
            path["mtu_bytes"],
            is_over_network,
            is_on_machine,
            (parameters.get("host") or {}).get("min_rto_ns") or MIN_RTO_NS,
            bool(parameters.get("flows")),
        )

    @property
    def kind(self) -> str:
        """Its workload's kind."""
        return str(self.workload.get("kind") or "")

    @property
    def opens_for_each(self) -> bool:
        """Whether every exchange has its own connection."""
        return self.kind in ("transfer", "connect", "page") or self.workload.get("connection") == "new"

    @property
    def is_download(self) -> bool:
        """Whether its data goes from the server to the client, as a page's does."""
        return self.kind == "page" or self.workload.get("direction") == "download"

    @property
    def data_direction(self) -> DirectionEffect:
        """A transfer's or a page's data direction; otherwise from the client to the server."""
        return self.path.reverse if self.is_download else self.path.forward

    @property
    def retransmitted_loss(self) -> float:
        """The more lossy direction's loss, with a retransmitting transport; else 0."""
        if is_datagram(str(self.workload.get("transport"))):
            return 0.0
        return max(self.path.forward.loss, self.path.reverse.loss)

    @property
    def repeated_loss(self) -> float:
        """Loss among retransmissions, at most: they follow a lost packet after a round trip or later."""
        if self.retransmitted_loss == 0:
            return 0.0
        return max(way.loss_after(self.path.round_trip_ns) for way in (self.path.forward, self.path.reverse))

    @property
    def delayed_share(self) -> float:
        """The least share of exchanges with a lost and retransmitted packet.

        An exchange has at least one packet with payload, a sized transfer or a page as many as carry it. A timed
        transfer has so many: its goodput is an average over losses. With bursty losses fewer exchanges have one: the
        packet before an exchange's first was delivered.
        """
        if self.retransmitted_loss == 0:
            return 0.0
        # Exchanges are a round trip apart: by then a loss by time tells less of the next one.
        of_one = max(
            min(way.loss, way.loss_after_delivery_by(self.path.round_trip_ns))
            for way in (self.path.forward, self.path.reverse)
        )
        if self.kind not in ("transfer", "page"):
            return of_one
        size = self._page_bytes if self.kind == "page" else self.number("size_bytes")
        behind_delivered = self.data_direction.loss_after_delivery
        of_many = 1.0 if size is None else 1 - (1 - behind_delivered) ** math.ceil(size / self.mtu_bytes)
        return max(of_many, of_one)

    @property
    def _page_bytes(self) -> float:
        """A page's size."""
        return sum(self.number(part) or 0.0 for part in ("html_bytes", "scripts_bytes", "images_bytes"))

    @property
    def is_delayed_at_random(self) -> bool:
        """Whether delays vary between packets for another reason than loss: a random element, or other traffic, always
        present on a real network.
        """
        ways = (self.path.forward, self.path.reverse)
        shared = self.is_over_network or self.has_flows
        return shared or any(
            way.random_delay or way.changes or way.manages_queue or way.background_bps > 0 for way in ways
        )

    @property
    def loses_packets(self) -> bool:
        """Whether its path loses packets by chance."""
        return any(way.loss > 0 for way in (self.path.forward, self.path.reverse))

    @property
    def is_over_quic(self) -> bool:
        """Whether its transport runs over QUIC."""
        transport = catalog().transports.get(str(self.workload.get("transport")))
        return transport is not None and transport.carrier == "quic"

    @property
    def has_background(self) -> bool:
        """Whether background traffic shares a link."""
        return any(way.background_bps > 0 for way in (self.path.forward, self.path.reverse))

    @property
    def has_jitter(self) -> bool:
        """Whether an element delays packets at random."""
        return any(way.random_delay for way in (self.path.forward, self.path.reverse))

    @property
    def is_clustered(self) -> bool:
        """Whether losses are bursty."""
        return any(way.is_clustered for way in (self.path.forward, self.path.reverse))

    @property
    def is_of_others(self) -> bool:
        """Whether it runs third-party programs with unknown timers."""
        return self.kind == "program" or any(self.workload.get(end) for end in ("client", "server"))

    @property
    def is_one_by_one(self) -> bool:
        """Whether it is a closed echo loop."""
        return self.kind == "echo" and self.workload.get("mode") != "open"

    def transfer_ns(self, goodput_bps: float) -> float | None:
        """A transfer's duration at a goodput; None for other workloads."""
        if self.kind != "transfer" or goodput_bps <= 0:
            return None
        size = self.number("size_bytes")
        return 8e9 * size / goodput_bps if size is not None else self.number("duration_ns")

    @property
    def timeout_ns(self) -> float | None:
        """An exchange's timeout."""
        return self.number("timeout_ns")

    def number(self, key: str) -> float | None:
        """A workload's number, as sent or by default; None without one."""
        value = filled_in(catalog().workloads.get(self.kind), self.workload).get(key)
        return float(value) if isinstance(value, int | float) else None


def without_loss(parameters: Mapping[str, Any], effect: PathEffect) -> dict[str, Any]:
    """A cell's host and workload, and its path's effect without loss."""
    ways = [
        asdict(replace(way, loss=0.0, loss_after_loss=0.0, loss_memory_ns=None))
        for way in (effect.forward, effect.reverse)
    ]
    shared = {key: value for key, value in (parameters.get("path") or {}).items() if key not in (*DIRECTIONS, "hops")}
    return {"path": shared, "ways": ways, "host": parameters.get("host"), "workload": parameters.get("workload")}
