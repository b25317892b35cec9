"""Cells whose outcome is exact, whatever the timing: counts, shared chance, settings, lower bounds of time."""

from itertools import pairwise

import polars as pl
import pytest

from linux.lab import DIRECTIONS, NEVER_TWICE, Lab, Object, ms

TCP, UDP = 6, 17
FAMILIES = pytest.mark.parametrize("family", ["ipv4", "ipv6"])


def udp_burst(messages: int, *, size: int = 1, rate: float = 500) -> Object:
    """Datagrams that wait for nothing: the message's number is its index on the path."""
    return {
        "kind": "echo",
        "transport": "udp",
        "mode": "open",
        "messages": messages,
        "size_bytes": size,
        "rate_per_s": rate,
        "timeout_ns": ms(500),
    }


# --- chance ---------------------------------------------------------------------------------------------------------


def test_the_seed_decides_which_packets_are_lost_and_nothing_else_does(lab: Lab) -> None:
    path: Object = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    first = lab.run(udp_burst(250), seed=7, **path)
    again = lab.run(udp_burst(250, size=700, rate=2000), seed=7, **path)
    other = lab.run(udp_burst(250), seed=8, **path)
    assert first.dropped("forward") == again.dropped("forward") != []
    assert first.dropped("reverse") == again.dropped("reverse") != []
    assert first.dropped("forward") != other.dropped("forward")
    assert first.dropped("reverse") != other.dropped("reverse")
    # The two directions draw from streams of their own.
    assert first.dropped("forward") != first.dropped("reverse")


def test_tcp_and_udp_meet_the_same_losses(lab: Lab) -> None:
    path: Object = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    udp = lab.run(udp_burst(400, rate=2000), seed=3, **path)
    tcp = lab.run({"kind": "echo", "transport": "tcp", "messages": 60}, seed=3, host={"min_rto_ns": ms(5)}, **path)
    for direction in DIRECTIONS:
        both = min(udp.book(direction)["in"], tcp.book(direction)["in"])
        shared = [index for index in udp.dropped(direction) if index < both]
        assert shared == [index for index in tcp.dropped(direction) if index < both] != []


def test_one_byte_messages_are_matched_with_their_own_replies(lab: Lab) -> None:
    # 600 messages whose one byte has 256 values: numbers repeat, and a reply must not go to a message that was lost.
    ended = lab.run(udp_burst(600), seed=11, forward={"loss": 0.1}, reverse={"loss": 0.1})
    lost_requests = set(ended.dropped("forward"))
    answered = [number for number in range(600) if number not in lost_requests]
    lost_replies = {answered[index] for index in ended.dropped("reverse")}
    samples = ended.samples()
    timeouts = set(samples.filter(pl.col("outcome") == "timeout")["exchange"])
    assert timeouts == lost_requests | lost_replies
    assert set(samples["outcome"]) == {"ok", "timeout"}
    lost = ended.book("forward")["dropped"]["loss"] + ended.book("reverse")["dropped"]["loss"]
    assert len(timeouts) == lost == ended.result["samples"]["lost"]


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


def test_a_new_connection_for_each_message_is_one_and_says_how_long_it_took(lab: Lab) -> None:
    workload = {"kind": "echo", "transport": "tcp", "connection": "new", "messages": 40}
    ended = lab.run(workload, host=NEVER_TWICE, forward={"delay_ns": ms(1)}, reverse={"delay_ns": ms(2)})
    packets, samples = ended.packets("forward"), ended.samples()
    assert packets["source_port"].n_unique() == 40
    assert packets["payload_bytes"].sum() == 40
    assert set(samples["outcome"]) == {"ok"}
    assert samples["connect_ns"].null_count() == 0
    # The handshake takes one round trip, and so does the message.
    assert samples["connect_ns"].to_numpy().min() >= ms(3)
    assert (samples["received_ns"] - samples["sent_ns"]).to_numpy().min() >= ms(3)


def test_connect_sets_up_as_many_connections_as_it_is_asked(lab: Lab) -> None:
    workload = {"kind": "connect", "transport": "tcp", "count": 50, "connections": 3}
    ended = lab.run(workload, forward={"delay_ns": ms(2)}, reverse={"delay_ns": ms(3)})
    samples = ended.samples()
    assert samples["exchange"].to_list() == list(range(50))
    assert set(samples["outcome"]) == {"ok"}
    assert set(samples["connection"]) == {0, 1, 2}
    assert samples["connect_ns"].to_numpy().min() >= ms(5)
    assert ended.packets("forward")["source_port"].n_unique() == 50
    assert ended.packets()["payload_bytes"].sum() == 0


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


@pytest.mark.parametrize(("rate", "connections"), [(700.0, 1), (1000.0, 3)])
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_an_open_loop_means_to_send_on_the_grid(lab: Lab, transport: str, rate: float, connections: int) -> None:
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


# --- queue ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "occupied"), [("ip", 1028), ("ethernet", 1028 + 38)])
def test_a_burst_overflows_a_queue_of_five_packets_exactly(lab: Lab, count: str, occupied: int) -> None:
    link = {"rate_bps": 1_000_000, "queue": {"packets": 5}, "delay_ns": ms(1), "count": count}
    ended = lab.run(udp_burst(60, size=1000, rate=100_000), forward=link)
    packets = ended.packets("forward")
    inside: list[int] = []  # when those in transmission and in the queue will have been sent
    expected: list[tuple[int, str | None]] = []
    for entered in packets["in_ns"]:
        inside = [end for end in inside if end > entered]
        if len(inside) > 5:
            expected.append((entered, "queue"))
        else:
            # 8000 ns a byte at 1 Mbit/s.
            inside.append(max([entered, *inside]) + occupied * 8000)
            expected.append((inside[-1] + ms(1), None))
    assert list(zip(packets["due_ns"], packets["cause"], strict=True)) == expected
    assert ended.book("forward")["dropped"]["queue"] > 0
    assert ended.result["samples"]["lost"] == ended.book("forward")["dropped"]["queue"]
    longest = max(due - entered for (due, cause), entered in zip(expected, packets["in_ns"], strict=True) if not cause)
    assert ended.result["queueing_ns"]["forward"]["max"] <= longest - ms(1) - occupied * 8000


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


@pytest.mark.parametrize(("host", "segments"), [({"profile": "freebsd-8"}, 3), ({"profile": "linux"}, 10)])
def test_the_first_flight_is_the_initial_window(lab: Lab, host: Object, segments: int) -> None:
    # The host would have to pause for a round trip in the middle of its first flight to send less of it.
    path: Object = {"forward": {"delay_ns": ms(100)}, "reverse": {"delay_ns": ms(100)}}
    ended = lab.run({"kind": "transfer", "transport": "tcp", "size_bytes": 40_000}, host=host, **path)
    forward, reverse = ended.packets("forward"), ended.packets("reverse")
    first_acknowledgement = reverse["out_ns"][1]  # after the handshake's
    flight = forward.filter((pl.col("payload_bytes") > 0) & (pl.col("in_ns") < first_acknowledgement))
    assert flight["payload_bytes"].to_list() == [1448] * segments


@pytest.mark.parametrize("direction", ["upload", "download"])
def test_freebsd_8_has_no_more_than_64_kb_in_flight(lab: Lab, direction: str) -> None:
    round_trip = ms(20)
    path: Object = {"forward": {"delay_ns": round_trip // 2}, "reverse": {"delay_ns": round_trip // 2}}
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000, "direction": direction}
    ended = lab.run(workload, host={"profile": "freebsd-8"}, **path)
    data = ended.packets("forward" if direction == "upload" else "reverse").filter(pl.col("payload_bytes") > 0)
    # What was sent within less than a round trip cannot have been acknowledged: all of it was in flight.
    most = max(
        data.filter(pl.col("in_ns").is_between(start, start + round_trip, closed="left"))["payload_bytes"].sum()
        for start in data["in_ns"]
    )
    assert 32_768 < most <= 65_535  # the window field's 16 bits


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
