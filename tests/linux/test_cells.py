"""Cells whose outcome is exact, whatever the timing: counts, settings, lower bounds of time."""

from itertools import pairwise

import polars as pl
import pytest

from linux.lab import DIRECTIONS, NEVER_TWICE, Lab, Object, ms

TCP, UDP = 6, 17
FAMILIES = pytest.mark.parametrize("family", ["ipv4", "ipv6"])


# --- counts ---------------------------------------------------------------------------------------------------------


@FAMILIES
def test_a_datagram_echo_puts_its_own_packets_on_the_path_and_no_others(lab: Lab, family: str) -> None:
    # No neighbour discovery, no multicast listener report, no router solicitation: one packet a message, each way.
    ended = lab.run({"kind": "echo", "transport": "udp", "messages": 200, "size_bytes": 100}, family=family)
    header = 48 if family == "ipv6" else 28
    for direction in DIRECTIONS:
        book = ended.book(direction)
        assert (book["in"], book["delivered"], book["in_bytes"]) == (200, 200, 200 * (100 + header))
        assert set(ended.packets(direction)["protocol"]) == {UDP}
        assert set(ended.packets(direction)["payload_bytes"]) == {100}
    assert set(ended.samples()["outcome"]) == {"ok"}


@FAMILIES
def test_a_kept_connection_carries_one_segment_a_message(lab: Lab, family: str) -> None:
    workload = {"kind": "echo", "transport": "tcp", "messages": 100, "size_bytes": 500}
    ended = lab.run(workload, family=family, host=NEVER_TWICE)
    for direction in DIRECTIONS:
        packets = ended.packets(direction)
        assert set(packets["protocol"]) == {TCP}
        assert packets.filter(pl.col("payload_bytes") > 0)["payload_bytes"].to_list() == [500] * 100
    assert ended.packets("forward")["source_port"].n_unique() == 1
    assert ended.samples()["connect_ns"].drop_nulls().len() == 1


@pytest.mark.parametrize("direction", ["upload", "download"])
@FAMILIES
def test_a_transfer_moves_its_bytes_and_no_others(lab: Lab, direction: str, family: str) -> None:
    size = 300_001
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": size, "direction": direction, "count": 3}
    delays: Object = {"forward": {"delay_ns": ms(2)}, "reverse": {"delay_ns": ms(3)}}
    ended = lab.run(workload, family=family, host=NEVER_TWICE, **delays)
    samples = ended.samples()
    assert samples["outcome"].to_list() == ["ok"] * 3
    assert samples["sent_bytes"].to_list() == samples["received_bytes"].to_list() == [size] * 3
    way, back = ("forward", "reverse") if direction == "upload" else ("reverse", "forward")
    assert ended.packets(way)["payload_bytes"].sum() == 3 * size
    assert ended.packets(back)["payload_bytes"].sum() == 0
    # From the first payload delivered to the last lies within from the first byte handed over to the last received.
    taken = samples["received_ns"] - samples["sent_ns"]
    assert (samples["wire_ns"] <= taken).all()
    # It is what packets.arrow says, connection by connection.
    port = "source_port" if way == "forward" else "destination_port"
    payload = ended.packets(way).filter(pl.col("payload_bytes") > 0).group_by(port, maintain_order=True)
    spans = payload.agg((pl.col("out_ns").max() - pl.col("out_ns").min()).alias("span"))["span"]
    assert spans.to_list() == samples["wire_ns"].to_list()
    assert (taken - samples["wire_ns"]).to_numpy().min() >= ms(2)


@pytest.mark.parametrize(
    ("mtu", "family"), [(576, "ipv4"), (1280, "ipv6"), (1500, "ipv4"), (1500, "ipv6"), (9000, "ipv4")]
)
def test_no_packet_is_larger_than_the_mtu_and_full_ones_are_as_large(lab: Lab, mtu: int, family: str) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 200_000}
    ended = lab.run(workload, mtu_bytes=mtu, family=family, forward={"delay_ns": ms(1)})
    assert ended.packets()["size_bytes"].max() == mtu
    assert ended.result["readback"]["client"]["device"]["mtu_bytes"] == str(mtu)
    assert ended.samples()["received_bytes"].to_list() == [200_000]


@pytest.mark.parametrize(
    ("family", "size", "fragments"),
    # A fragment carries 1480 bytes of the datagram over IPv4 and 1448 over IPv6, whose header for it takes 8.
    [("ipv4", 65_507, -(-65_515 // 1480)), ("ipv6", 65_527, -(-65_535 // 1448))],
)
def test_the_largest_datagram_goes_through_in_fragments(lab: Lab, family: str, size: int, fragments: int) -> None:
    ended = lab.run({"kind": "echo", "transport": "udp", "size_bytes": size, "messages": 5}, family=family)
    assert ended.samples()["received_bytes"].to_list() == [size] * 5
    for direction in DIRECTIONS:
        assert ended.book(direction)["in"] == 5 * fragments
        assert max(ended.packets(direction)["size_bytes"].to_list()) == (1500 if family == "ipv4" else 1496)


# --- time: lower bounds, grids --------------------------------------------------------------------------------------


def test_no_packet_and_no_message_is_faster_than_the_path(lab: Lab) -> None:
    delays: Object = {"forward": {"delay_ns": ms(7)}, "reverse": {"delay_ns": ms(4)}}
    ended = lab.run({"kind": "echo", "transport": "udp", "messages": 40}, **delays)
    for direction, delay in (("forward", ms(7)), ("reverse", ms(4))):
        packets = ended.packets(direction)
        assert set(packets["due_ns"] - packets["in_ns"]) == {delay}
        assert (packets["out_ns"] >= packets["due_ns"]).all()
    samples = ended.samples()
    assert (samples["request_ns"] >= ms(7)).all()
    assert (samples["reply_ns"] >= ms(4)).all()
    parts = samples["request_ns"] + samples["server_ns"] + samples["reply_ns"]
    assert (samples["received_ns"] - samples["sent_ns"]).to_list() == parts.to_list()


@pytest.mark.parametrize("transport", ["tcp", "udp", "quic"])
def test_an_open_loop_means_to_send_on_the_grid(lab: Lab, transport: str) -> None:
    rate, connections = 1000.0, 3
    workload = {"kind": "echo", "transport": transport, "mode": "open", "rate_per_s": rate, "messages": 150}
    ended = lab.run({**workload, "connections": connections, "timeout_ns": ms(20_000)}, forward={"delay_ns": ms(5)})
    samples = ended.samples()
    assert samples["outcome"].to_list() == ["ok"] * 150
    for connection in range(connections):
        own = samples.filter(pl.col("connection") == connection)
        offsets = [int(number * (1e9 / rate)) for number in own["exchange"]]
        assert (own["intended_ns"] - own["intended_ns"][0]).to_list() == [at - offsets[0] for at in offsets]
    # Sent late, perhaps; never early.
    assert (samples["sent_ns"] >= samples["intended_ns"]).all()


# --- hosts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["reno", "cubic", "bbr"])
def test_what_is_asked_of_the_hosts_is_what_they_have(lab: Lab, name: str) -> None:
    host = {
        "congestion_control": name,
        "nodelay": name != "reno",
        "sack": name != "cubic",
        "timestamps": name != "bbr",
        "slow_start_after_idle": False,
        "tail_loss_probe": False,
        "initial_window": 4,
        "min_rto_ns": ms(120),
    }
    workload = {"kind": "echo", "transport": "tcp", "messages": 5}
    readback = lab.run(workload, host=host).result["readback"]
    for side in ("client", "server"):
        socket, route, sysctl = (readback[side][part] for part in ("socket", "route", "sysctl"))
        assert (socket["congestion_control"], socket["nodelay"]) == (name, name != "reno")
        assert route["congestion_control"] == name
        assert (route["rto_min_ms"], route["initial_window_segments"]) == ("120", "4")
        assert sysctl["net.ipv4.tcp_sack"] == str(int(name != "cubic"))
        assert sysctl["net.ipv4.tcp_timestamps"] == str(int(name != "bbr"))
        assert sysctl["net.ipv4.tcp_slow_start_after_idle"] == "0"
        assert sysctl["net.ipv4.tcp_early_retrans"] == "0"
        assert sysctl["net.ipv4.tcp_no_metrics_save"] == "1"


# --- the direct path ------------------------------------------------------------------------------------------------


@FAMILIES
@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "echo", "transport": "udp", "messages": 300},
        {"kind": "echo", "transport": "tcp", "messages": 300},
        {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000},
        {"kind": "connect", "transport": "tcp", "count": 50},
    ],
    ids=lambda workload: f"{workload['kind']}-{workload['transport']}",
)
def test_the_direct_path_runs_without_an_emulator_and_its_books_close(lab: Lab, workload: Object, family: str) -> None:
    ended = lab.run(workload, packets=False, backend="direct", family=family)
    assert set(ended.samples()["outcome"]) == {"ok"}
    assert ended.result["fidelity"] is None
    for direction in DIRECTIONS:
        book = ended.book(direction)
        assert book["in"] == book["delivered"] > 0
        assert set(book["dropped"].values()) == {0}
    assert ended.files() == {"samples.arrow"}


def test_samples_are_numbered_without_gaps_over_all_connections(lab: Lab) -> None:
    ended = lab.run({"kind": "echo", "transport": "tcp", "messages": 101, "connections": 5})
    samples = ended.samples()
    assert samples["exchange"].to_list() == list(range(101))
    assert (samples["connection"] == (samples["exchange"] % 5).cast(pl.UInt32)).all()
    for connection in range(5):
        own = samples.filter(pl.col("connection") == connection).sort("exchange")
        # Closed loop: one in flight.
        assert all(before <= after for before, after in pairwise(own["sent_ns"].to_list()))
        assert (own["sent_ns"].shift(-1).drop_nulls() >= own["received_ns"][:-1]).all()
