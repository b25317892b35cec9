"""Both ends' knowledge about a real network, without an emulator to count packets.

A retransmitted TCP segment is taken for a lost one. Some were only late (spurious in RFC 3522), and a lost
acknowledgement may cause no retransmission: the share of retransmitted segments stands for the loss.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from crosswind.analysis.result import NetworkConditions, Retransmitted, ServerClock
from crosswind.catalog.path_effect import NO_EFFECT
from crosswind.cell.result import Finished, RealNetwork, TcpOfEnd
from crosswind.models import Situation, situation
from crosswind.stats.share import Share, share_interval

DirectionName = Literal["forward", "reverse"]

INFERRED = (
    "loss and round-trip time are inferred: the share of segments that TCP retransmitted, and the shortest round trip "
    "that its kernel saw, which is too short where TCP itself fills a queue. Packets are taken to be of 1500 bytes"
)


def network_of(finished: Iterable[Finished], *, captured: bool = False) -> NetworkConditions | None:
    """A run's server, by its repetitions; None without one. Args: captured: by both ends."""
    ends = [(end, end.network) for end in finished if end.network is not None]
    if not ends:
        return None
    networks = [network for _, network in ends]
    worst = max((network.clocks for network in networks), key=lambda clocks: clocks.uncertainty_ns)
    trips = [network.round_trip_ns for network in networks]
    return NetworkConditions(
        server=networks[0].server,
        round_trip_ns=(min(trips), max(trips)),
        client_versions=list(dict.fromkeys(end.versions.crosswind_cell for end, _ in ends)),
        server_versions=list(dict.fromkeys(network.crosswind_cell for network in networks)),
        server_kernels=list(dict.fromkeys(network.kernel for network in networks)),
        clock=ServerClock(
            offset_ns=worst.offset_ns,
            uncertainty_ns=worst.uncertainty_ns,
            method=worst.method,
            one_way=sum(network.clocks.one_way for network in networks),
            repetitions=len(networks),
        ),
        captured=captured,
    )


def retransmitted_of(finished: Sequence[Finished], *, level: float) -> dict[DirectionName, Retransmitted]:
    """Both kernels' retransmissions in a cell's repetitions; empty without a real network."""
    networks = [end.network for end in finished if end.network is not None]
    ways: tuple[DirectionName, ...] = ("forward", "reverse")
    shares = {way: _retransmitted(_tcp_of(networks, way), level) for way in ways}
    return {way: counted for way, counted in shares.items() if counted is not None}


def inferred_situation(parameters: Mapping[str, Any], finished: Sequence[Finished]) -> Situation | None:
    """A cell over a real network in the models' terms; None where its kernels have counted nothing."""
    networks = [end.network for end in finished if end.network is not None]
    download = (parameters.get("workload") or {}).get("direction") == "download"
    sender = _tcp_of(networks, "reverse" if download else "forward")
    segments = sum(end.segments_sent for end in sender)
    if not segments:
        return None
    trip_ns = _shortest(sender)
    cell = situation(parameters, NO_EFFECT, trip_ns)
    loss = min(1.0, sum(end.retransmitted for end in sender) / segments)
    return replace(cell, loss=loss, notes=(INFERRED,))


def _tcp_of(networks: Sequence[RealNetwork], way: DirectionName) -> list[TcpOfEnd]:
    """The sending end's counts in a direction."""
    both = [network.tcp for network in networks if network.tcp is not None]
    return [tcp.client if way == "forward" else tcp.server for tcp in both]


def _retransmitted(ends: Sequence[TcpOfEnd], level: float) -> Retransmitted | None:
    segments = [end.segments_sent for end in ends]
    if not sum(segments):
        return None
    again = [min(end.retransmitted, end.segments_sent) for end in ends]
    busy_ns = sum(end.busy_ns for end in ends)
    share = share_interval(Share.of(again, segments, exact=False), level=level)
    return Retransmitted(
        segments=sum(segments),
        retransmitted=sum(again),
        share=share,
        shortest_round_trip_ns=_shortest(ends),
        busy_ns=busy_ns,
        receive_window_share=sum(end.receive_window_limited_ns for end in ends) / max(busy_ns, 1),
        send_buffer_share=sum(end.send_buffer_limited_ns for end in ends) / max(busy_ns, 1),
    )


def _shortest(ends: Iterable[TcpOfEnd]) -> float | None:
    trips = (end.shortest_round_trip_ns for end in ends)
    return min((float(trip) for trip in trips if trip is not None), default=None)
