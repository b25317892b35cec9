"""The formula for transfer times, term by term."""

import math
from dataclasses import replace
from statistics import fmean, median

import numpy as np
import pytest

from crosswind.models import predict_situation, transfer
from crosswind.models.situation import Situation
from crosswind.models.transfer import Begun, Coefficients, Columns, transfer_time
from effects import situation

NOTHING = Coefficients(growth=0.0, timeout_window=0.0, timeout_power=2.0, tail=0.0)
TWO_SEGMENTS = 2 * 1448


def cell(loss: float, size: int = 64_000, *, rtt_ms: int = 100, rate: int | None = 6_000_000, **host) -> Situation:
    direction = {"delay_ns": rtt_ms * 500_000, "loss": loss, "rate_bps": rate}
    return situation({
        "path": {"forward": direction, "reverse": direction},
        "host": {"profile": "freebsd-8", "tcp_recovery": 1} | host,
        "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size},
    })  # fmt: skip


def seconds(of: Situation, coefficients: Coefficients = NOTHING) -> float:
    return float(transfer_time(Columns.of([of]), coefficients)[0])


def test_without_loss_it_is_slow_start() -> None:
    for size in (1, 5_000, 64_000, 1_000_000):
        assert seconds(cell(0.0, size)) == pytest.approx(predict_situation("slow-start", cell(0.0, size)).value / 1e9)


def test_slow_start_ends_at_the_first_loss_wherever_that_is() -> None:
    # Three segments of one window arrive after 0, 2 and 3.5 ms (the last has 1034 bytes). Each is lost with 1/4.
    begun = Begun.of([cell(0.25, 2 * 1448 + 1034)])
    last = 0.002 + 0.002 * (52 + 1034) / 1500
    assert begun.seconds[0] == pytest.approx(0.002 * 0.75 / 4 + last * 0.75**2 / 4 + last * 0.75**3, rel=1e-9)
    assert begun.chance[0, :4].tolist() == pytest.approx([1 / 4, 3 / 16, 9 / 64, 0])
    assert begun.left[0, :4].tolist() == [3, 2, 1, 0]
    assert begun.window[0, :4].tolist() == [3, 4, 5, 0]  # each segment acknowledged adds one


def test_places_of_the_first_loss_are_as_likely_as_their_segments() -> None:
    begun = Begun.of([cell(0.01, 1_000_000)])
    segments = 691
    assert begun.chance[0].sum() == pytest.approx(1 - 0.99**segments)
    index = sum(0.99**i * 0.01 * i for i in range(segments))
    assert (begun.chance[0] * begun.left[0]).sum() == pytest.approx(begun.chance[0].sum() * segments - index)
    assert begun.window[0].max() == pytest.approx(65535 / 1448)


@pytest.mark.parametrize("loss", [0.0, 1e-7, 1e-5, 0.01])
def test_a_large_file_is_told_apart_in_stretches(monkeypatch: pytest.MonkeyPatch, loss: float) -> None:
    large = cell(loss, 100_000 * 1448, window_scaling=True)
    each = Begun.of([large])
    monkeypatch.setattr(transfer, "_TOLD_APART", 100)
    stretches = Begun.of([large])
    assert stretches.seconds == pytest.approx(each.seconds, rel=1e-3)
    for name in ("chance", "window", "left"):
        # A stretch is a thousandth of where it begins, and a place at least a twelfth of all, in chance.
        assert getattr(stretches, name) == pytest.approx(getattr(each, name), rel=0.02, abs=1e-9), name
    assert len(transfer._starts(10**15, math.inf)) <= 110_001


def test_a_loss_at_the_end_costs_a_round_trip() -> None:
    # Of two segments, the first is lost with 1/4 and meets a window of 3. Both are sent in two thirds of a round trip
    # of 102 ms and the lost one again a round trip later. The second alone is lost with 3/16 and meets a window of 4.
    lossy = cell(0.25, TWO_SEGMENTS)
    later = (0.102 + 2 * 0.102 / 3) / 4 + (0.102 + 0.102 / 4) * 3 / 16
    assert seconds(lossy) == pytest.approx(float(Begun.of([lossy]).seconds[0]) + later)


def test_timeouts_and_the_tail_add_what_they_say() -> None:
    # As above, with losses of what is in flight: 1 + 2/4 in the first case, 1 + 1/4 in the second. T0 = 330 ms.
    lossy = cell(0.25, TWO_SEGMENTS)
    plain = seconds(lossy)
    backoff = 1 + sum(2**number * 0.25 ** (number + 1) for number in range(6))
    timeouts = seconds(lossy, replace(NOTHING, timeout_window=100.0)) - plain
    assert timeouts == pytest.approx(0.33 * backoff / 0.75 * ((1 + 2 / 4) / 4 + (1 + 1 / 4) * 3 / 16))
    rarer = seconds(lossy, replace(NOTHING, timeout_window=0.9, timeout_power=2.0)) - plain
    expected = 0.33 * backoff / 0.75 * (0.81 / 9 * (1 + 2 / 4) / 4 + 0.81 / 16 * (1 + 1 / 4) * 3 / 16)
    assert rarer == pytest.approx(expected)
    assert seconds(lossy, replace(NOTHING, tail=1.0)) - plain == pytest.approx(0.33 * 0.25 / 0.5)


@pytest.mark.parametrize(("control", "kept"), [("reno", 0.5), ("cubic", 0.7)])
def test_a_long_transfer_goes_at_the_pace_of_a_sawtooth(
    monkeypatch: pytest.MonkeyPatch, control: str, kept: float
) -> None:
    # With losses at equal distances, a share V of a window W is kept, of which 1.5 V take 1.5 round trips r. Then it
    # grows by 1 in each to W again: W² - V² = 2·(1/p - 1.5 V), in W - V of them. The W segments in flight when the loss
    # is found take another.
    monkeypatch.setattr(transfer, "_DISTANCES", np.ones(1))
    loss, r = 0.2, 0.102
    own = {"congestion_control": control, "window_scaling": True}
    growing = replace(NOTHING, growth=1.0)
    larger, smaller = (seconds(cell(loss, size, **own), growing) for size in (20_000_000, 15_000_000))
    square = 1 - kept**2
    window = ((1.5 * kept) ** 2 + 2 * square / loss) ** 0.5 / square - 1.5 * kept / square
    cycle = r * (2.5 + window * (1 - kept))
    sent = (window + 1 / loss) * (1 - loss)
    # After eight losses 0.49^8 = 0.3 % are left of what the square of slow start's window, about 8², had beyond 4.4².
    assert (larger - smaller) / (5_000_000 / 1448) == pytest.approx(cycle / sent, rel=0.01)


def test_the_receivers_window_limits_the_growth() -> None:
    own = {"receive_buffer_bytes": 4 * 1448}
    freely = replace(NOTHING, growth=1e9)
    larger, smaller = (seconds(cell(0.001, size, **own), freely) for size in (20_000_000, 15_000_000))
    # Of each 1004 segments 4 are in flight when a loss is found; 3 are sent with 2, the others with 2 growing to 4.
    each = (0.102 / 4 * 4 + 0.102 / 2 * 3 + 0.102 / 3 * 997) / 1004 / 0.999
    assert (larger - smaller) / (5_000_000 / 1448) == pytest.approx(each, rel=1e-3)


SIMULATED = {  # size, loss: means of 36 to 565 simulated transfers, s, at 60 ms, 10 Mbit/s and no short queue
    "freebsd-8": {
        (128_000, 0.01): 0.4248, (128_000, 0.03): 0.6818, (128_000, 0.07): 1.2491,
        (400_000, 0.01): 1.0555, (400_000, 0.03): 2.3034, (400_000, 0.07): 4.5460,
        (2_000_000, 0.01): 6.7656, (2_000_000, 0.03): 13.368, (2_000_000, 0.07): 25.158,
    },
    "linux": {
        (128_000, 0.01): 0.2667, (128_000, 0.03): 0.3911, (128_000, 0.07): 0.7077,
        (400_000, 0.01): 0.6985, (400_000, 0.03): 1.6326, (400_000, 0.07): 3.8944,
        (2_000_000, 0.01): 5.7072, (2_000_000, 0.03): 13.908, (2_000_000, 0.07): 28.098,
    },
}  # fmt: skip


@pytest.mark.parametrize("profile", list(SIMULATED))
def test_it_is_near_simulated_transfers_that_it_was_not_fitted_to(profile: str) -> None:
    # The goal of the model: 7 % in the median, 10 % in the mean. What it is compared with is known to 2 to 6 %.
    def predicted(size: int, loss: float) -> float:
        path = cell(loss, size, rtt_ms=60, rate=10_000_000, profile=profile)
        return predict_situation("transfer", path).value / 1e9

    errors = [abs(predicted(*where) / mean - 1) for where, mean in SIMULATED[profile].items()]
    assert median(errors) < 0.07
    assert fmean(errors) < 0.1
    assert max(errors) < 0.15


@pytest.mark.parametrize(
    ("path", "queue", "mean"),
    [
        (cell(0.005, 3_000_000, rtt_ms=10, rate=40_000_000, profile="linux"), None, 1.2201),
        (cell(0.003, 2_000_000, rtt_ms=10, rate=40_000_000, profile="linux"), None, 0.576),
        (cell(0.003, 2_000_000, rtt_ms=150, rate=12_000_000, profile="linux"), 30, 4.236),
        (cell(0.003, 2_000_000, rtt_ms=150, rate=12_000_000, profile="linux"), None, 3.679),
        (cell(0.005, 2_000_000, rtt_ms=150, rate=12_000_000, profile="linux"), 30, 5.781),
        (cell(0.005, 2_000_000, rtt_ms=150, rate=12_000_000, profile="linux"), None, 5.432),
    ],
)
def test_cubic_with_few_losses_in_a_large_file(path: Situation, queue: int | None, mean: float) -> None:
    # Simulated, known to 1 %, at 150 ms to 2 %. HyStart has ended slow start before the first loss, or the queue has;
    # from there CUBIC's window grows back to where it was, and after each smaller one to less.
    path = replace(path, queue_packets=queue)
    assert predict_situation("transfer", path).value / 1e9 == pytest.approx(mean, rel=0.07)


LARGE = cell(0.002, 3_000_000, rtt_ms=80, rate=30_000_000, profile="linux")


@pytest.mark.parametrize(("queue", "mean"), [(36, 3.101), (39, 2.980), (40, 2.977), (41, 2.553), (46, 2.452)])
def test_one_packet_of_queue_decides_when_slow_start_ends(queue: int, mean: float) -> None:
    # Means of 200 transfers of Linux 6.12 in virtual time, known to 4 %.
    path = replace(LARGE, queue_packets=queue)
    assert predict_situation("transfer", path).value / 1e9 == pytest.approx(mean, rel=0.06)


def test_a_queue_overflows_without_loss_too() -> None:
    # Linux 6.12 takes 1.573 s in virtual time, and 1.107 s where the queue has room.
    path = replace(LARGE, loss=0.0, loss_back=0.0, queue_packets=40)
    assert predict_situation("transfer", path).value / 1e9 == pytest.approx(1.573, rel=0.05)


HELD_OUT = [  # congestion control, Mbit/s, ms, % of loss, kB, packets of queue: simulated means, s, known to 2 %
    ("cubic", 8.906, 57.81, 0.164, 16711, 137, 22.0),
    ("reno", 7.764, 21.38, 0.497, 542.81, 36, 0.6101),
    ("cubic", 34.3, 23.32, 0.131, 7214.2, 60, 2.871),
    ("cubic", 27.19, 92.77, 1.02, 146.94, 59, 0.4052),
    ("reno", 26.42, 48.32, 1.06, 128.61, 183, 0.222),
    ("cubic", 54.63, 87.71, 0.941, 253.75, 174, 0.5802),
    ("cubic", 17.32, 32.28, 0.202, 510.25, 35, 0.3146),
    ("reno", 8.286, 57.1, 0.135, 2310.9, 117, 2.546),
    ("cubic", 11.32, 85.42, 1.75, 1769.3, 192, 9.849),
    ("cubic", 14.95, 50.58, 0.91, 3488.2, 191, 9.04),
    ("reno", 32.65, 59.46, 0.33, 3268.9, 31, 5.107),
    ("cubic", 6.689, 20.0, 1.83, 351.81, 84, 0.5199),
    ("cubic", 61.83, 15.1, 0.194, 4282.2, 139, 1.04),
    ("reno", 50.09, 28.05, 0.238, 13673, 36, 9.945),
    ("cubic", 54.3, 21.16, 1.13, 128.75, 45, 0.09224),
    ("cubic", 96.16, 25.82, 1.4, 19502, 108, 41.04),
    ("reno", 18.79, 13.52, 0.33, 6240.2, 41, 3.284),
    ("cubic", 72.67, 27.24, 0.561, 6055.3, 49, 6.031),
    ("cubic", 71.64, 25.29, 0.133, 17708, 16, 9.408),
    ("reno", 8.684, 53.88, 1.54, 2298.6, 24, 8.652),
]


def test_large_files_low_losses_and_short_queues() -> None:
    # Cells drawn at random that nothing was fitted to; docs/models.md has the errors over all of them.
    errors = []
    for control, rate, rtt, loss, size, queue, mean in HELD_OUT:
        path = cell(loss / 100, int(1e3 * size), rate=int(1e6 * rate), profile="linux", congestion_control=control)
        path = replace(path, rtt_s=rtt / 1e3, queue_packets=queue)
        errors.append(abs(predict_situation("transfer", path).value / 1e9 / mean - 1))
    assert median(errors) < 0.04
    assert max(errors) < 0.1


def test_a_queue_that_overflows_ends_slow_start_at_the_latest() -> None:
    # With ten segments at once, a queue of four holds them but the sixth: it is lost where none before it is.
    path = replace(cell(0.25, 20 * 1448, profile="linux"), queue_packets=4)
    begun = Begun.of([path])
    assert begun.chance[0].sum() == pytest.approx(1)
    assert (begun.chance[0] * begun.left[0]).sum() == pytest.approx(
        sum(0.75**index * 0.25 * (20 - index) for index in range(5)) + 0.75**5 * 15
    )
    # The sixth and the four behind it find no place.
    assert (begun.chance[0] * begun.dropped[0]).sum() == pytest.approx(0.75**5 * 5)


def test_columns_are_computed_each_by_itself() -> None:
    cells = [cell(0.01), cell(0.1, 5_000, rtt_ms=30), cell(0.0, 1_000_000, rate=None)]
    fitted = Coefficients(0.5, 2.0, 3.0, 0.8)
    assert transfer_time(Columns.of(cells), fitted).tolist() == pytest.approx([seconds(one, fitted) for one in cells])


@pytest.mark.parametrize(
    ("outside", "warning"),
    [
        (cell(0.2), "1 to 10 % loss"),
        (cell(0.02, rtt_ms=200), "100 ms"),
        (cell(0.02, 1_000), "5 kB"),
        (cell(0.02, sack=False), "without which"),
        (cell(0.02, congestion_control="vegas"), "not vegas"),
        (replace(cell(0.02, 256_000, profile="linux"), queue_packets=12), "soon before the end"),
        (replace(LARGE, loss=0.0, queue_packets=60), "again after slow start"),
        (replace(LARGE, queue_packets=40), "one less and one more of queue the formula has 2.93 and 2.41 s"),
    ],
)
def test_outside_its_range_the_number_has_a_warning(outside: Situation, warning: str) -> None:
    found = predict_situation("transfer", outside)
    assert found.value > 0
    assert any(warning in text for text in found.violated)
    assert predict_situation("transfer", cell(0.02)).violated == ()


def test_from_half_the_packets_lost_there_is_no_number() -> None:
    found = predict_situation("transfer", cell(0.5))
    assert found.value is None
    assert any("below 50 %" in note for note in found.notes)


def test_one_segment_behind_a_queue_takes_no_time() -> None:
    assert predict_situation("transfer", replace(cell(0.0, 1), queue_packets=5)).value == 0
