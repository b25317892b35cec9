"""Why an exchange took as long as it did, in a sentence."""

from itertools import product
from typing import Any

import pytest

from crosswind.catalog.explained import (
    Connection,
    Explained,
    PacketPoint,
    PartOfConnection,
    Piece,
    SocketHistory,
    SocketPoint,
)
from crosswind.catalog.spent import GROUPS
from crosswind.report.charts.sockets import socket_charts
from crosswind.report.text.changed import changed_text
from crosswind.report.text.connections import connection_sentence
from crosswind.report.text.explained import exchange_sentence

MS = 1_000_000


def test_a_probe_and_what_it_told_are_one_story() -> None:
    pieces = (
        Piece(0, 68 * MS, "probe_timer", "client", "forward", 6, 2),
        Piece(68 * MS, 88 * MS, "time_threshold", "client", "forward", 6, 0),
        Piece(88 * MS, 98 * MS, "propagation_forward", "path", "forward", 9, 0),
    )
    parts = {piece.part: piece.length_ns for piece in pieces}
    assert exchange_sentence(Explained("c000-r00", 0, 0, {}, 98 * MS, pieces, 4, 20 * MS, parts)) == (
        "Exchange 4 took 98 ms instead of 20 ms, the median of its repetition: packet 6 to the server was lost, and a "
        "probe sent 68 ms later by QUIC's probe timer, time 2 in a row; 20 ms later its loss was known, and what it "
        "carried was sent again."
    )


@pytest.mark.parametrize(("times", "says"), [
    (1, "Exchange 0 took 40 ms, which is what the path takes."),
    (9, "Exchange 0 took 360 ms: in 9 round trips one end waited for the other, for data or for acknowledgements."),
])  # fmt: skip
def test_many_round_trips_are_more_than_the_path_takes(times: int, says: str) -> None:
    ways = (("propagation_forward", "forward"), ("propagation_reverse", "reverse")) * times
    pieces = [
        Piece(20 * MS * at, 20 * MS * (at + 1), part, "path", direction, at, 0)
        for at, (part, direction) in enumerate(ways)
    ]
    parts = {part: 20 * MS * times for part, _ in ways}
    whole_ns = 40 * MS * times
    assert exchange_sentence(Explained("c000-r00", 0, 0, {}, whole_ns, pieces, 0, whole_ns, parts)) == says


@pytest.mark.parametrize(("without_ms", "says"), [
    (52, ""),
    (96, "without the receiver's window it would take as long, by a model: another limit lies behind it"),
    (75, "without the receiver's window it would take about 75 ms, by a model: another limit lies behind it"),
    (30, "without the receiver's window it would take about 30 ms, by a model"),
])  # fmt: skip
def test_what_lies_behind_a_limit_is_said_where_it_matters(without_ms: int, says: str) -> None:
    parts = {"receive_window": 50 * MS, "fast_recovery": 40 * MS, "tcp_handshake": 10 * MS}
    changed = {"without_receive_window": without_ms * MS, "without_loss": 0}
    assert changed_text(100 * MS, parts, changed) == says
    assert changed_text(100 * MS, parts, {"without_loss": 0}) == ""
    # A window of HTTP/2 is not TCP's.
    assert changed_text(100 * MS, {"stream_window": 80 * MS}, {"without_receive_window": 100 * MS}) == ""
    # A link's whole time is not saved at twice its rate.
    assert changed_text(100 * MS, {"serialisation_forward": 80 * MS}, {"at_twice_the_rate": 60 * MS}) == ""


def test_what_many_short_recoveries_cost_is_summed() -> None:
    cut = [Piece(MS * at, MS * (at + 1), "reduced_window", "path", "forward", at, 0) for at in range(290)]
    long = Piece(290 * MS, 300 * MS, "reduced_window", "path", "forward", 290, 0)
    exchange = Explained("c000-r00", 0, 0, {}, 300 * MS, [*cut, long], 0, 300 * MS, {"reduced_window": 300 * MS})
    says = "Exchange 0 took 300 ms: it waited 300 ms for the congestion window, which a loss had cut."
    assert exchange_sentence(exchange) == says


@pytest.mark.parametrize("part", [part for group in GROUPS for part in group.parts if group.name != "propagation"])
def test_every_part_has_its_words(part: str) -> None:
    pieces = (Piece(0, 98 * MS, part, "client", "forward", 6, 1),)
    sentence = exchange_sentence(Explained("c000-r00", 0, 0, {}, 98 * MS, pieces, 4, 98 * MS, {part: 98 * MS}))
    # Of hosts there is nothing to say.
    is_usual = part in {"client_host", "server_host", "late"}
    assert ("98 ms: " in sentence) != is_usual


@pytest.mark.parametrize(("known", "part", "says"), [
    ({"beginning": "unanswered", "lost_forward": 3, "again_forward": 2}, "syn_timer",
     "waited for an answer to a SYN (never answered, 3 packets lost, 2 segments sent again)"),
    ({"beginning": "before"}, "unknown", "is not told by packets (begun before its first known packet)"),
    ({"is_cut_off": True}, "receive_window",
     "waited for the receiver's window (cut off: of later packets nothing was kept)"),
    ({"protocol": "udp", "beginning": "datagram", "lost_reverse": 1}, "datagram_loss",
     "waited after a lost datagram until the program sent the next (1 packet lost)"),
    ({"protocol": "udp", "beginning": "datagram", "turns": 12}, "propagation_forward",
     "was in flight: 6.5 round trips in which one end waited for the other, for data or for acknowledgements"),
    ({"turns": 1}, "propagation_reverse", "was in flight: 1 round trip in which a program waited for the other"),
    ({"turns": 121, "is_inferred": True}, "propagation_reverse",
     "was in flight: 61 round trips in which a program waited for the other (or TCP for an acknowledgement, by Nagle's "
     "algorithm: virtual time tells them apart)"),
])  # fmt: skip
def test_a_connection_that_is_not_known_whole_says_so(known: dict[str, Any], part: str, says: str) -> None:
    counted = product(("packets", "bytes", "lost", "again"), ("forward", "reverse"))
    usual: dict[str, Any] = {f"{what}_{side}": 0 for what, side in counted}
    usual |= {"protocol": "tcp", "beginning": "handshake", "is_cut_off": False, "turns": 0}
    connection = Connection(
        key="c000-r00", cell=0, repetition=0, levels={}, whole_ns=98 * MS, pieces=[], number=0, client_port=40_000,
        server_port=80, opened_by="client", from_ns=0, ending="open",
        parts=[PartOfConnection("forward", part, 98 * MS, None, None)], **usual | known,
    )  # fmt: skip
    assert connection_sentence(connection) == f"{connection.protocol} to port 80: 100 % of 98 ms {says}"


def test_a_socket_is_drawn_with_what_the_path_did_on_one_time_axis() -> None:
    points = [
        SocketPoint(10 * MS, 14_480, None, 14_480, 20 * MS),
        SocketPoint(40 * MS, 7_240, 7_240, 2_896, 21 * MS),
    ]
    packets = [
        PacketPoint(5 * MS, 2 * MS, ""),
        PacketPoint(20 * MS, 0, "dropped"),
        PacketPoint(50 * MS, 1 * MS, "marked"),
    ]
    charts = [
        panel.charts[0]
        for panel in socket_charts(SocketHistory("c000-r00", {}, "client", 40_000, points, packets, 1, 1))
    ]
    assert charts[0].notes == ("Upright: packets that the path dropped (1) or marked (1).",)
    for chart, lines in zip(charts, ({"congestion window", "slow start threshold", "in flight"}, None), strict=True):
        events, drawn = (layer["encoding"] for layer in chart.specification["layer"])
        assert events["x"]["scale"]["domain"] == drawn["x"]["scale"]["domain"] == [0, 50]
        rows = [row for data in chart.specification["datasets"].values() for row in data]
        named = {row["what"] for row in rows}
        assert named == (lines or {"smoothed round trip", "waited in queues"}) | {"dropped", "marked"}
    windows = [row for data in charts[0].specification["datasets"].values() for row in data if "value" in row]
    assert {"at": 40, "value": 7240, "what": "slow start threshold"} in windows
