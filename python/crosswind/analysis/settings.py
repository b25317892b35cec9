"""What analysis reads of a cell as it was sent to crosswind-cell (docs/cell-protocol.md)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.catalog import is_datagram
from crosswind.ends import NETWORK

_STEADY = frozenset({"loss", "delay_ns", "rate_bps", "queue", "count"})
"""Settings of a direction that draw no random numbers, and loss, which is looked at by itself."""


@dataclass(frozen=True)
class DirectionSettings:
    """One direction of the path. loss: per packet, a fraction. rate_bps: None for unlimited.

    has_other_elements: whether it has settings of elements that are not known here, which may delay packets at random.
    """

    loss: float
    delay_ns: int
    rate_bps: int | None
    has_other_elements: bool

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "DirectionSettings":
        """Reads a direction of a cell, whose keys may be absent."""
        others = any(value for key, value in settings.items() if key not in _STEADY)
        return cls(float(settings.get("loss") or 0.0), settings.get("delay_ns") or 0, settings.get("rate_bps"), others)


@dataclass(frozen=True)
class CellSettings:
    """A cell: its path in both directions, its workload with every key that was sent, and its largest packet.

    is_over_network: whether it ran over a network that is really there, of which the path says nothing. is_on_machine:
    whether on the machine's clock, on which whatever else the machine does delays exchanges.
    """

    forward: DirectionSettings
    reverse: DirectionSettings
    workload: Mapping[str, object]
    mtu_bytes: int = 1500
    is_over_network: bool = False
    is_on_machine: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "CellSettings":
        """Reads a cell, whose keys may be absent."""
        path = parameters.get("path") or {}
        forward, reverse = (DirectionSettings.of(path.get(direction) or {}) for direction in ("forward", "reverse"))
        is_over_network = path.get("backend") == NETWORK
        is_on_machine = is_over_network or (parameters.get("host") or {}).get("clock") == "real"
        workload, mtu = parameters.get("workload") or {}, path.get("mtu_bytes") or 1500
        return cls(forward, reverse, workload, mtu, is_over_network, is_on_machine)

    @property
    def kind(self) -> str:
        """The kind of its workload."""
        return str(self.workload.get("kind") or "")

    @property
    def opens_for_each(self) -> bool:
        """Whether every exchange has a connection of its own."""
        return self.kind in ("transfer", "connect", "page") or self.workload.get("connection") == "new"

    @property
    def data_direction(self) -> DirectionSettings:
        """The direction of a transfer's or a page's data; from the client to the server where neither is the data's."""
        is_download = self.kind == "page" or self.workload.get("direction") == "download"
        return self.reverse if is_download else self.forward

    @property
    def retransmitted_loss(self) -> float:
        """Loss of the direction that loses more, where the transport retransmits what was lost; else 0."""
        if is_datagram(str(self.workload.get("transport"))):
            return 0.0
        return max(self.forward.loss, self.reverse.loss)

    @property
    def delayed_share(self) -> float:
        """The least share of exchanges of which a packet is lost and retransmitted.

        An exchange has one packet with payload at least, a transfer of a size or a page as many as carry it. A transfer
        that lasts for a time has so many that its goodput is an average over losses.
        """
        if self.kind not in ("transfer", "page") or self.retransmitted_loss == 0:
            return self.retransmitted_loss
        size = self._page_bytes if self.kind == "page" else self.number("size_bytes")
        of_many = 1.0 if size is None else 1 - (1 - self.data_direction.loss) ** math.ceil(size / self.mtu_bytes)
        return max(of_many, self.retransmitted_loss)

    @property
    def _page_bytes(self) -> float:
        """What a page has, as far as it was sent."""
        return sum(self.number(part) or 0.0 for part in ("html_bytes", "scripts_bytes", "images_bytes"))

    @property
    def is_delayed_at_random(self) -> bool:
        """Whether an element of the path draws random numbers for anything but loss, as far as its settings tell.

        A network that is really there is taken to: others use it too.
        """
        return self.is_over_network or any(way.has_other_elements for way in (self.forward, self.reverse))

    @property
    def timeout_ns(self) -> float:
        """After how long an exchange is given up: as set, or crosswind-cell's default."""
        found = self.number("timeout_ns")
        if found is not None:
            return found
        if not is_datagram(str(self.workload.get("transport"))):
            return 60e9
        return 1e9 + 4.0 * (self.forward.delay_ns + self.reverse.delay_ns)

    def number(self, key: str) -> float | None:
        """A number of the workload; None where it was not sent."""
        found = self.workload.get(key)
        return float(found) if isinstance(found, int | float) else None


def without_loss(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The path, the host and the workload of a cell, less the loss in either direction."""
    path = dict(parameters.get("path") or {})
    for direction in ("forward", "reverse"):
        path[direction] = {key: value for key, value in (path.get(direction) or {}).items() if key != "loss"}
    return {"path": path, "host": parameters.get("host"), "workload": parameters.get("workload")}
