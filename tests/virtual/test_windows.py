"""What TCP sends in a round trip: the initial window, slow start, a receiver's window."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells, VirtualRun

ROUND_TRIP_NS = ms(200)
PATH: Object = {direction: {"delay_ns": ROUND_TRIP_NS // 2} for direction in ("forward", "reverse")}
SEGMENT_BYTES = 1448  # 1500 bytes of IP less the headers of IP and TCP and the timestamps


def rounds(ran: VirtualRun, direction: str = "forward") -> list[int]:
    """How many bytes of payload were sent in each round trip since the first."""
    data = ran.packets(direction).filter(pl.col("payload_bytes") > 0)
    number = (pl.col("in_ns") - pl.col("in_ns").min()) // ROUND_TRIP_NS
    grouped = data.group_by(number.alias("round")).agg(pl.col("payload_bytes").sum()).sort("round")
    assert grouped["round"].to_list() == list(range(len(grouped)))
    return grouped["payload_bytes"].to_list()


@pytest.mark.parametrize(("host", "segments"), [({"profile": "freebsd-8"}, 3), ({"profile": "linux"}, 10)])
def test_the_first_flight_is_the_initial_window(cells: VirtualCells, host: Object, segments: int) -> None:
    ran = cells.run({"kind": "transfer", "transport": "tcp", "size_bytes": 40_000}, host=host, **PATH)
    assert rounds(ran)[0] == segments * SEGMENT_BYTES
    assert set(ran.packets("forward")["payload_bytes"].to_list()) >= {SEGMENT_BYTES}


@pytest.mark.parametrize("control", ["reno", "cubic"])
@pytest.mark.parametrize(("initial_window", "round_trips"), [(2, 5), (10, 4)])
def test_slow_start_doubles_what_is_sent_in_every_round_trip(
    cells: VirtualCells, control: str, initial_window: int, round_trips: int
) -> None:
    # Then the window that the receiver announces is reached.
    host = {"congestion_control": control, "initial_window": initial_window}
    doubled = [initial_window << number for number in range(round_trips)]
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": sum(doubled) * SEGMENT_BYTES}
    ran = cells.run(workload, host=host, **PATH)
    assert rounds(ran) == [segments * SEGMENT_BYTES for segments in doubled]
    # The last byte is there half a round trip after it was sent.
    (took_ns,) = ran.samples().select(pl.col("received_ns") - pl.col("sent_ns")).to_series()
    last_ns = (round_trips - 1) * ROUND_TRIP_NS + ROUND_TRIP_NS // 2
    assert last_ns <= took_ns <= last_ns + ADDED_NS


@pytest.mark.parametrize("transport", ["tcp", "tls"])
@pytest.mark.parametrize("extent", [{"size_bytes": 1_234_567}, {"duration_ns": ms(1000)}])
def test_a_receiver_that_waits_for_blocks_gets_the_same_packets(
    cells: VirtualCells, transport: str, extent: Object
) -> None:
    direction = {"delay_ns": ms(10), "rate_bps": 20_000_000}
    packets, received = [], []
    for block_bytes in (1, 131_072):
        workload = {"kind": "transfer", "transport": transport, **extent, "block_bytes": block_bytes}
        ran = cells.run(workload, forward=direction, reverse=direction)
        packets.append(ran.packets().sort("direction", "index"))
        received.append(ran.samples().select("received_bytes", "received_ns").row(0))
    # The last byte comes when it came, though the last block is not full.
    assert received[0] == received[1]
    one, block = (table.select("direction", "index", "size_bytes", "payload_bytes", "verdict") for table in packets)
    assert_frame_equal(one, block)
    # Who waits reads the kernel's clock less often, 1 ns each.
    apart_ns = packets[0]["in_ns"].cast(pl.Int64) - packets[1]["in_ns"].cast(pl.Int64)
    assert apart_ns.abs().max() <= 1000


@pytest.mark.parametrize("remembers", [False, True])
def test_a_connection_begins_with_the_threshold_that_the_one_before_left(cells: VirtualCells, remembers: bool) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 70 * SEGMENT_BYTES, "count": 2}
    host = {"congestion_control": "reno", "initial_window": 10, "tcp_metrics": remembers}
    # The first connection's SYN, its ACK and nine segments pass; the tenth segment is lost.
    forward = {**PATH["forward"], "lose": [11]}
    ran = cells.run(workload, host=host, forward=forward, reverse=PATH["reverse"])
    assert ran.result["readback"]["client"]["sysctl"]["net.ipv4.tcp_no_metrics_save"] == str(int(not remembers))
    second_ns = ran.samples()["sent_ns"].max()
    data = ran.packets("forward").filter((pl.col("payload_bytes") > 0) & (pl.col("in_ns") >= second_ns))
    number = (pl.col("in_ns") - pl.col("in_ns").min()) // ROUND_TRIP_NS
    sent = data.group_by(number.alias("round")).agg(pl.col("payload_bytes").sum()).sort("round")["payload_bytes"]
    segments = [bytes_ // SEGMENT_BYTES for bytes_ in sent.to_list()]
    # Slow start doubles; above a threshold of ten segments the window grows by one in a round trip.
    assert segments == ([10, 11, 12, 13, 14, 10] if remembers else [10, 20, 40])


@pytest.mark.parametrize(("nodelay", "writes", "round_trips"), [(True, 3, 1), (False, 1, 1), (False, 3, 2)])
def test_nagle_holds_later_writes_until_the_first_is_acknowledged(
    cells: VirtualCells, nodelay: bool, writes: int, round_trips: int
) -> None:
    workload = {"kind": "echo", "transport": "tcp", "size_bytes": 100, "messages": 1, "writes": writes}
    ran = cells.run(workload, host={"nodelay": nodelay}, **PATH)
    (took_ns,) = ran.samples().select(pl.col("received_ns") - pl.col("sent_ns")).to_series()
    assert 0 <= took_ns - round_trips * ROUND_TRIP_NS <= ADDED_NS


def test_a_transfer_begins_when_it_is_told_to(cells: VirtualCells) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1000, "start_after_ns": ms(1500)}
    (sent_ns,) = cells.run(workload, **PATH).samples()["sent_ns"].to_list()
    assert ms(1500) + ROUND_TRIP_NS <= sent_ns <= ms(1500) + ROUND_TRIP_NS + ADDED_NS
