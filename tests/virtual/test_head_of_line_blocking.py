"""Which messages wait when one packet is lost: those that share the lost one's order, and no others.

Two streams side by side take turns, a message every 10 ms, on a path of 10 ms each way. The packet of one message is
lost. The next message of the same connection, whatever its stream, is acknowledged 30 ms after the lost one was sent:
that is when the sender knows (RFC 8985 for TCP: a later packet came by, and a round trip and a quarter have passed;
RFC 9002 for QUIC: nine eighths), and the message arrives 40 ms after it was sent first.
"""

import polars as pl
import pytest

from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells, VirtualRun, latest_ns, round_trips_ms

DELAY: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}
WORKLOAD: Object = {"kind": "multiplex", "streams": 2, "messages": 40, "rate_per_s": 50}
LOST = 22  # late enough that the start of the connection is over

ONE_ORDER = {0: 50, 1: 40, 2: 30}
STREAM_BY_STREAM = {0: 50, 2: 30}
# A connection for each stream: its next message, which tells of the loss, is sent 20 ms after the lost one.
CONNECTION_BY_CONNECTION = {0: 60, 2: 40}
# Round trips in ms, of those messages that do not take 20 ms; counted from the one whose packet is lost.
LATE = {
    "tcp": CONNECTION_BY_CONNECTION,
    "tls": ONE_ORDER,
    "h2c": ONE_ORDER,
    "http2": ONE_ORDER,
    "websocket": ONE_ORDER,
    "wss": ONE_ORDER,
    "socketio-websocket": ONE_ORDER,
    "socketio-webtransport": ONE_ORDER,
    "quic": STREAM_BY_STREAM,
    "webtransport": STREAM_BY_STREAM,
    "http3": {0: 50},
}


def packet_of(ran: VirtualRun, message: int) -> int:
    """The index of the packet that carried a message to the server."""
    sent_ns = ran.samples().filter(pl.col("exchange") == message)["sent_ns"].item()
    after = ran.packets("forward").filter((pl.col("payload_bytes") >= 200) & (pl.col("in_ns") >= sent_ns))
    return int(after["index"][0])


@pytest.mark.parametrize("transport", LATE)
def test_a_lost_packet_holds_up_what_shares_its_order(cells: VirtualCells, transport: str) -> None:
    workload = {**WORKLOAD, "transport": transport}
    clean = cells.run(workload, **DELAY)
    assert round_trips_ms(clean) == [20] * 40
    lost = {"forward": {packet_of(clean, LOST)}}
    ran = cells.run_losing(workload, lost, among=2 * len(clean.packets("forward")), **DELAY)
    # QUIC draws from the seed as well: in another cell a packet of this index can be that of a neighbouring message.
    ((lost_message, drops),) = own_drops(ran)
    assert drops == 1
    late = {number - lost_message: took for number, took in enumerate(round_trips_ms(ran)) if took != 20}
    assert late == LATE[transport]


@pytest.mark.parametrize("transport", ["http1", "https1"])
def test_a_connection_for_one_request_at_a_time_never_makes_up_for_a_loss(cells: VirtualCells, transport: str) -> None:
    # Nothing follows the lost packet that could tell of it: its sender waits for the timeout, of a round trip and
    # 200 ms. The requests behind it wait for their turn. Each takes a round trip, the time from one to the next.
    workload = {**WORKLOAD, "transport": transport}
    clean = cells.run(workload, **DELAY)
    assert round_trips_ms(clean) == [20] * 40
    lost = {"forward": {packet_of(clean, LOST)}}
    ran = cells.run_losing(workload, lost, among=2 * len(clean.packets("forward")), **DELAY)
    assert own_drops(ran) == [(LOST, 1)]
    samples = ran.samples().sort("exchange")
    assert set(samples["outcome"]) == {"ok"}
    added_ns = samples["received_ns"] - samples["sent_ns"] - ms(20)
    late = [number for number, more_ns in enumerate(added_ns) if more_ns > ADDED_NS]
    assert late == list(range(LOST, 40, 2))
    assert ms(220) <= min(added_ns[late]) <= max(added_ns[late]) <= latest_ns(ms(220))  # type: ignore[type-var]


def own_drops(ran: VirtualRun) -> list[tuple[int, int]]:
    """The messages whose own packets were dropped, and how many."""
    return ran.samples().filter(pl.col("own_drops") > 0).select("exchange", "own_drops").rows()
