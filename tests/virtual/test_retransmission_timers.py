"""TCP's timers: what waits for them, and for how long."""

from itertools import pairwise

import polars as pl
import pytest

from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells, VirtualRun, latest_ns

DELAY: Object = {"forward": {"delay_ns": ms(10)}, "reverse": {"delay_ns": ms(10)}}
ROUND_TRIP_NS = ms(20)


def data(ran: VirtualRun) -> pl.DataFrame:
    """What the client sent with payload, in order."""
    return ran.packets("forward").filter(pl.col("payload_bytes") > 0)


def losing_message(cells: VirtualCells, transmissions: int, host: Object) -> VirtualRun:
    """An echo of ten messages; the last one's segment is lost as often as this."""
    workload = {"kind": "echo", "transport": "tcp", "messages": 10}
    clean = cells.run(workload, host=host, **DELAY)
    first = int(data(clean)["index"][-1])
    return cells.run_losing(
        workload, {"forward": set(range(first, first + transmissions))}, among=30, host=host, **DELAY
    )


@pytest.mark.parametrize("min_rto_ms", [200, 30])
def test_a_lost_message_is_sent_again_after_the_timeout_which_doubles(cells: VirtualCells, min_rto_ms: int) -> None:
    ran = losing_message(cells, 2, {"min_rto_ns": ms(min_rto_ms), "tail_loss_probe": False})
    sent_ns = data(ran)["in_ns"].to_list()[9:]
    assert len(sent_ns) == 3
    # RFC 6298: the smoothed round trip and four times its variation, for which Linux takes the minimum at least.
    timeout_ns = ROUND_TRIP_NS + ms(min_rto_ms)
    for doubled, (before, after) in enumerate(pairwise(sent_ns)):
        waited_ns = timeout_ns << doubled
        assert waited_ns <= after - before <= latest_ns(waited_ns)
    # Nothing but the timers took time.
    took_ns = ran.samples().select(pl.col("received_ns") - pl.col("sent_ns")).to_series()[-1]
    assert 0 <= took_ns - (sent_ns[-1] - sent_ns[0]) - ROUND_TRIP_NS <= ADDED_NS


@pytest.mark.parametrize("probes", [True, False])
def test_a_probe_finds_the_loss_of_the_last_segments_after_two_round_trips(cells: VirtualCells, probes: bool) -> None:
    # Ten segments leave at once, and the last two are lost.
    workload = {"kind": "echo", "transport": "tcp", "messages": 1, "size_bytes": 10 * 1448}
    host = {"tail_loss_probe": probes}
    last = int(data(cells.run(workload, host=host, **DELAY))["index"][-1])
    ran = cells.run_losing(workload, {"forward": {last - 1, last}}, among=30, host=host, **DELAY)
    sent_ns = data(ran)["in_ns"].to_list()
    assert sent_ns[9] - sent_ns[0] <= ADDED_NS
    # RFC 8985, 7.2: with more than one segment under way a probe is sent after two round trips, to which Linux adds two
    # ticks. Without a probe it is the timeout. Either counts from the last acknowledgement.
    waited_ns = 2 * ROUND_TRIP_NS + ms(2) if probes else ROUND_TRIP_NS + ms(200)
    assert waited_ns <= sent_ns[10] - sent_ns[9] - ROUND_TRIP_NS <= latest_ns(waited_ns)


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_syn_is_sent_again_every_second(cells: VirtualCells, lost: int) -> None:
    workload = {"kind": "connect", "transport": "tcp", "count": 1}
    ran = cells.run_losing(workload, {"forward": set(range(lost))}, among=20, **DELAY)
    sent_ns = ran.packets("forward")["in_ns"].to_list()[: lost + 1]
    # RFC 6298: the first retransmission timeout is 1 s. It should double; since 6.5 Linux waits as long four times
    # (net.ipv4.tcp_syn_linear_timeouts), and doubles only then.
    for before, after in pairwise(sent_ns):
        assert ms(1000) <= after - before <= latest_ns(ms(1000))
    (took_ns,) = ran.samples()["connect_ns"]
    assert 0 <= took_ns - (sent_ns[-1] - sent_ns[0]) - ROUND_TRIP_NS <= ADDED_NS


def test_a_segment_is_sent_again_when_a_later_one_was_acknowledged(cells: VirtualCells) -> None:
    # RFC 8985: lost is what was sent more than a round trip and a quarter before now and before a segment that arrived.
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 10 * 1448}
    first = int(data(cells.run(workload, **DELAY))["index"][0])
    ran = cells.run_losing(workload, {"forward": {first}}, among=30, **DELAY)
    sent_ns = data(ran)["in_ns"].to_list()
    assert len(sent_ns) == 11
    # All ten leave at once; the third duplicate acknowledgement is there after a round trip.
    assert sent_ns[9] - sent_ns[0] <= ADDED_NS
    assert ROUND_TRIP_NS <= sent_ns[10] - sent_ns[0] <= ROUND_TRIP_NS + ADDED_NS
