"""What the models need to know of a cell, read from the cell as it was sent to crosswind-cell.

Where the path has no delay, or no value was given, a measured one or a kernel default serves, and `notes` says which.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TCP_HEADER_BYTES = 20
TIMESTAMP_BYTES = 12  # RFC 7323: ten, padded to twelve
ETHERNET_BYTES = 38  # header, FCS, preamble, inter-packet gap: what `count = ethernet` adds
ACKED_SEGMENTS = 2  # RFC 5681: an ACK for every second full segment


@dataclass(frozen=True)
class Situation:
    """One cell in the models' terms.

    Attributes:
        loss: of the data direction, per packet. loss_back: of the other one. rtt_s: round trip, None when unknown.
        rate_bps: of the data direction, None for unlimited. mss_bytes: payload of a full segment.
        packet_bytes: what that occupies on the link. window_segments: the receiver's, None for autotuned.
        notes: where a value is not the cell's own.
    """

    kind: str
    transport: str
    congestion_control: str
    sack: bool
    loss: float
    loss_back: float
    rtt_s: float | None
    rate_bps: float | None
    mss_bytes: int
    packet_bytes: int
    min_rto_s: float
    initial_window: int
    window_segments: float | None
    size_bytes: int | None
    closed_loop: bool
    notes: tuple[str, ...]

    @property
    def timeout_s(self) -> float | None:
        """First retransmission timeout, s: RFC 6298 with its variance term at the minimum, as Linux has it."""
        return None if self.rtt_s is None else self.rtt_s + self.min_rto_s

    @property
    def link_goodput_bps(self) -> float | None:
        """What a full link carries of payload, bit/s; None when it is unlimited."""
        return None if self.rate_bps is None else self.rate_bps * self.mss_bytes / self.packet_bytes


def situation(parameters: Mapping[str, Any], measured_rtt_ns: float | None = None) -> Situation:
    """Read a cell.

    Args: parameters: the cell (docs/cell-protocol.md), defaults filled in or not.
          measured_rtt_ns: smallest round trip seen, used when the path has no delay.
    """
    path, host, workload = (parameters.get(key) or {} for key in ("path", "host", "workload"))
    download = workload.get("direction") == "download"
    data, back = (path.get(key) or {} for key in (("reverse", "forward") if download else ("forward", "reverse")))
    old = host.get("profile") == "freebsd-8"
    mtu = int(path.get("mtu_bytes") or 1500)
    ip_header = 40 if path.get("family") == "ipv6" else 20
    mss = mtu - ip_header - TCP_HEADER_BYTES - (TIMESTAMP_BYTES if host.get("timestamps", True) else 0)
    window = host.get("receive_buffer_bytes") or (65536 if old else None)
    min_rto = host.get("min_rto_ns") or (230_000_000 if old else 200_000_000)
    delay_ns = (data.get("delay_ns") or 0) + (back.get("delay_ns") or 0)
    notes: list[str] = []
    rtt_s: float | None = delay_ns / 1e9
    if not delay_ns:
        rtt_s = None if measured_rtt_ns is None else measured_rtt_ns / 1e9
        notes.append(
            "the path has no delay and no round trip was measured"
            if rtt_s is None
            else "the path has no delay: the smallest measured round trip stands for it"
        )
    return Situation(
        kind=workload.get("kind", ""),
        transport=workload.get("transport", "tcp"),
        congestion_control=host.get("congestion_control") or ("reno" if old else "cubic"),
        sack=bool(host.get("sack", True)),
        loss=float(data.get("loss") or 0.0),
        loss_back=float(back.get("loss") or 0.0),
        rtt_s=rtt_s,
        rate_bps=data.get("rate_bps"),
        mss_bytes=mss,
        packet_bytes=mtu + (ETHERNET_BYTES if data.get("count") == "ethernet" else 0),
        min_rto_s=min_rto / 1e9,
        initial_window=int(host.get("initial_window") or (3 if old else 10)),
        window_segments=max(1.0, window / mss) if window else None,
        size_bytes=workload.get("size_bytes"),
        closed_loop=workload.get("mode", "closed") == "closed",
        notes=tuple(notes),
    )
