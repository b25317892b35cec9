"""A cell in the models' terms, read from the cell as sent to crosswind-cell.

Where the path has no delay, or no value was given, a measured one or a kernel default serves; `notes` says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.catalog import catalog, filled_in
from crosswind.catalog.path_effect import PathEffect

TCP_HEADER_BYTES = 20
TIMESTAMP_BYTES = 12  # RFC 7323: ten, padded to twelve
WINDOW_FIELD_BYTES = 65_535  # RFC 9293: the window field's maximum without scaling

ACKED_SEGMENTS = 1
"""Segments acknowledged in congestion avoidance for one segment of growth, with a window of one: b in the models.

RFC 5681 counts ACKs, so with delayed ones b is 2. Linux counts acknowledged segments (RFC 3465), in all supported
kernels, so delayed ACKs slow no window down: b is 1, for all models.
"""

MEASURED_ROUND_TRIP = "the path has no delay: the smallest measured round trip is used instead"


@dataclass(frozen=True)
class Situation:
    """One cell in the models' terms.

    Attributes:
        loss: in the data direction, per packet. loss_back: in the other one. rtt_s: round trip, None if unknown.
        rate_bps: in the data direction, None for unlimited. rate_back_bps: in the other one.
        queue_packets: capacity before the data direction's link, None for one in bytes or none.
        manages_queue: whether the queue drops or marks packets before it is full. bursts: whether a link sends some
        packets faster than at its rate.
        clustered: whether losses depend on each other. random_delay: whether delays are random.
        reorders: whether packets overtake each other. changes: whether the path changes over time.
        background: whether there is background traffic.
        mss_bytes: a full segment's payload. packet_bytes: its size on the link.
        window_segments: the smallest fixed window or buffer, None if all are autotuned.
        rack: whether TCP detects losses by time (RFC 8985). remembers: whether connections begin with a threshold that
        lossy ones before them left.
        notes: on values other than the cell's own.
    """

    kind: str
    transport: str
    congestion_control: str
    sack: bool
    tail_loss_probe: bool
    rack: bool
    remembers: bool
    loss: float
    loss_back: float
    rtt_s: float | None
    rate_bps: float | None
    rate_back_bps: float | None
    queue_packets: int | None
    manages_queue: bool
    bursts: bool
    clustered: bool
    random_delay: bool
    reorders: bool
    changes: bool
    background: bool
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
        """A full link's payload rate, bit/s; None when it is unlimited."""
        return None if self.rate_bps is None else self.rate_bps * self.mss_bytes / self.packet_bytes

    @property
    def window_goodput_bps(self) -> float | None:
        """A window of payload in each round trip, bit/s; None when it is autotuned or the round trip unknown or 0."""
        if self.window_segments is None or not self.rtt_s:
            return None
        return 8 * self.mss_bytes * self.window_segments / self.rtt_s

    @property
    def serialisation_s(self) -> float:
        """How long a full segment occupies the link, s; 0 when the link is unlimited."""
        return 0.0 if self.rate_bps is None else 8 * self.packet_bytes / self.rate_bps


def situation(parameters: Mapping[str, Any], effect: PathEffect, measured_rtt_ns: float | None = None) -> Situation:
    """Read a cell.

    Args: parameters: the cell (docs/cell-protocol.md), defaults filled in or not. effect: of its path.
          measured_rtt_ns: smallest round trip seen, used when the path has no delay.
    """
    known, given = catalog(), parameters.get("workload") or {}
    path = filled_in(known.path, parameters.get("path"))
    workload = filled_in(known.workloads.get(given.get("kind", "")), given)
    host = _host(parameters.get("host") or {})
    download = workload.get("direction") == "download"
    data, back = (effect.reverse, effect.forward) if download else (effect.forward, effect.reverse)
    mtu = min(path["mtu_bytes"], data.mtu_bytes or path["mtu_bytes"])
    ip_header = 40 if path.get("family") == "ipv6" else 20
    mss = mtu - ip_header - TCP_HEADER_BYTES - (TIMESTAMP_BYTES if host["timestamps"] else 0)
    rtt_s, notes = _round_trip(effect.round_trip_ns, measured_rtt_ns)
    window = _window_bytes(host)
    return Situation(
        kind=workload.get("kind", ""),
        transport=workload.get("transport", "tcp"),
        congestion_control=host["congestion_control"],
        sack=host["sack"],
        tail_loss_probe=host["tail_loss_probe"] and host["sack"],
        rack=host.get("tcp_recovery") is None or host["tcp_recovery"] % 2 == 1,
        remembers=bool(host.get("tcp_metrics")) and data.loss > 0 and (workload.get("count") or 1) > 1,
        loss=data.loss_of(mtu),
        loss_back=back.loss_of(mtu - mss),
        rtt_s=rtt_s,
        rate_bps=data.rate_bps,
        rate_back_bps=back.rate_bps,
        queue_packets=(data.queue or {}).get("packets"),
        manages_queue=data.manages_queue or back.manages_queue,
        bursts=data.bursts or back.bursts,
        clustered=data.is_clustered or back.is_clustered,
        random_delay=data.random_delay or back.random_delay,
        reorders=data.reorders or back.reorders,
        changes=data.changes or back.changes,
        background=data.background_bps + back.background_bps > 0,
        mss_bytes=mss,
        packet_bytes=mtu + data.frame_bytes,
        min_rto_s=host["min_rto_ns"] / 1e9,
        initial_window=int(host["initial_window"]),
        window_segments=None if window is None else max(1.0, window / mss),
        size_bytes=workload.get("size_bytes"),
        closed_loop=workload.get("mode") != "open",
        notes=notes,
    )


def _host(host: Mapping[str, Any]) -> dict[str, Any]:
    """The host's settings, then its profile's, then the kernel's."""
    given = filled_in(None, host)
    profiles = {profile.name: profile.values for profile in catalog().profiles}
    return {**catalog().kernel, **profiles.get(given.get("profile", ""), {}), **given}


def _window_bytes(host: Mapping[str, Any]) -> int | None:
    """The smallest limit on data in flight, from any setting; None where all are autotuned."""
    limits = [host[key] for key in ("send_buffer_bytes", "receive_buffer_bytes") if host.get(key)]
    if not host["window_scaling"]:
        limits.append(WINDOW_FIELD_BYTES)
    return min(limits, default=None)


def _round_trip(delay_ns: int, measured_ns: float | None) -> tuple[float | None, tuple[str, ...]]:
    if delay_ns:
        return delay_ns / 1e9, ()
    if measured_ns is None:
        return None, ("the path has no delay and no round trip was measured",)
    return measured_ns / 1e9, (MEASURED_ROUND_TRIP,)
