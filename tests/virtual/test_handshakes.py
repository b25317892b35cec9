"""How many round trips every transport takes until a connection is open, and until the first answer is there."""

import pytest

from crosswind.catalog import catalog
from linux.lab import Object, ms
from virtual.lab import VirtualCells, whole_ms

DELAY: Object = {"forward": {"delay_ns": ms(12)}, "reverse": {"delay_ns": ms(8)}}
ROUND_TRIP_MS = 20

STEPS = ["transport_ns", "security_ns", "upgrade_ns"]
# Round trips of TCP's handshake; of that of TLS or QUIC; and of what the protocol above says before the first message.
HANDSHAKES = {
    "tcp": (1, 0, 0), "tls": (1, 1, 0), "http1": (1, 0, 0), "https1": (1, 1, 0), "h2c": (1, 0, 0), "http2": (1, 1, 0),
    "http3": (0, 1, 0), "websocket": (1, 0, 1), "wss": (1, 1, 1), "quic": (0, 1, 0), "quic-datagram": (0, 1, 0),
    "webtransport": (0, 1, 1), "webtransport-datagram": (0, 1, 1),
    # The server's open packet, and its answer to our connect packet. Over WebTransport, our open packet comes first.
    "socketio-websocket": (1, 0, 2), "socketio-webtransport": (0, 1, 3),
}  # fmt: skip


def round_trips(took_ns: int | None) -> int:
    """How many round trips of the path a time is."""
    count, rest_ms = divmod(whole_ms(took_ns or 0), ROUND_TRIP_MS)
    assert rest_ms == 0, took_ns
    return count


def test_every_transport_has_a_place_in_the_table() -> None:
    # UDP has no connection.
    assert {*HANDSHAKES, "udp"} == set(catalog().transports)


@pytest.mark.parametrize("transport", HANDSHAKES)
def test_setting_up_takes_the_round_trips_that_the_protocol_has(cells: VirtualCells, transport: str) -> None:
    samples = cells.run({"kind": "connect", "transport": transport, "count": 3}, **DELAY).samples()
    assert samples["outcome"].to_list() == ["ok"] * 3
    for sample in samples.iter_rows(named=True):
        assert tuple(round_trips(sample[step]) for step in STEPS) == HANDSHAKES[transport]
        assert round_trips(sample["connect_ns"]) == sum(HANDSHAKES[transport])


def test_a_datagram_needs_no_connection(cells: VirtualCells) -> None:
    ran = cells.run({"kind": "echo", "transport": "udp", "messages": 1}, **DELAY)
    (sample,) = ran.samples().rows(named=True)
    assert sample["connect_ns"] is None
    assert round_trips(sample["received_ns"] - sample["sent_ns"]) == 1
    assert len(ran.packets()) == 2


def test_polling_first_takes_two_round_trips_more(cells: VirtualCells) -> None:
    workload = {"kind": "connect", "transport": "socketio-websocket", "count": 1}
    took_ns = [
        cells.run({**workload, "polling": polling}, **DELAY).samples()["connect_ns"][0] for polling in (False, True)
    ]
    assert round_trips(took_ns[True]) == round_trips(took_ns[False]) + 2


@pytest.mark.parametrize("resumption", ["none", "session", "0-rtt"])
@pytest.mark.parametrize("transport", ["tls", "http3", "quic", "quic-datagram"])
def test_early_data_saves_the_round_trip(cells: VirtualCells, transport: str, resumption: str) -> None:
    workload = {"kind": "echo", "transport": transport, "messages": 3, "connection": "new", "resumption": resumption}
    ran = cells.run({**workload, "size_bytes": 100}, **DELAY)
    assert ran.finished.warnings == ()
    samples = ran.samples()
    # TCP's handshake, that of TLS or QUIC, the message. Early data goes with the hello.
    expected = (2 if transport == "tls" else 1) + (resumption != "0-rtt")
    took_ns = samples["connect_ns"] + samples["received_ns"] - samples["sent_ns"]
    assert [round_trips(each_ns) for each_ns in took_ns] == [expected] * 3


@pytest.mark.parametrize("transport", ["tcp", "quic", "websocket"])
def test_a_new_connection_for_each_message_takes_a_handshake_for_each(cells: VirtualCells, transport: str) -> None:
    workload = {"kind": "echo", "transport": transport, "connection": "new", "messages": 40}
    ran = cells.run(workload, **DELAY)
    samples = ran.samples()
    assert {round_trips(took_ns) for took_ns in samples["connect_ns"]} == {sum(HANDSHAKES[transport])}
    assert {round_trips(took_ns) for took_ns in samples["received_ns"] - samples["sent_ns"]} == {1}
    assert ran.packets("forward")["source_port"].n_unique() == 40


def test_connect_sets_up_as_many_connections_as_it_is_asked(cells: VirtualCells) -> None:
    ran = cells.run({"kind": "connect", "transport": "tcp", "count": 50, "connections": 3}, **DELAY)
    samples = ran.samples()
    assert samples["exchange"].to_list() == list(range(50))
    assert set(samples["connection"]) == {0, 1, 2}
    assert {round_trips(took_ns) for took_ns in samples["connect_ns"]} == {1}
    # Three at a time: the last of them begins after 16 turns.
    turns = (samples["sent_ns"] - samples["sent_ns"].min()) // ms(ROUND_TRIP_MS)
    assert turns.to_list() == [number // 3 for number in range(50)]
    assert ran.packets("forward")["source_port"].n_unique() == 50
    assert ran.packets()["payload_bytes"].sum() == 0
