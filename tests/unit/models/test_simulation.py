"""The simulated TCP against times worked out by hand: which packet is lost decides what is waited for."""

import math

import numpy as np
import pytest

from crosswind.models import predict_situation
from crosswind.models.model import packets_of_each
from crosswind.models.simulated import simulated_transfers
from crosswind.models.simulation import simulate
from crosswind.models.simulation.congestion import Cubic, Reno, hystart_window
from crosswind.models.simulation.path import PathSettings, SimulatedPath
from crosswind.models.simulation.sender import Sender, SenderSettings
from crosswind.models.situation import Situation
from crosswind.models.slow_start import arrivals
from effects import situation


class Script:
    """Numbers that decide losses in the order in which packets enter the path: 0 loses one, 1 does not."""

    def __init__(self, lost: set[int]) -> None:
        self._lost = lost
        self._drawn = -1

    def random(self) -> float:
        self._drawn += 1
        return 0.0 if self._drawn in self._lost else 1.0


def transfer(segments: int, lost: set[int] = frozenset(), *, rtt: float = 0.1, queue: float = 1000, **sender) -> float:
    """Time of a transfer of segments of 1 ms each. Draws: data 0, its ACK 1, data 2, ... in the order of sending."""
    path = PathSettings(rtt, 0.5, 0.5, 0.001, 0.001, 0.0, queue)
    settings = {"cubic": False, "initial_window": 10, "window_segments": math.inf, "min_rto_s": 0.2, "probes": False}
    way = SimulatedPath(path, segments, Script(set(lost)).random)
    Sender(SenderSettings(**(settings | sender), handshake_s=rtt), way).run()
    return way.last_arrival_s - way.first_arrival_s


@pytest.mark.parametrize("segments", [1, 2, 10, 11, 40, 200])
def test_without_loss_it_is_slow_start(segments: int) -> None:
    expected = arrivals(np.arange(segments), rtt_s=0.1, serialisation_s=0.001, initial_window=10)[-1]
    # An ACK is delayed by up to 40 ms where it stands for one segment, as the last of a round may.
    assert expected - 1e-9 <= transfer(segments) <= expected + 0.040


def test_a_lost_last_segment_waits_for_the_timer() -> None:
    # Segments 0 to 4 arrive at 1 to 5 ms; 5 is lost. Round trips of 101 to 105 ms: the timer runs from the last ACK,
    # 105 ms, for the smoothed round trip and 200 ms.
    smoothed = 0.1
    for number in range(1, 6):
        smoothed += (0.1 + 0.001 * number - smoothed) / 8
    sent_again = 0.105 + smoothed + 0.2
    assert transfer(6, {10}) == pytest.approx(sent_again + 0.001 - 0.001)


def test_a_probe_comes_sooner() -> None:
    smoothed = 0.1
    for number in range(1, 6):
        smoothed += (0.1 + 0.001 * number - smoothed) / 8
    # Alone in flight, it is retransmitted after two round trips and 200 ms for a delayed ACK, or the timeout, if less.
    assert transfer(6, {10}, probes=True) == pytest.approx(0.105 + smoothed + 0.2)
    # Of two, the probe repeats the last after two round trips and 2 ms; its selective ACK shows the loss of the other.
    assert transfer(6, {8, 9}, probes=True) < transfer(6, {8, 9}) - 0.05


def test_three_received_behind_a_hole_repair_it_at_once() -> None:
    # Segment 0 is lost; 1, 2 and 3 arrive at 1, 2, 3 ms. The third ACK is back at 103 ms; the repetition takes 1 ms.
    assert transfer(10, {0}) == pytest.approx(0.103 + 0.001 - 0.001)


def test_fewer_wait_a_quarter_of_a_round_trip() -> None:
    # Segment 0 is lost, 1 and 2 arrive at 1 and 2 ms. RACK waits from its sending for the latest round trip, 102 ms,
    # and an eighth of the smoothed one, which is less than a quarter of the least.
    smoothed = 0.1 + (0.101 - 0.1) / 8
    smoothed += (0.102 - smoothed) / 8
    assert transfer(3, {0}) == pytest.approx(0.102 + smoothed / 8 + 0.001 - 0.001)


def test_a_queue_drops_what_it_cannot_hold() -> None:
    # Ten segments at once into a queue of 4 and the one in transmission: five are dropped, and repaired later.
    assert transfer(10, queue=4) > transfer(10) + 0.1


def test_a_window_limits_what_is_in_flight() -> None:
    expected = arrivals(np.arange(100), rtt_s=0.1, serialisation_s=0.001, initial_window=10, window_segments=5)[-1]
    assert expected - 1e-9 <= transfer(100, window_segments=5) <= expected + 20 * 0.040


class Losing(SimulatedPath):
    """A path that loses the segments that are sent at these places, counted from 0, and no acknowledgement."""

    def __init__(self, settings: PathSettings, segments: int, lost: set[int]) -> None:
        super().__init__(settings, segments, self._draw)
        self._lost, self._sent, self._sending = lost, -1, False

    def send(self, segment: int, now_s: float) -> None:
        self._sent, self._sending = self._sent + 1, True
        super().send(segment, now_s)

    def _draw(self) -> float:
        lost, self._sending = self._sending and self._sent in self._lost, False
        return 0.0 if lost else 1.0


@pytest.mark.parametrize(
    ("rate", "rtt_ms", "size", "lost", "seconds"),
    [
        (40e6, 10, 3_000_000, {112, 229, 1016, 1362, 2020}, 0.8450),
        (40e6, 10, 3_000_000, {112, 628, 757, 941, 1175, 1413, 1443}, 1.1112),
        (40e6, 10, 3_000_000, {260, 455, 666, 804, 1174, 1474, 1504}, 1.0833),
        (40e6, 10, 3_000_000, {144, 343, 784, 1068, 1537, 1850}, 0.9769),
        (12e6, 150, 2_000_000, {48, 275, 545, 1078}, 6.2419),
    ],
)
def test_cubic_takes_as_long_as_linuxs_with_the_same_losses(
    rate: float, rtt_ms: int, size: int, lost: set[int], seconds: float
) -> None:
    # Measured in virtual time: Linux 6.12, with the losses that its transfers met. Link and round trip are the same to
    # the nanosecond; what differs are bursts of the sender, and acknowledgements for two segments here and there.
    segments, packet_s = math.ceil(size / 1448), 12_000 / rate
    last_s, ack_s = (size - (segments - 1) * 1448 + 52) * 8 / rate, 52 * 8 / rate
    settings = PathSettings(rtt_ms / 1e3, 0.5, 0.5, packet_s, last_s, ack_s, tuned=True)
    way = Losing(settings, segments, lost)
    Sender(SenderSettings(True, 10, math.inf, 0.2, True, rtt_ms / 1e3 + 2 * ack_s), way).run()
    assert way.last_arrival_s - way.first_arrival_s == pytest.approx(seconds, rel=0.015)


@pytest.mark.parametrize(
    ("rate", "rtt_ms", "window"),
    [
        (1.5e6, 10, 28), (6e6, 10, 24), (12e6, 10, 27), (40e6, 10, 39),
        (1.5e6, 30, 28), (6e6, 30, 29), (12e6, 30, 36), (40e6, 30, 133),
        (1.5e6, 150, 88), (6e6, 150, 119), (12e6, 150, 157), (40e6, 150, 574),
    ],
)  # fmt: skip
def test_hystart_ends_slow_start_where_linuxs_does(rate: float, rtt_ms: int, window: int) -> None:
    # Slow-start thresholds of Linux 6.12 in virtual time, without loss.
    packet_s = 12_000 / rate
    way = Losing(PathSettings(rtt_ms / 1e3, 0.5, 0.5, packet_s, packet_s, 416 / rate, tuned=True), 2000, set())
    sender = Sender(SenderSettings(True, 10, math.inf, 0.2, True, rtt_ms / 1e3 + 832 / rate), way)
    sender.run()
    assert sender._control.ssthresh == pytest.approx(window, abs=1)
    if (rate, rtt_ms) != (6e6, 150):  # the first ACKs of a round, for two segments each, are 4 ms apart there
        assert hystart_window(10, rtt_ms / 1e3, packet_s) == pytest.approx(window, abs=1)


@pytest.mark.parametrize(
    ("queue", "dropped"),
    [
        (9, [29, 49, 51, 53]), (10, [51, 53, 56, 57]), (11, [53, 56, 57, 60]),
        (19, [69, 107, 109, 111]), (20, [109, 111, 113, 115]), (21, [111, 113, 115, 117]),
        (39, [147, 149, 229, 231]), (40, [149, 231, 233, 235]), (41, [233, 235, 237, 239]),
    ],
)  # fmt: skip
def test_a_queue_overflows_in_slow_start_where_it_does_under_linux(queue: int, dropped: list[int]) -> None:
    # The first segments that Linux 6.12 lost in virtual time: 100 Mbit/s, 100 ms. Half a window of 20, 40 or 80 waits
    # at most, and one more where the first ACK of a round is for two segments, as in that of 80.
    path = PathSettings(0.1, 0.0, 0.0, 0.00012, 0.00012, 416e-8, queue, tuned=True)
    way = Dropping(path, 2072, lambda: 1.0)
    Sender(SenderSettings(False, 10, math.inf, 0.2, True, 0.1 + 832e-8), way).run()
    assert way.dropped[:4] == dropped


class Dropping(SimulatedPath):
    """A path that notes which segments its queue drops."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.dropped: list[int] = []

    def send(self, segment: int, now_s: float) -> None:
        busy_until_s = self._free_s
        super().send(segment, now_s)
        if self._free_s == busy_until_s:
            self.dropped.append(segment)


def test_hystart_ends_slow_start_by_hand() -> None:
    # Segments of 0.3 ms, a round trip of 10 ms: a train of ACKs must last longer than (10.3 + 1) / 2 ms, which the 20th
    # of the second round's does, by when the window is 20 + 19. Linux 6.12 has a window of 39 there.
    assert hystart_window(10, 0.010, 0.0003) == 39
    assert hystart_window(10, 0.010, 0.0) == math.inf


def test_windows_after_a_loss() -> None:
    reno, cubic = Reno(20), Cubic(20)
    reno.handle_loss()
    cubic.handle_loss()
    assert (reno.ssthresh, cubic.ssthresh) == (10, 14)
    reno.cwnd = 10
    for _ in range(10):
        reno.handle_ack(1, 0.0)
    assert reno.cwnd == 11


def lossy(size: int, loss: float, rtt_ms: int = 30, **changed) -> Situation:
    direction = {"delay_ns": rtt_ms * 500_000, "loss": loss, "rate_bps": 6_000_000}
    return situation({
        "path": {"forward": direction, "reverse": direction | changed},
        "host": {"profile": "freebsd-8"},
        "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size},
    })  # fmt: skip


def test_the_same_seed_gives_the_same_times() -> None:
    cell = lossy(64_000, 0.05)
    first = simulate(cell, runs=20, seed=1)
    assert (first.times == simulate(cell, runs=20, seed=1).times).all()
    assert (first.times != simulate(cell, runs=20, seed=2).times).any()


def sent_alone(*lost: bool) -> tuple[float, float]:
    """Time of a transfer of one segment after another, the first of which is lost so often; and its excess wait."""
    path = PathSettings(0.1, 0.25, 0.25, 0.001, 0.001, 0.0)
    draws = [0.0 if one else 1.0 for one in lost]
    way = SimulatedPath(path, 2, lambda: draws.pop(0) if draws else 1.0)
    settings = SenderSettings(
        cubic=False, initial_window=1, window_segments=math.inf, min_rto_s=0.2, probes=False, handshake_s=0.1
    )
    sender = Sender(settings, way)
    sender.run()
    return way.last_arrival_s, sender.excess_wait_s


def test_repeated_timeouts_are_compared_with_what_was_to_be_expected() -> None:
    # The first timeout comes after 0.1 + 0.2 s, those that follow after 0.6, 1.2, 2.4 ... s, at most 120 s. One follows
    # where a segment or its acknowledgement is lost, with 1 - 0.75² = 7/16.
    failure = 1 - 0.75**2
    timeouts = [min(0.6 * 2**number, 120.0) for number in range(200)]
    expected = sum(failure ** (number + 1) * timeout for number, timeout in enumerate(timeouts))
    assert sent_alone(False)[1] == 0
    assert sent_alone(True)[1] == pytest.approx(-expected)
    assert sent_alone(True, True)[1] == pytest.approx(0.6 - expected)
    assert sent_alone(True, True, False, True)[1] == pytest.approx(0.6 + 1.2 - expected)  # an acknowledgement is lost


def test_the_only_segment_missing_need_not_be_acknowledged() -> None:
    path = PathSettings(0.1, 0.25, 0.5, 0.001, 0.001, 0.0)
    way = SimulatedPath(path, 2, lambda: 1.0)
    assert way.failure(0) == pytest.approx(1 - 0.75 * 0.5)
    way.send(0, 0.0)
    assert way.failure(1) == 0.25
    assert way.failure(0) == pytest.approx(1 - 0.75 * 0.5)  # it has arrived, and is asked for again


@pytest.mark.parametrize("cell", [lossy(5_000, 0.1), lossy(64_000, 0.1, rtt_ms=1), lossy(256_000, 0.02)])
def test_what_is_taken_out_of_the_times_is_nothing_in_the_mean(cell: Situation) -> None:
    # Both means estimate the same: their difference is within 3.3 standard errors of it, which 1 seed in 1000 exceeds.
    found = simulate(cell, runs=600, seed=1)
    taken_out = found.times - found.adjusted
    assert abs(taken_out.mean()) < 3.3 * taken_out.std() / math.sqrt(taken_out.size)
    assert found.error_s < found.times.std() / math.sqrt(found.times.size)
    assert found.mean_s == pytest.approx(found.adjusted.mean())


@pytest.mark.parametrize("loss", [0.1, 0.8])
def test_one_segment_takes_no_time_however_often_it_is_lost(loss: float) -> None:
    found = simulate(lossy(1_000, loss), runs=200, seed=1)
    assert found.touched > 0
    assert (found.mean_s, found.limits_s) == (0.0, (0.0, 0.0))


def test_one_transfer_has_no_standard_error() -> None:
    assert simulate(lossy(5_000, 0.1), runs=1, seed=1).error_s is None


def test_a_simulated_mean_has_an_interval_once_enough_transfers_lose_a_packet() -> None:
    few, many = (predict_situation("simulated", lossy(64_000, 0.05), packets=packets) for packets in (500, 50_000))
    assert (few.simulated.runs, few.simulated.limits) == (11, None)
    assert few.notes == ("11 simulated transfers, 11 with a loss, are too few for an interval of their mean",)
    low, high = many.simulated.limits
    assert low < many.value < high
    whole = simulate(lossy(64_000, 0.05), runs=4_000, seed=2)
    assert low < 1e9 * whole.mean_s < high
    exact = predict_situation("simulated", lossy(64_000, 0.0))
    assert (exact.simulated.runs, exact.simulated.limits, exact.notes) == (1, None, ())


def test_where_nothing_is_left_to_chance_one_transfer_is_simulated() -> None:
    assert simulated_transfers(lossy(5_000, 0.0)).times.size == 1
    assert simulated_transfers(lossy(144_800, 0.01), packets=10_000).times.size == 100


def test_the_cells_of_a_run_share_what_is_simulated() -> None:
    assert packets_of_each(1) == packets_of_each(20) == 50_000
    assert packets_of_each(400) == 2_500
    assert packets_of_each(1_000_000) == 1_000
    few, many = (predict_situation("simulated", lossy(64_000, 0.05), packets=packets) for packets in (1_000, 10_000))
    runs = [simulated_transfers(lossy(64_000, 0.05), packets=packets).mean_s for packets in (1_000, 10_000)]
    assert [few.value, many.value] == pytest.approx([1e9 * mean for mean in runs])


@pytest.mark.parametrize("size", [None, 0])
def test_a_cell_without_a_size_is_refused(size: int | None) -> None:
    with pytest.raises(ValueError, match="size"):
        simulate(situation({"workload": {"kind": "transfer", "size_bytes": size}}, 1e6), runs=1, seed=1)
