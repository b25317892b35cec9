"""The timers of TCP and QUIC against their formulas: what waits for them, and for how long."""

from collections.abc import Sequence
from itertools import pairwise

import polars as pl
import pytest

from crosswind.execution.virtual import VirtualCell, virtual
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


def connect_without_first_syn(seed: int, **host: object) -> int:
    """How long a connection takes whose first SYN is lost, ns."""
    workload = {"kind": "connect", "transport": "tcp", "count": 1}
    cell = virtual({"forward": {"lose": [0]}}, workload=workload, host=host, seed=seed)
    (took_ns,) = cell.samples["connect_ns"]
    return int(took_ns)


def test_a_phase_by_the_seed_begins_anywhere_within_the_step_of_a_timer() -> None:
    took_ns = [connect_without_first_syn(seed, tick_phase="seed") for seed in range(1, 5)]
    assert len({took // ms(1) for took in took_ns}) == 4
    assert all(ms(1000) <= took <= latest_ns(ms(1000)) for took in took_ns)
    assert connect_without_first_syn(1, tick_phase="seed") == took_ns[0]


def test_a_fixed_phase_begins_at_the_same_time_with_every_seed() -> None:
    first, second, asked = (
        connect_without_first_syn(1),
        connect_without_first_syn(2),
        connect_without_first_syn(3, tick_phase="fixed"),
    )
    assert first // ms(1) == second // ms(1) == asked // ms(1)


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


def lossy(path: Object, workload: Object, lose: Sequence[int] = (), **host: object) -> VirtualCell:
    """A cell whose path loses packets to the server by their index."""
    forward = {"forward": {"lose": list(lose)}} if lose else {}
    return virtual(path | forward, workload=workload, host={"congestion_control": "cubic", **host})


def waited(cell: VirtualCell, part: str) -> list[tuple[int, int]]:
    """The waits for a timer: how long, ns, and how often it had expired."""
    pieces = cell.pieces.filter(part=part)
    return list(zip((pieces["to_ns"] - pieces["from_ns"]).to_list(), pieces["count"].to_list(), strict=True))


def linux_timeout_us(round_trips_us: Sequence[int], minimum_us: int) -> int:
    """Linux's retransmission timeout after round trips that were measured one after another.

    RFC 6298 has RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R| and RTO = SRTT + 4 RTTVAR. Linux (tcp_rtt_estimator) keeps `mdev`,
    four times RTTVAR. Where a round trip is below SRTT, a deviation that grows does so at an eighth of the pace. The
    variation that counts is the largest of the last flight, at least the minimum timeout, and falls by a quarter of the
    distance in each flight.
    """
    first, *others = round_trips_us
    srtt8, mdev, variation = first << 3, first << 1, max(first << 1, minimum_us)
    largest = variation
    for round_trip in others:
        error = round_trip - (srtt8 >> 3)
        srtt8 += error
        grown = abs(error) - (mdev >> 2)
        mdev += grown >> 3 if error < 0 < grown else grown
        largest = max(largest, mdev)
        variation = max(variation, largest)
        variation -= (variation - largest) >> 2
        largest = minimum_us
    return (srtt8 >> 3) + variation


@pytest.mark.parametrize("messages", [8, 20, 30])
def test_the_timeout_follows_measured_round_trips(messages: int) -> None:
    workload = {"kind": "echo", "transport": "tcp", "messages": messages}
    path, host = {"delay": "10ms", "jitter": "5ms"}, {"min_rto": "1ms", "tail_loss_probe": False}
    # A SYN, its acknowledgement, the messages, and one acknowledgement by itself.
    cell = lossy(path, workload, [messages + 2], **host)
    forward, reverse = (cell.packets.filter(direction=side).sort("index") for side in ("forward", "reverse"))
    sent = [forward["in_ns"][0], *data_of(forward)["in_ns"][: messages - 1]]
    answered = [reverse["out_ns"][0], *data_of(reverse)["out_ns"][: messages - 1]]
    round_trips = [(after - before) // 1000 for before, after in zip(sent, answered, strict=True)]
    timeout_ns = 1000 * linux_timeout_us(round_trips, minimum_us=1000)
    ((took_ns, _),) = waited(cell, "retransmission_timer")
    assert timeout_ns <= took_ns <= latest_ns(timeout_ns)


def data_of(packets: pl.DataFrame) -> pl.DataFrame:
    return packets.filter(pl.col("payload_bytes") > 0)


@pytest.mark.parametrize(("delay_ms", "waits_ms"), [(20, 240), (150, 800)])
def test_a_probe_for_a_single_segment_allows_for_a_delayed_acknowledgement(delay_ms: int, waits_ms: int) -> None:
    # RFC 8985, 7.2: two round trips and the longest delay of an acknowledgement, for which Linux takes the shortest
    # timeout, 200 ms; and no later than the timeout: here a round trip and 200 ms, or three round trips.
    workload = {"kind": "echo", "transport": "tcp", "messages": 1}
    (took_ns, _), *others = waited(lossy({"delay": f"{delay_ms}ms"}, workload, [2]), "tail_loss_probe")
    assert others == []
    assert ms(waits_ms) <= took_ns <= latest_ns(ms(waits_ms))


@pytest.mark.parametrize("delay_ms", [20, 50])
def test_a_single_acknowledgement_behind_a_loss_waits_for_the_reordering_window(delay_ms: int) -> None:
    # RFC 8985, 6.2: fewer than three segments behind the lost one leave room for reordering of a quarter of the round
    # trip. Linux's timer adds two ticks.
    workload = {"kind": "transfer", "transport": "tcp", "size": "2896B"}
    ((took_ns, _),) = waited(lossy({"delay": f"{delay_ms}ms"}, workload, [2]), "fast_recovery")
    round_trip_ns = 2 * ms(delay_ms)
    window_ns = round_trip_ns // 4 + ms(2)
    assert window_ns <= took_ns - round_trip_ns <= latest_ns(window_ns)


@pytest.mark.parametrize(("messages", "lost", "expiries", "samples"), [
    (6, range(10, 11), 1, 5), (6, range(10, 14), 2, 5), (6, range(10, 17), 3, 5), (40, range(42, 43), 1, 38),
])  # fmt: skip
def test_quics_probe_timeout_doubles(messages: int, lost: range, expiries: int, samples: int) -> None:
    # RFC 9002, 5.3 and 6.2.1: smoothed_rtt + max(4 rttvar, 1 ms) + max_ack_delay, 25 ms. Of equal round trips the first
    # makes rttvar half of it, and each of the others three quarters of what it was.
    workload = {"kind": "echo", "transport": "quic", "messages": messages}
    cell = lossy({"delay": "20ms"}, workload, lost, quic_mtu_discovery=False)
    ((took_ns, count),) = waited(cell, "probe_timer")
    assert count == expiries
    timeout_ns = ms(40) + max(4 * ms(20) * 0.75**samples, ms(1)) + ms(25)
    # Timer and poll of the program both round up to milliseconds.
    late_ns = took_ns - timeout_ns * (2**expiries - 1)
    assert 0 <= late_ns <= expiries * ms(2)
